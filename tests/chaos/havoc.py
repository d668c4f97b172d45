"""What a chaos round does to a build, in a process of its own: where it dies, what its disk says, and how it ended."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from schemas.config import BuildConfig
from tasks.engine.errors import FedbenchError
from tests import fakes
from tests.chaos.store import Spot
from tests.test_kill import FORKS, Points

WORDS: Final = 400


@dataclass(frozen=True)
class Trouble:
    """What befalls a process.

    Attributes:
        kill_at: The point (see tests/test_kill.py) at which it kills itself.
        disk_error: What opening and renaming of files says ...
        from_file: ... from this file on ...
        files: ... for so many; the disk is well again after them.
    """

    kill_at: int | None = None
    disk_error: int = 0
    from_file: int = 0
    files: int = 0


@dataclass(frozen=True)
class End:
    """How a process ended: `published`, `stopped` (with the words for its reader), `killed` or `crashed`."""

    how: str
    said: str = ""
    hint: str = ""
    points: int = 0


def _child(where: Path | Spot, config: BuildConfig, trouble: Trouble, told: Path) -> None:
    os.fsync = lambda _: None  # type: ignore[assignment]  # a killed process loses nothing that was not flushed
    points = Points(trouble.kill_at)
    for owner, name in ((Path, "replace"), (Path, "rename")):
        points.around(owner, name, after=True)
    if trouble.disk_error:
        _ill_disk(trouble)
    fakes.install()
    try:
        workspace = where.open() if isinstance(where, Spot) else where
        fakes.build(workspace, config, threads=2)
        end = End("published", points=len(points.passed))
    except FedbenchError as error:
        end = End("stopped", error.message, error.hint)
    told.write_text(json.dumps(end.__dict__))


def _ill_disk(trouble: Trouble) -> None:
    """Let some files fail to open for writing, or to take their place."""
    count = iter(range(10**9))

    def fails() -> bool:
        return 0 <= next(count) - trouble.from_file < trouble.files

    opened, replaced = Path.open, Path.replace

    def open_(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if "w" in mode and self.parent.name == "tmp" and fails():
            raise OSError(trouble.disk_error, os.strerror(trouble.disk_error), str(self))
        return opened(self, mode, *args, **kwargs)

    def replace(self: Path, target: Any) -> Any:
        if fails():
            raise OSError(trouble.disk_error, os.strerror(trouble.disk_error), str(self))
        return replaced(self, target)

    Path.open, Path.replace = open_, replace  # type: ignore[method-assign, assignment]


def start(workspace: Path | Spot, config: BuildConfig, notes: Path, trouble: Trouble) -> tuple[BaseProcess, Path]:
    """A build in a process of its own; and the file in which it says how it ended."""
    notes.mkdir(exist_ok=True)
    told = notes / f"told-{time.monotonic_ns()}.json"
    process = FORKS.Process(target=_child, args=(workspace, config, trouble, told))
    process.start()
    return process, told


def ended(process: BaseProcess, told: Path) -> End:
    """How it ended, once it has."""
    process.join(300)
    if process.exitcode is None:
        process.kill()
        return End("crashed", "it hung for 300 s")
    if told.exists():
        return End(**json.loads(told.read_text()))
    killed = process.exitcode == -signal.SIGKILL
    return End("killed") if killed else End("crashed", f"exit code {process.exitcode}; its traceback is above")


def run(workspace: Path | Spot, config: BuildConfig, notes: Path, trouble: Trouble | None = None) -> End:
    """Build to the end, whichever it is."""
    return ended(*start(workspace, config, notes, trouble or Trouble()))


def run_and_kill(workspace: Path | Spot, config: BuildConfig, notes: Path, seconds: float) -> End:
    """Build, and SIGKILL it after so long by the clock, wherever it is then."""
    process, told = start(workspace, config, notes, Trouble())
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
    return ended(process, told)


def finish(
    workspace: Path | Spot, config: BuildConfig, notes: Path, mend: Callable[[End], None], tries: int = 4
) -> list[End]:
    """Build undisturbed, doing what each stop's words say, until it is published; the ends in order."""
    ends = []
    for _ in range(tries):
        ends.append(run(workspace, config, notes))
        if ends[-1].how != "stopped":
            return ends
        mend(ends[-1])
    return ends


def damage(workspace: Path, luck: random.Random) -> Path:
    """Cut, empty or overwrite one stored file, as a failing disk does; which one."""
    files = sorted(path for path in (workspace / "stages").rglob("*") if path.is_file())
    files += sorted((workspace / "runs").rglob("plan-*/*.json"))
    victim = luck.choice(files)
    data = victim.read_bytes()
    place = luck.randrange(max(1, len(data)))
    victim.write_bytes(luck.choice([b"", data[:place], data[:place] + b"\0" * 64 + data[place + 64 :]]))
    return victim
