"""One small real data set, built once: six sample photos, four triplets, and rows that ended in many ways."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.dataset.write import publish
from tasks.engine.rows import Commit
from tasks.pipeline import Run
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
