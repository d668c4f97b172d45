"""What befalls a build in a workspace of this machine, round by round; each leaves it to be finished."""

import errno
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from schemas.config import BuildConfig
from tests import fakes
from tests.chaos.havoc import End, Trouble, damage, ended, finish, run, run_and_kill, start
from tests.chaos.store import Far
from tests.providers.loopback import TRANSIENT, Loopback

FAULTS: Final = tuple(fault for fault in TRANSIENT if fault not in ("hang", "drip"))


@dataclass
class World:
    """What all rounds share.

    Attributes:
        root: For workspaces.
        config, expected, points: The plain build, its bytes, and how often its files were renamed.
        asking, asked_for: The build whose captions a provider writes, and its bytes.
        reviewing, reviewed: The build that people review, and its bytes.
        seconds: That the plain one took.
        far: A store of objects, where what it takes is installed.
    """

    root: Path
    provider: Loopback
    config: BuildConfig
    asking: BuildConfig
    reviewing: BuildConfig
    expected: dict[str, bytes] = field(default_factory=dict)
    asked_for: dict[str, bytes] = field(default_factory=dict)
    reviewed: dict[str, bytes] = field(default_factory=dict)
    points: int = 0
    seconds: float = 0.0
    far: Far | None = None


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

    @property
    def config(self) -> BuildConfig:
        return self.world.config

    @property
    def expected(self) -> dict[str, bytes]:
        return self.world.expected

    def finish(self) -> list[End]:
        """Build undisturbed, as the words of each stop say."""
        return finish(self.workspace, self.config, self.notes, as_told(self.workspace))

    def published(self) -> dict[str, bytes]:
        return fakes.tree(self.workspace / "datasets")


class AskingRound(Round):
    """A round of the build whose captions a provider writes."""

    @property
    def config(self) -> BuildConfig:
        return self.world.asking

    @property
    def expected(self) -> dict[str, bytes]:
        return self.world.asked_for


def as_told(workspace: Path) -> Callable[[End], None]:
    """Do what a stop's words ask for: delete the file or folder that they name; nothing else is ever needed."""

    def mend(end: End) -> None:
        assert end.hint, end
        for word in f"{end.said} {end.hint}".replace(",", " ").replace(";", " ").replace(": ", " ").split():
            path = Path(word)
            if "delete" in end.hint and path.is_absolute() and path.is_relative_to(workspace) and path != workspace:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    return mend


# -- rounds: each does its worst, and leaves the build to be finished --------------------------------------------------


def killed_at_a_write(this: Round) -> None:
    at = this.luck.randrange(this.world.points)
    this.did = f"SIGKILL at rename {at} of {this.world.points}"
    this.ends.append(run(this.workspace, this.config, this.notes, Trouble(kill_at=at)))


def killed_by_the_clock(this: Round) -> None:
    times = [this.luck.uniform(0, this.world.seconds) for _ in range(this.luck.randint(1, 4))]
    this.did = "SIGKILL after " + ", ".join(f"{one:.1f}" for one in times) + " s"
    for one in times:
        this.ends.append(run_and_kill(this.workspace, this.config, this.notes, one))


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
    this.ends.append(run(this.workspace, this.config, this.notes))
    subprocess.run(["mount", "-o", f"remount,size={4 * need}", this.workspace], check=True)


def disk_ill(this: Round, error: int = 0) -> None:
    error = error or this.luck.choice([errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT])
    at, files = this.luck.randrange(this.world.points), this.luck.choice([1, 3, 10**6])
    this.did = f"{errno.errorcode[error]} from file {at} on, {files if files < 10**6 else 'all'} of them"
    trouble = Trouble(disk_error=error, from_file=at, files=files)
    this.ends.append(run(this.workspace, this.config, this.notes, trouble))


def provider_ill(this: Round) -> None:
    """Answers that are cut, refused, late or no answers; or a key that is refused halfway."""
    provider = this.world.provider
    provider.seed, provider.share, provider.faults = this.luck.randrange(10**6), this.luck.uniform(0.1, 0.6), FAULTS
    wrong_key = this.luck.random() < 0.3
    this.did = "the key is refused" if wrong_key else f"{provider.share:.0%} of the calls fail"
    provider.always = "401" if wrong_key else None
    try:
        this.ends.append(run(this.workspace, this.config, this.notes))
    finally:
        provider.share, provider.always = 0.0, None


def provider_gone_and_killed(this: Round) -> None:
    """Nobody answers for a while, and the build is killed while it asks again."""
    this.did = "the provider only fails, then SIGKILL"
    this.world.provider.always = this.luck.choice(["503", "reset", "html"])
    try:
        seconds = this.luck.uniform(0.5, 1.5) * this.world.seconds
        this.ends.append(run_and_kill(this.workspace, this.config, this.notes, seconds))
    finally:
        this.world.provider.always = None


def two_at_once(this: Round) -> None:
    """The second of two builds stops in words; the first is killed or let be."""
    first, told = start(this.workspace, this.config, this.notes, Trouble())
    lock = this.workspace / "lock"
    while not (lock.exists() and lock.read_text()) and first.is_alive():
        time.sleep(0.01)
    second = run(this.workspace, this.config, this.notes)
    spared = this.luck.random() < 0.5
    this.did = f"two at once; the first is {'let be' if spared else 'killed'}"
    if not spared:
        first.kill()
    this.ends += [second, ended(first, told)]
    assert second.how == "published" or "in use by process" in second.said, second


def damaged(this: Round) -> None:
    """A file of a finished or half-finished build is cut or overwritten."""
    at = this.luck.choice([None, this.luck.randrange(this.world.points // 2, this.world.points)])
    this.ends.append(run(this.workspace, this.config, this.notes, Trouble(kill_at=at)))
    victim = damage(this.workspace, this.luck)
    shutil.rmtree(this.workspace / "datasets", ignore_errors=True)
    this.did = f"{victim.relative_to(this.workspace).as_posix()[:40]} is damaged"
