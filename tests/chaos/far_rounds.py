"""What befalls a build whose workspace is a bucket, and one whose people answer in Label Studio."""

import os
import time
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

from pydantic import SecretStr

from schemas.config import BuildConfig
from tasks.boards.access import Access, Person, read_access, write_access
from tasks.boards.simulate import Behaviour, play
from tasks.engine import places
from tasks.engine.errors import FedbenchError
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.reviewing import Review, collect_review, open_review, review_of
from tests import fakes
from tests.chaos.havoc import End, Trouble, finish, run
from tests.chaos.rounds import Round
from tests.chaos.store import Far, Spot
from tests.chaos.studio import PEOPLE, Studio

STEPS: Final = 60


class FarRound(Round):
    """A round in a bucket; who finishes it has perhaps never seen it."""

    @property
    def far(self) -> Far:
        assert self.world.far
        return self.world.far

    @cached_property
    def url(self) -> str:
        return self.far.bucket(f"chaos-{self.workspace.parent.name}")

    def machine(self, number: int) -> Spot:
        """The workspace as one of several machines finds it."""
        return self.far.spot(self.url, self.workspace.parent / f"cache-{number}")

    def finish(self) -> list[End]:
        self.far.well()
        return finish(self.machine(self.luck.randrange(2)), self.config, self.notes, lambda _: time.sleep(1), tries=6)

    def published(self) -> dict[str, bytes]:
        """As a machine sees it that looks for the first time."""
        forgotten = patch.dict(places._by_url, clear=True), patch.dict(places._by_root, clear=True)
        with patch.dict(os.environ), forgotten[0], forgotten[1]:
            return fakes.tree(self.machine(9).open(everything=True) / "datasets")


def store_ill(this: FarRound) -> None:
    """Requests fail before or after they were done, and bodies break off; the build may be killed, too."""
    far = this.far
    far.luck, far.share = this.luck, this.luck.uniform(0.02, 0.3)
    far.met.clear()
    at = this.luck.choice([None, this.luck.randrange(this.world.points)])
    this.ends.append(run(this.machine(0), this.config, this.notes, Trouble(kill_at=at)))
    what = ", ".join(f"{count} {fault}" for fault, count in sorted(far.met.items()))
    this.did = f"{far.share:.0%} of the requests fail ({what})"


def store_gone(this: FarRound) -> None:
    """From some request on nobody answers any more, several times, on one machine or another."""
    times = [this.luck.randrange(20, 1500) for _ in range(this.luck.randint(1, 3))]
    this.did = f"no answer after {', '.join(map(str, times))} requests"
    for number, gone in enumerate(times):
        this.far.gone = gone
        this.ends.append(run(this.machine(number % 2), this.config, this.notes))
        this.far.well()
        time.sleep(1)


class StudioRound(Round):
    """A round of a build that people review."""

    @cached_property
    def studio(self) -> Studio:
        return Studio(self.workspace, self.luck)

    @property
    def config(self) -> BuildConfig:
        return self.world.reviewing

    @property
    def expected(self) -> dict[str, bytes]:
        return self.world.reviewed

    def finish(self) -> list[End]:
        """Ask, answer, collect, and build; every step again until it comes to its end."""
        ends = [run(self.workspace, self.config, self.notes)]
        access = Access(
            people={name: Person(email=f"{name}@fedbench.local", token=SecretStr(name)) for name in PEOPLE},
            secret=SecretStr("5" * 64),
        )
        at_once = patch("tasks.boards.studio.time", SimpleNamespace(sleep=lambda _: None))
        with self.studio as studio, at_once, patch("tasks.boards.projects.BATCH", 20):
            write_access(Store(self.workspace), access.model_copy(update={"url": studio.url}))
            self._step(ends, lambda review: open_review(review, lambda *_: None))
            share, studio.share = studio.share, 0.0  # people have patience, those that are played have none
            self._step(ends, self._play)
            studio.share = share
            self._step(ends, collect_review)
            self._once_each(studio)
        self.did += f", {studio.restarts} times"
        return [*ends, run(self.workspace, self.config, self.notes)]

    def _play(self, review: Review) -> None:
        store, config = review.run.store, review.run.config
        play(store, read_access(store), config.name, config.review.cut, how=Behaviour(), tell=lambda *_: None)

    def _step(self, ends: list[End], step: Callable[[Review], object]) -> None:
        for _ in range(STEPS):
            try:
                step(review_of(open_run(self.workspace, self.config, extend=False)))
                return
            except FedbenchError as error:
                ends.append(End("stopped", error.message, error.hint))
        raise AssertionError(f"{STEPS} times in vain: {ends[-1]}")

    def _once_each(self, studio: Studio) -> None:
        """Nobody has a task twice, or two projects for the same."""
        items = [(task["project"], task["data"]["item"]) for task in studio.tasks.values()]
        assert items
        assert len(set(items)) == len(items)
        assert len({one["title"] for one in studio.projects.values()}) == len(studio.projects)
        assert all(len(task["annotations"]) == 1 for task in studio.tasks.values())


def studio_restarts(this: StudioRound) -> None:
    """Label Studio restarts while it is asked; the build may have been killed before."""
    this.studio.share = this.luck.uniform(0.02, 0.25)
    at = this.luck.choice([None, this.luck.randrange(this.world.points // 2)])
    this.ends.append(run(this.workspace, this.config, this.notes, Trouble(kill_at=at)))
    this.did = f"Label Studio restarts at {this.studio.share:.0%} of requests"
