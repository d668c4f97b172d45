"""Builds in processes: the same bytes as in threads, and a process that is killed costs its shard in flight."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from flows.processes import TRIES, Processes, processes
from schemas.config import BuildConfig
from tasks import pipeline
from tasks.dataset.write import publish
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.rows import Commit
from tasks.engine.store import Store
from tasks.rounds import Job, Mapper
from tests import fakes
from tests.commands import wait_until
from tests.scaling import plugged

SETTINGS: Final = fakes.config("generate.measure.targets=[happy, sad]", "shard_size=1", sources=9)
EDITS_OF_A_SHARD: Final = 2


def mapper(held: Processes) -> Mapper:
    def mapped(jobs: Sequence[Job]) -> Iterable[tuple[Job, dict[str, Commit]]]:
        with ThreadPoolExecutor(2) as threads:
            yield from zip(jobs, threads.map(lambda job: held.do(partial(plugged.work, job)), jobs), strict=True)

    return mapped


def build(workspace: Path, config: BuildConfig, held: Processes) -> dict[str, bytes]:
    pipeline._worker.cache_clear()
    with Store(workspace).lock():
        run = pipeline.open_run(workspace, config)
        return fakes.tree(publish(run, pipeline.build(run, mapper(held))).folder)


def hold_up(marker: Path) -> None:
    """Die with the process that is given this, until there is a marker."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def die() -> None:
    os._exit(3)


def refuse() -> None:
    raise ConfigError("no", "yes")


@pytest.fixture(scope="module")
def held() -> Iterable[Processes]:
    with processes(2) as found:
        yield found


def test_a_build_with_a_process_killed_midway_is_the_same(tmp_path: Path, held: Processes) -> None:
    fakes.install()
    plain = fakes.build(tmp_path / "plain" / "workspace", SETTINGS)
    workspace = tmp_path / "killed" / "workspace"
    workspace.parent.mkdir()
    edits = lambda: [note for note in plugged.asked(workspace) if note[0] == "edit"]  # noqa: E731

    def kill() -> None:
        wait_until(lambda: len(edits()) >= plain.counts["edit"] // 3, 60, "a third of the edits")
        os.kill(edits()[-1][2], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert build(workspace, SETTINGS, held) == plain.tree()
    killer.join()
    made = Counter(subject for _, subject, _ in edits())
    assert len(made) == plain.counts["edit"]
    assert sum(made.values()) <= len(made) + EDITS_OF_A_SHARD, "no more than one shard's edits were made again"
    assert len({pid for _, _, pid in plugged.asked(workspace)}) == 3, "two processes, and the one in place of the dead"


def test_what_killed_one_process_is_done_by_another(tmp_path: Path, held: Processes) -> None:
    assert held.do(partial(hold_up, tmp_path / "marker")) is None


def test_what_kills_every_process_is_told_in_a_line(held: Processes) -> None:
    with pytest.raises(WorkspaceError, match=f"{TRIES} processes died"):
        held.do(die)


def test_an_error_of_ours_comes_through_with_its_hint(held: Processes) -> None:
    with pytest.raises(ConfigError) as caught:
        held.do(refuse)
    assert (caught.value.message, caught.value.hint) == ("no", "yes")
