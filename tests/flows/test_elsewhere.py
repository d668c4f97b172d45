"""Builds whose shards are worked on elsewhere, while whoever asks outside stays in the coordinator: nothing differs."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prefect.task_runners import ThreadPoolTaskRunner

from flows import runner
from flows.crews import Crew
from schemas.config import BuildConfig
from tasks import pipeline
from tasks.engine import answer_file
from tasks.engine.answer_file import AnswerFile, leave_to_coordinator
from tasks.engine.errors import ContractError
from tasks.pipeline import Run
from tests.fakes import tree
from tests.providers.loopback_batches import Batching
from tests.test_batched_build import answers, batched
from tests.test_panel_build import answer, build


@pytest.fixture
def provider() -> Iterator[Batching]:
    with Batching(answer=answer) as held:
        yield held


def decided(workspace: Path) -> dict[str, bytes]:
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.glob("stages/*/*/decided-*")}


@pytest.mark.usefixtures("prefect_server")
def test_a_segment_in_parts_gives_the_same(provider: Batching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked in batches, for which shards come round again. The crew elsewhere are threads, that have models loaded."""
    settings = batched(provider).model_copy(update={"limit": 4})
    _, whole = build(tmp_path / "whole", settings)
    asked = len(provider.met)
    del provider.met[:]
    submitted: list[str] = []

    @contextmanager
    def crew(_: Run) -> Iterator[Crew]:
        def asking(part: Any) -> Any:
            submitted.append(part.name)
            return monkeypatch.context()

        yield Crew(ThreadPoolTaskRunner(max_workers=2), asking=asking)

    monkeypatch.setattr(runner, "crew", crew)
    result = flow(settings.model_copy(update={"runner": "processes"}), tmp_path / "parts")
    assert tree(result.dataset) == tree(whole.dataset)
    assert decided(tmp_path / "parts") == decided(tmp_path / "whole")
    assert answers(tmp_path / "parts") == answers(tmp_path / "whole")
    assert len(provider.met) == asked
    parts = Counter({"screen": 2, "generate": 2, "rank": 2})
    assert Counter(submitted) == parts, "what asks outside stayed here, and nothing was done twice"


def flow(settings: BuildConfig, workspace: Path) -> Any:
    from flows.build import build_dataset
    from flows.states import answer as answer_of

    pipeline._worker.cache_clear()
    return answer_of(build_dataset(settings, str(workspace)))


def test_a_worker_cannot_open_the_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_file, "_worker", type(answer_file._worker)())
    file = AnswerFile(tmp_path / "answers.sqlite")
    leave_to_coordinator()
    with pytest.raises(ContractError, match="asked outside in a worker"):
        file.do(lambda db: db.execute("SELECT 1"))
    assert not (tmp_path / "answers.sqlite").exists()
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{tmp_path / 'answers.sqlite'}?mode=ro", uri=True).execute("SELECT 1")
