"""One finished workspace and one temporary Prefect server for all tests of this folder, made when first asked for."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flows import quiet
from flows.options import load_config
from tasks.engine.store import Store
from tasks.pipeline import Run
from tasks.results import Result, finish
from tests.builds import built
from tests.commands import environment

# Before anything imports Prefect, which reads its environment once: no home, server or profile of the developer's.
_HOME = tempfile.TemporaryDirectory(prefix="fedbench-prefect-", ignore_cleanup_errors=True)
for _name in [name for name in os.environ if name.startswith("PREFECT_")]:
    del os.environ[_name]
os.environ |= {"PREFECT_HOME": _HOME.name, "PREFECT_API_URL": ""}
quiet.settle()

# Now, and not inside a test: a console keeps the width that COLUMNS gives it when it is made.
os.environ.pop("COLUMNS", None)
import flows.console  # noqa: E402, F401


@dataclass(frozen=True)
class Finished:
    """A workspace in which a build of seven sample photos is done, the last of them rejected."""

    folder: Path
    run: Run
    result: Result

    @property
    def source(self) -> str:
        """Key of a source that has candidates."""
        return next(
            str(row.key)
            for shard, done in zip(self.run.executor.shards, self.run.executor.commits(), strict=True)
            for row in self.run.executor.kept("screen", shard, done)
        )

    @property
    def candidate(self) -> str:
        """Key of a candidate that was published."""
        return next(
            str(row.key)
            for shard, done in zip(self.run.executor.shards, self.run.executor.commits(), strict=True)
            for row in self.run.executor.kept("publish", shard, done)
        )


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Built without Prefect; for reading only."""
    folder = tmp_path_factory.mktemp("finished") / "workspace"
    with Store(folder).lock():
        run, done = built(folder, load_config("demo", None, ["limit=7"]))
        return Finished(folder, run, finish(run, done))


@pytest.fixture
def copied(finished: Finished, tmp_path: Path) -> Path:
    """A copy of the finished workspace, for damaging."""
    return Path(shutil.copytree(finished.folder, tmp_path / "workspace"))


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment for processes that start no server: as a newcomer's."""
    return environment(tmp_path_factory.mktemp("prefect"))


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """A temporary server, as `fedbench build` starts one."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield
