"""One small real data set, built once: six sample photos, four triplets, and rows that ended in many ways."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas.published import PICTURES
from tasks.dataset.release import packed, released
from tasks.dataset.write import publish
from tasks.engine.rows import Commit
from tasks.pipeline import Run
from tests import fakes
from tests.builds import built, config


@dataclass(frozen=True)
class Built:
    """A build and the folder of its data set, which no test may change."""

    run: Run
    done: Sequence[dict[str, Commit]]
    folder: Path


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Built:
    run, done = built(tmp_path_factory.mktemp("small"), config(seed=1, limit=6))
    return Built(run, done, publish(run, done).folder)


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A data set of drawn photos, quick to build: nine triplets, and rejected edits with their pictures."""
    fakes.install()
    made = fakes.build(tmp_path_factory.mktemp("drawn"), fakes.config(sources=20))
    assert made.published is not None
    return Built(made.run, made.done, made.published.folder)


@dataclass(frozen=True)
class Releases:
    """What was made of a full data set; no test may change them."""

    full: Path
    index: Path
    pack: Path


@pytest.fixture(scope="session")
def releases(drawn: Built, tmp_path_factory: pytest.TempPathFactory) -> Releases:
    out = tmp_path_factory.mktemp("releases")
    return Releases(
        released(drawn.folder, out / "full", PICTURES),
        released(drawn.folder, out / "index", ()),
        packed(drawn.folder, out / "pack", PICTURES),
    )
