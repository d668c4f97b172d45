"""Chaos: builds of 300 sources that are killed, starved, contradicted and damaged; each ends in the same bytes.

    make chaos [ROUNDS=20] [SEED=1] [MINUTES=10]

A round is right if the build publishes the bytes of an undisturbed one, or stops in words and the same command, after
doing what the words say, publishes them. A seed makes the same rounds again.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import groupby
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Final

import pytest

from schemas.config import BuildConfig
from tasks.dataset.verify import verify
from tests import fakes
from tests.chaos import rounds
from tests.chaos.far_rounds import FarRound, StudioRound, store_gone, store_ill, studio_restarts
from tests.chaos.havoc import run
from tests.chaos.rounds import AskingRound, Round, World
from tests.chaos.store import far_store
from tests.doors import routes
from tests.providers.loopback import Asked, Loopback
from tests.test_kill import FORKS

pytestmark = pytest.mark.chaos
ROUNDS: Final = int(os.environ.get("CHAOS_ROUNDS") or 20)
MINUTES: Final = float(os.environ.get("CHAOS_MINUTES") or 10)
SEED: Final = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))
SOURCES: Final = 300
OPTIONS: Final = ("shard_size=10", "max_failed=0.3", "generate.measure.targets=[happy, sad]")


def caption(asked: Asked) -> str:
    return json.dumps({"face": True, "caption": f"a face of {sum(map(len, asked.pictures))} bytes"})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        FORKS.set_forkserver_preload(["tests.chaos.havoc"])
        forkserver.ensure_running()
    root = tmp_path_factory.mktemp("chaos")
    fakes.install()
    with Loopback(answer=caption) as provider, ExitStack() as stack:
        asking = fakes.config(*OPTIONS, "calls.backoff_s=0.01", "calls.attempts=3", sources=SOURCES)
        values = asking.model_dump(mode="json")
        ways = routes(provider, limit={"concurrency": 16})
        values["caption"]["measure"]["describer"] = {"name": "mllm", "params": {"name": "writer", "routes": ways}}
        one = World(
            root,
            provider,
            config=fakes.config(*OPTIONS, sources=SOURCES),
            asking=BuildConfig.model_validate(values),
            reviewing=fakes.config(*OPTIONS, "review.measure.board=label_studio", sources=SOURCES),
        )
        began = time.monotonic()
        end = run(root / "plain", one.config, root / "notes")
        one.seconds, one.points = time.monotonic() - began, end.points
        assert end.how == "published", end
        one.expected = fakes.tree(root / "plain" / "datasets")
        assert verify(root / "plain/datasets/fakes/v1") == []
        end = run(root / "asking", one.asking, root / "notes")
        assert end.how == "published", end
        one.asked_for = fakes.tree(root / "asking" / "datasets")
        assert one.asked_for != one.expected
        people = StudioRound(one, root / "reviewed" / "workspace", random.Random(0))
        people.workspace.parent.mkdir()
        end = people.finish()[-1]
        assert end.how == "published", end
        one.reviewed = people.published()
        if find_spec("botocore") and find_spec("moto"):
            one.far = stack.enter_context(far_store())
        yield one


KINDS: Final[list[tuple[type[Round], Callable[[Any], None]]]] = [
    (Round, rounds.killed_at_a_write),
    (Round, rounds.disk_full),
    (AskingRound, rounds.provider_ill),
    (Round, rounds.killed_by_the_clock),
    (Round, rounds.two_at_once),
    (StudioRound, studio_restarts),
    (Round, rounds.disk_ill),
    (FarRound, store_ill),
    (Round, rounds.damaged),
    (AskingRound, rounds.provider_gone_and_killed),
    (FarRound, store_gone),
]


def kinds(world: World) -> list[tuple[type[Round], Callable[[Any], None]]]:
    """What rounds there are here, in turn; CHAOS_KINDS picks some by words of their names."""
    wanted = os.environ.get("CHAOS_KINDS", "").split()
    return [
        (made, kind)
        for made, kind in KINDS
        if (made is not FarRound or world.far) and (not wanted or any(word in kind.__name__ for word in wanted))
    ]


def play(world: World, number: int) -> tuple[str, str, str, list[str]]:
    """A round: (kind, what was done, how it ended, what is wrong)."""
    luck = random.Random(SEED * 1000 + number)
    made, kind = kinds(world)[number % len(kinds(world))]
    this = made(world, world.root / f"round-{number}" / "workspace", luck)
    this.workspace.parent.mkdir()
    try:
        kind(this)
        ends = this.finish()
        wrong = [end.said for end in [*this.ends, *ends] if end.how == "crashed"]
        wrong += [f"no words: {end}" for end in [*this.ends, *ends] if end.how == "stopped" and not end.hint]
        if ends[-1].how != "published":
            wrong.append(f"not finished: {ends[-1]}")
        elif this.published() != this.expected:
            wrong.append("other bytes")
        hows = [(how, len(list(same))) for how, same in groupby(end.how for end in [*this.ends, *ends])]
        told = " → ".join(how if count == 1 else f"{count} × {how}" for how, count in hows)
        said = next((end.said for end in [*this.ends, *ends] if end.said), "")
        return (
            kind.__name__.replace("_", " "),
            f"{this.did}",
            f"{told}  {said.replace(str(world.root), '')[:70]}",
            wrong,
        )
    finally:
        subprocess.run(["umount", this.workspace], check=False, capture_output=True)
        shutil.rmtree(this.workspace.parent, ignore_errors=True)


def test_chaos(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[Any, ...]] = []
    if not world.far:
        with capfd.disabled():
            print("chaos: no rounds in a bucket: requirements/s3-dev.txt is not installed", file=sys.__stderr__)
    began = time.monotonic()
    for number in range(ROUNDS):
        if time.monotonic() - began > 60 * MINUTES:
            break
        start_ = time.monotonic()
        kind, did, ended_, wrong = play(world, number)
        rows.append((number, kind, did, ended_, wrong))
        line = (
            f"{number:3} {time.monotonic() - start_:6.1f} s  {'WRONG' if wrong else 'ok':5} {kind:24} {did:52} {ended_}"
        )
        with capfd.disabled():
            print(("\n" if number == 0 else "") + line, *wrong, sep="\n      ", file=sys.__stderr__, flush=True)
    with capfd.disabled():
        bad = sum(1 for row in rows if row[4])
        print(
            f"chaos: {len(rows)} of {ROUNDS} rounds in {time.monotonic() - began:.0f} s, {bad} wrong; "
            f"the same again: make chaos SEED={SEED} ROUNDS={ROUNDS}",
            file=sys.__stderr__,
        )
    assert rows
    assert not [row for row in rows if row[4]]
