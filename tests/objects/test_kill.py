"""SIGKILL at any request: another machine, with an empty cache, ends at the same bytes and pays for nothing twice."""

import json
import multiprocessing
import os
import random
import signal
from collections import Counter
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Final

import pytest

from schemas.answers import Ballot
from tasks.engine.bucket import Bucket
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.engine.ledger import Reply, Request
from tasks.engine.places import place
from tasks.voters import VOTERS
from tests import fakes
from tests.objects.conftest import forget

pytestmark = pytest.mark.s3
SETTINGS: Final = fakes.config("generate.measure.targets=[happy, sad]", "shard_size=2", sources=5)
FORKS: Final = multiprocessing.get_context("forkserver")
KILLS: Final = 12
SEED: Final = 8


class PaidVoter(fakes.FakeVoter):
    """Asks through the door; every answer it is billed for stands in a file that outlives the process."""

    bill: Path

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        def send() -> Reply:
            with self.bill.open("a") as file:
                file.write(f"{picture.digest} {self.params.name}\n")
            return Reply("yes", cost=1.0)

        call.ask(Request("voter", "p", self.params.name, images=(picture.digest,)), send)
        return super().vote(picture, call)


def child(url: str, cache: Path, notes: Path, fatal: int | None) -> None:
    """Build in this process; count its requests, and kill it before the one or behind it."""
    os.environ["FEDBENCH_CACHE"] = str(cache)
    passed: list[str] = []

    def around(name: str) -> None:
        original = getattr(Bucket, name)

        def wrapped(self: Bucket, what: Any, *args: Any, **kwargs: Any) -> Any:
            for moment in ("before", "behind"):
                if len(passed) == fatal:
                    os.kill(os.getpid(), signal.SIGKILL)
                passed.append(f"{moment} {name} {what}")
                if moment == "before":
                    result = original(self, what, *args, **kwargs)
            return result

        setattr(Bucket, name, wrapped)

    for name in ("put", "delete", "get"):
        around(name)
    fakes.install()
    PaidVoter.bill = notes / "bill"
    VOTERS.add("fake", PaidVoter)
    forget()
    fakes.build(place(url), SETTINGS)
    (notes / "requests").write_text(json.dumps(passed))


def run(url: str, cache: Path, notes: Path, fatal: int | None = None) -> int | None:
    notes.mkdir(exist_ok=True)
    process = FORKS.Process(target=child, args=(url, cache, notes, fatal))
    process.start()
    process.join(120)
    return process.exitcode


def data_set(url: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.setenv("FEDBENCH_CACHE", str(cache))
    forget()
    return fakes.tree(place(f"{url}/datasets", everything=True))


def test_a_kill_costs_nothing_on_another_machine(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a new machine has never seen cannot be told dead: this one waits, if not for long.
    monkeypatch.setenv("FEDBENCH_LEASE_S", "2")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    FORKS.set_forkserver_preload([__name__])
    forkserver.ensure_running()
    assert run(f"{bucket.url}/whole", tmp_path / "cache", tmp_path / "whole") == 0
    wanted = data_set(f"{bucket.url}/whole", tmp_path / "look", monkeypatch)
    bill = Counter((tmp_path / "whole" / "bill").read_text().splitlines())
    requests = json.loads((tmp_path / "whole" / "requests").read_text())
    assert len(bill) > 10
    assert set(bill.values()) == {1}
    assert len(wanted) > 5
    luck = random.Random(SEED)
    for round_, point in enumerate(sorted(luck.sample(range(len(requests)), KILLS))):
        url, notes = f"{bucket.url}/{round_}", tmp_path / f"notes-{round_}"
        assert run(url, tmp_path / f"a{round_}", notes, point) == -signal.SIGKILL, requests[point]
        assert run(url, tmp_path / f"b{round_}", notes) == 0, requests[point]
        assert data_set(url, tmp_path / f"c{round_}", monkeypatch) == wanted, requests[point]
        paid = Counter((notes / "bill").read_text().splitlines())
        assert paid.keys() == bill.keys()
        twice = paid.total() - bill.total()
        assert twice <= 1, f"{requests[point]}: {twice} answers were paid twice"
        if twice:  # it was in flight: its answer lay nowhere
            assert "journal" in requests[point], requests[point]
