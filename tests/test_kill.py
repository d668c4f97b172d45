"""SIGKILL wherever the disk changes: the next run ends where an undisturbed one does, and repeats next to nothing.

Children are forked from a server without threads. A child counts the points of its build: before a temporary file is
written, before it is renamed, after it was; the same for the data set's own renames. At the n-th it kills itself.
"""

import json
import multiprocessing
import os
import re
import signal
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Final

import pytest

from tasks.engine.store import Store
from tests import fakes

SETTINGS: Final = fakes.config("generate.measure.targets=[happy, sad]", "shard_size=1", sources=5)
EDITS_IN_FLIGHT: Final = 2  # those of one source
FORKS: Final = multiprocessing.get_context("forkserver")
SAMPLE: Final = 28


class Points:
    """Counts the points of a process, and kills it at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.passed: list[str] = []
        self.fatal = fatal

    def pass_one(self, file: object) -> None:
        if len(self.passed) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed.append(str(file))

    def around(self, owner: Any, name: str, *, after: bool) -> None:
        """Put a point before the calls of a method or function, and perhaps one after."""
        original = getattr(owner, name)

        def wrapped(self_: Any, *args: Any, **kwargs: Any) -> Any:
            file = args[0] if args else self_
            self.pass_one(file)
            result = original(self_, *args, **kwargs)
            if after:
                self.pass_one(file)
            return result

        setattr(owner, name, wrapped)


def child(workspace: Path, notes: Path, fatal: int | None) -> None:
    """Build in this process; leave the points' files, and a byte per edit made, which outlives it."""
    os.fsync = lambda _: None  # type: ignore[assignment]  # a killed process loses nothing that was not flushed
    points = Points(fatal)
    points.around(Store, "write", after=False)
    points.around(Path, "replace", after=True)
    points.around(Path, "rename", after=True)
    edits = os.open(notes / "edits", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    world = fakes.install()

    def note(role: str, _: str) -> None:
        if role == "edit":
            os.write(edits, b".")

    world.trouble = note
    fakes.build(workspace, SETTINGS)
    (notes / "points").write_text(json.dumps(points.passed))


def run(root: Path, fatal: int | None = None) -> int | None:
    """Build below `root` in a child; its exit code, negative where a signal ended it."""
    root.mkdir(exist_ok=True)
    process = FORKS.Process(target=child, args=(root / "workspace", root, fatal))
    process.start()
    process.join(60)
    return process.exitcode


def edits(root: Path) -> int:
    return (root / "edits").stat().st_size


def decided(root: Path) -> dict[Path, tuple[int, int]]:
    """Where the decided commits are, and what tells whether one was written again."""
    found = (root / "workspace").glob("stages/*/*/decided-*.json")
    return {path.relative_to(root): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def contents(root: Path) -> dict[str, Any]:
    """All decided commits: among them the digest of every decided row."""
    return {
        path.relative_to(root).as_posix(): json.loads(path.read_bytes())
        for path in root.glob("workspace/stages/*/*/decided-*")
    }


@dataclass(frozen=True)
class Undisturbed:
    """What a build leaves that nobody killed."""

    tree: dict[str, bytes]
    decided: dict[str, Any]
    edits: int
    points: list[str]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    # The server looks for what it should load before it is told our path.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        FORKS.set_forkserver_preload([__name__])
        forkserver.ensure_running()
    root = tmp_path_factory.mktemp("undisturbed")
    assert run(root) == 0
    return Undisturbed(
        fakes.tree(root / "workspace" / "datasets"),
        contents(root),
        edits(root),
        json.loads((root / "points").read_text()),
    )


def resume_after_kill(root: Path, undisturbed: Undisturbed, point: int) -> None:
    """Kill at a point, build again, and compare."""
    assert run(root, point) == -signal.SIGKILL
    before = decided(root)
    assert run(root) == 0
    assert decided(root).items() >= before.items(), "a finished shard was written again"
    assert contents(root) == undisturbed.decided
    assert fakes.tree(root / "workspace" / "datasets") == undisturbed.tree
    assert undisturbed.edits <= edits(root) <= undisturbed.edits + EDITS_IN_FLIGHT
    assert not list((root / "workspace" / "tmp").glob("*"))


def test_there_is_something_to_kill(undisturbed: Undisturbed) -> None:
    assert undisturbed.edits > 4
    assert len(undisturbed.points) > 300
    assert len({name.split("/")[3] for name in undisturbed.decided}) > 3  # shards


@pytest.mark.parametrize("share", range(SAMPLE))
def test_a_kill_costs_nothing(tmp_path: Path, undisturbed: Undisturbed, share: int) -> None:
    resume_after_kill(tmp_path, undisturbed, share * (len(undisturbed.points) - 1) // (SAMPLE - 1))


def test_edits_count_before_their_shard_does(tmp_path: Path, undisturbed: Undisturbed) -> None:
    """Killed when all edits of a shard are made and none of it is published, none is made again."""
    ends = [place for place, file in enumerate(undisturbed.points) if re.search(r"stages/generate/\w+/measured-", file)]
    assert len(ends) > 6
    for point in ends[::3]:
        root = tmp_path / str(point)
        resume_after_kill(root, undisturbed, point)
        assert edits(root) == undisturbed.edits


@pytest.mark.slow
def test_a_kill_costs_nothing_at_any_point(tmp_path: Path, undisturbed: Undisturbed) -> None:
    for point in range(len(undisturbed.points)):
        resume_after_kill(tmp_path / str(point), undisturbed, point)


def test_three_kills_in_a_row_cost_nothing(tmp_path: Path, undisturbed: Undisturbed) -> None:
    for share in (3, 4, 5):
        assert run(tmp_path, len(undisturbed.points) // share) == -signal.SIGKILL
    assert run(tmp_path) == 0
    assert fakes.tree(tmp_path / "workspace" / "datasets") == undisturbed.tree
    assert edits(tmp_path) <= undisturbed.edits + 3 * EDITS_IN_FLIGHT
