"""SIGKILL while judges answer: nothing that was answered is paid again, and the scores are the same to the byte."""

import multiprocessing
import os
import signal
import sqlite3
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from schemas.score_config import ScoreConfig
from tasks.distances import DISTANCES
from tests import fakes
from tests.providers.loopback import Asked, Loopback
from tests.scoring.runs import Mean, config, files, score, score_of

FORKS: Final = multiprocessing.get_context("forkserver")
IN_FLIGHT: Final = 3


def settings(dataset: Path, provider: Any) -> ScoreConfig:
    calls = {"backoff_s": 0.01, "attempts": 1, "in_flight": IN_FLIGHT}
    return config(dataset, provider, granularities=["simple"], calls=calls)


def child(workspace: Path, dataset: Path, url: str) -> None:
    """Score in this process, which is killed meanwhile."""
    fakes.install()
    DISTANCES.add("mean", Mean)
    score(workspace, settings(dataset, SimpleNamespace(url=url)))


def test_what_was_answered_before_a_kill_is_not_paid_again(dataset: Path, tmp_path: Path) -> None:
    with Loopback(answer=score_of) as provider:
        whole = score(tmp_path / "whole", settings(dataset, provider))
        total = len(provider.met)
    assert total > 60
    victims: list[int] = []
    fatal = total

    def deadly(asked: Asked) -> str:
        if 0 < fatal <= len(provider.met):  # several are answered at once, and none may see the very number
            with suppress(ProcessLookupError):
                os.kill(victims[-1], signal.SIGKILL)
        return score_of(asked)

    workspace, stored = tmp_path / "killed", 0
    with Loopback(answer=deadly) as provider:
        for share in (2,):
            fatal = len(provider.met) + (total - stored) // share
            process = FORKS.Process(target=child, args=(workspace, dataset, provider.url))
            process.start()
            victims.append(process.pid or 0)
            process.join(500)
            assert process.exitcode == -signal.SIGKILL
            with sqlite3.connect(workspace / "answers.sqlite") as db:
                before, (stored,) = stored, db.execute("SELECT count(*) FROM answers").fetchone()
                (unknown,) = db.execute("SELECT count(*) FROM ledger WHERE outcome = 'unknown'").fetchone()
            assert before < stored < total
            assert 1 <= unknown <= IN_FLIGHT * len(victims), "what was in flight, and it is told"
        sent, fatal = len(provider.met), 0
        resumed = score(workspace, settings(dataset, provider))
        assert len(provider.met) == sent + total - stored
        assert total < len(provider.met) <= total + 2 * IN_FLIGHT
        assert max(provider.sent_times.values()) <= 3
    assert files(resumed)["scores.parquet"] == files(whole)["scores.parquet"]
    assert files(resumed)["manifest.json"] == files(whole)["manifest.json"]
