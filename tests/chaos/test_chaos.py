"""Chaos: builds of 300 sources that are killed, starved, contradicted and damaged; each ends in the same bytes.

    make chaos [ROUNDS=20] [SEED=1] [MINUTES=10]

A round is right if the build publishes the bytes of an undisturbed one, or stops in words and the same command, after
doing what the words say, publishes them. A seed makes the same rounds again.
"""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Final

import pytest

from schemas.config import BuildConfig
from tasks.dataset.verify import verify
from tests import fakes
from tests.chaos.havoc import End, Trouble, damage, ended, finish, run, run_and_kill, start
from tests.doors import routes
from tests.providers.loopback import TRANSIENT, Asked, Loopback
from tests.test_kill import FORKS

pytestmark = pytest.mark.chaos
ROUNDS: Final = int(os.environ.get("CHAOS_ROUNDS") or 20)
MINUTES: Final = float(os.environ.get("CHAOS_MINUTES") or 10)
SEED: Final = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))
SOURCES: Final = 300
OPTIONS: Final = ("shard_size=10", "max_failed=0.3", "generate.measure.targets=[happy, sad]")
FAULTS: Final = tuple(fault for fault in TRANSIENT if fault not in ("hang", "drip"))


@dataclass
class World:
    """What all rounds share.

    Attributes:
        root: For workspaces.
        config, expected, points: The plain build, its bytes, and how often its files were renamed.
        asking, asked_for: The build whose captions a provider writes, and its bytes.
        seconds: That the plain one took.
    """

    root: Path
    provider: Loopback
    config: BuildConfig
    asking: BuildConfig
    expected: dict[str, bytes] = field(default_factory=dict)
    asked_for: dict[str, bytes] = field(default_factory=dict)
    points: int = 0
    seconds: float = 0.0


@dataclass
class Round:
    """One round: its workspace, its luck, and what became of it."""

    world: World
    workspace: Path
    luck: random.Random
    ends: list[End] = field(default_factory=list)
    did: str = ""

    @property
    def notes(self) -> Path:
        return self.workspace.parent / "notes"


def caption(asked: Asked) -> str:
    return json.dumps({"face": True, "caption": f"a face of {sum(map(len, asked.pictures))} bytes"})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        FORKS.set_forkserver_preload(["tests.chaos.havoc"])
        forkserver.ensure_running()
    root = tmp_path_factory.mktemp("chaos")
    with Loopback(answer=caption) as provider:
        asking = fakes.config(*OPTIONS, "calls.backoff_s=0.01", "calls.attempts=3", sources=SOURCES)
        values = asking.model_dump(mode="json")
        ways = routes(provider, limit={"concurrency": 16})
        values["caption"]["measure"]["describer"] = {"name": "mllm", "params": {"name": "writer", "routes": ways}}
        one = World(root, provider, fakes.config(*OPTIONS, sources=SOURCES), BuildConfig.model_validate(values))
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
        yield one


# -- rounds: each does its worst, and leaves the build to be finished --------------------------------------------------


def killed_at_a_write(this: Round) -> None:
    at = this.luck.randrange(this.world.points)
    this.did = f"SIGKILL at rename {at} of {this.world.points}"
    this.ends.append(run(this.workspace, this.world.config, this.notes, Trouble(kill_at=at)))


def killed_by_the_clock(this: Round) -> None:
    times = [this.luck.uniform(0, this.world.seconds) for _ in range(this.luck.randint(1, 4))]
    this.did = "SIGKILL after " + ", ".join(f"{one:.1f}" for one in times) + " s"
    for one in times:
        this.ends.append(run_and_kill(this.workspace, this.world.config, this.notes, one))


def disk_full(this: Round) -> None:
    """A disk too small for the build, that is enlarged afterwards: a real one as root, else errors of one."""
    share = this.luck.uniform(0.05, 0.95)
    if os.geteuid() != 0:
        disk_ill(this, errno.ENOSPC)
        return
    need = sum(path.stat().st_blocks * 512 for path in (this.world.root / "plain").rglob("*") if path.is_file())
    size = int(need * share) // 4096 * 4096
    this.did = f"a disk of {size / 1e6:.1f} MB, {share:.0%} of what is needed"
    this.workspace.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", this.workspace], check=True)
    this.ends.append(run(this.workspace, this.world.config, this.notes))
    subprocess.run(["mount", "-o", f"remount,size={4 * need}", this.workspace], check=True)


def disk_ill(this: Round, error: int = 0) -> None:
    error = error or this.luck.choice([errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT])
    at, files = this.luck.randrange(this.world.points), this.luck.choice([1, 3, 10**6])
    this.did = f"{errno.errorcode[error]} from file {at} on, {files if files < 10**6 else 'all'} of them"
    trouble = Trouble(disk_error=error, from_file=at, files=files)
    this.ends.append(run(this.workspace, this.world.config, this.notes, trouble))


def provider_ill(this: Round) -> None:
    """Answers that are cut, refused, late or no answers; or a key that is refused halfway."""
    provider = this.world.provider
    provider.seed, provider.share, provider.faults = this.luck.randrange(10**6), this.luck.uniform(0.1, 0.6), FAULTS
    wrong_key = this.luck.random() < 0.3
    this.did = "the key is refused" if wrong_key else f"{provider.share:.0%} of the calls fail"
    provider.always = "401" if wrong_key else None
    try:
        this.ends.append(run(this.workspace, this.world.asking, this.notes))
    finally:
        provider.share, provider.always = 0.0, None


def provider_gone_and_killed(this: Round) -> None:
    """Nobody answers for a while, and the build is killed while it asks again."""
    this.did = "the provider only fails, then SIGKILL"
    this.world.provider.always = this.luck.choice(["503", "reset", "html"])
    try:
        seconds = this.luck.uniform(0.5, 1.5) * this.world.seconds
        this.ends.append(run_and_kill(this.workspace, this.world.asking, this.notes, seconds))
    finally:
        this.world.provider.always = None


def two_at_once(this: Round) -> None:
    """The second of two builds stops in words; the first is killed or let be."""
    first, told = start(this.workspace, this.world.config, this.notes, Trouble())
    lock = this.workspace / "lock"
    while not (lock.exists() and lock.read_text()) and first.is_alive():
        time.sleep(0.01)
    second = run(this.workspace, this.world.config, this.notes)
    spared = this.luck.random() < 0.5
    this.did = f"two at once; the first is {'let be' if spared else 'killed'}"
    if not spared:
        first.kill()
    this.ends += [second, ended(first, told)]
    assert second.how == "published" or "in use by process" in second.said, second


def damaged(this: Round) -> None:
    """A file of a finished or half-finished build is cut or overwritten."""
    at = this.luck.choice([None, this.luck.randrange(this.world.points // 2, this.world.points)])
    this.ends.append(run(this.workspace, this.world.config, this.notes, Trouble(kill_at=at)))
    victim = damage(this.workspace, this.luck)
    shutil.rmtree(this.workspace / "datasets", ignore_errors=True)
    this.did = f"{victim.relative_to(this.workspace).as_posix()[:40]} is damaged"


KINDS: Final[list[Callable[[Round], None]]] = [
    killed_at_a_write,
    disk_full,
    provider_ill,
    killed_by_the_clock,
    two_at_once,
    disk_ill,
    damaged,
    provider_gone_and_killed,
]


def as_told(workspace: Path) -> Callable[[End], None]:
    """Do what a stop's words ask for: delete the file or folder that they name; nothing else is ever needed."""

    def mend(end: End) -> None:
        assert end.hint, end
        for word in f"{end.said} {end.hint}".replace(",", " ").replace(";", " ").replace(": ", " ").split():
            path = Path(word)
            if "delete" in end.hint and path.is_absolute() and path.is_relative_to(workspace) and path != workspace:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    return mend


def play(world: World, number: int) -> tuple[str, str, str, list[str]]:
    """A round: (kind, what was done, how it ended, what is wrong)."""
    luck = random.Random(SEED * 1000 + number)
    kind = KINDS[number % len(KINDS)]
    this = Round(world, world.root / f"round-{number}" / "workspace", luck)
    this.workspace.parent.mkdir()
    try:
        kind(this)
        asking = "provider" in kind.__name__
        config = world.asking if asking else world.config
        ends = finish(this.workspace, config, this.notes, as_told(this.workspace))
        wrong = [end.said for end in [*this.ends, *ends] if end.how == "crashed"]
        wrong += [f"no words: {end}" for end in [*this.ends, *ends] if end.how == "stopped" and not end.hint]
        if ends[-1].how != "published":
            wrong.append(f"not finished: {ends[-1]}")
        elif fakes.tree(this.workspace / "datasets") != (world.asked_for if asking else world.expected):
            wrong.append("other bytes")
        told = " → ".join(end.how for end in [*this.ends, *ends])
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
