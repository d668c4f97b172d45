"""A judge that is asked again on another day: what is sampled, asked, recorded, and never replaced."""

import json
import sqlite3
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from schemas.score_config import ScoreConfig
from schemas.scoring import Part
from tasks.engine.errors import BatchesWaiting, StoppedError
from tasks.scoring.drift import check_drift, planned
from tasks.scoring.price import asks
from tasks.scoring.results import Results, finish
from tasks.scoring.run import due, measure, open_scoring
from tests.doors import routes
from tests.providers.loopback import Asked, Loopback
from tests.providers.loopback_batches import Batching
from tests.scoring.runs import config, files, in_threads, score, score_of

TODAY = datetime.now(UTC).date()
OUTPUTS = 4


def kinder(asked: Asked) -> str:
    """The same judge, half a point kinder."""
    told = json.loads(score_of(asked))
    return json.dumps(told | {"score": min(10.0, told["score"] + 0.5)})


def age(workspace: Path, days: int) -> None:
    """Let all stored answers be so much older."""
    with sqlite3.connect(workspace / "answers.sqlite") as db:
        db.execute("UPDATE answers SET at = datetime(at, ?)", [f"-{days} days"])


def settings(dataset: Path, provider: Loopback, *editors: str, **changes: Any) -> ScoreConfig:
    called = [{"called": name, "adapter": name} for name in editors or ("fake-plain",)]
    values = {"editors": called, "granularities": ["simple"], "drift": {"outputs": OUTPUTS}}
    return config(dataset, provider, **values | changes)


def again(workspace: Path, chosen: ScoreConfig, today: date = TODAY) -> tuple[Results, int]:
    """Score as the flow does: plan, check, measure; and how many questions the price names."""
    run = open_scoring(workspace, chosen)
    try:
        left = due(run)
        plan = planned(run, today, asks=any(counts["score_judge"] for counts in left))
        priced = sum(ask.questions for ask in asks(run, left, plan))
        check_drift(run, plan, today)
        measure(run, in_threads(1), lambda *_: None)
        return finish(run), priced
    finally:
        run.call.close()


def test_old_answers_beside_new_ones_are_checked_and_kept(dataset: Path, tmp_path: Path) -> None:
    with Loopback(answer=score_of) as provider:
        before = score(tmp_path, settings(dataset, provider))
    age(tmp_path, 9)
    first = (TODAY - timedelta(days=9)).isoformat()
    with Loopback(answer=kinder) as provider:
        results, priced = again(tmp_path, settings(dataset, provider, "fake-plain", "fake"))
        assert len(provider.met) <= priced
    assert results.judging is not None
    assert len(results.judging.checks) == 2
    for check in results.judging.checks:
        assert (check.on, check.first, check.last, check.outputs) == (TODAY.isoformat(), first, first, OUTPUTS)
        pq, sc, gta = check.parts
        assert (pq.part, pq.outputs, pq.answers, pq.mean) == (Part.PQ, OUTPUTS, OUTPUTS, pytest.approx(0.5))
        assert (sc.outputs, sc.answers, sc.mean) == (OUTPUTS, 2 * OUTPUTS, pytest.approx(0.5))
        assert gta.mean == pytest.approx(0.5)
    days = {(one.editor, one.judge): (one.first, one.last) for one in results.judging.judged}
    assert days == {
        ("fake-plain", "Ada"): (first, first),
        ("fake-plain", "Bo"): (first, first),
        ("fake", "Ada"): (TODAY.isoformat(), TODAY.isoformat()),
        ("fake", "Bo"): (TODAY.isoformat(), TODAY.isoformat()),
    }
    # The stored answers count as they did.
    plain = next(one for one in results.scores if one.editor == "fake-plain")
    assert plain.whole == before.scores[0].whole
    with Loopback(answer=kinder) as provider:
        once_more, _ = again(tmp_path, settings(dataset, provider, "fake-plain", "fake"))
        assert provider.met == []
    assert files(once_more) == files(results)


def test_nothing_is_asked_again_without_need(dataset: Path, tmp_path: Path) -> None:
    with Loopback(answer=score_of) as provider:
        score(tmp_path, settings(dataset, provider))
        age(tmp_path, 9)
        asked = len(provider.met)
        # Another cut asks nothing, however old the answers are.
        results, _ = again(tmp_path, settings(dataset, provider, cut={"normaliser": "linear50"}))
        assert results.judging is not None
        assert (len(provider.met), results.judging.checks) == (asked, ())
        never = settings(dataset, provider, "fake-plain", "fake", drift={"when": "never"})
        results, _ = again(tmp_path, never)
        assert results.judging is not None
        assert results.judging.checks == ()
        now = {"when": "now", "outputs": 2}
        asked = len(provider.met)
        results, priced = again(tmp_path, settings(dataset, provider, drift=now))
        assert len(provider.met) == asked + 2 * 2 * 5 == asked + priced
        # On the same day its answers are there; a day later, too, for they still count.
        again(tmp_path, settings(dataset, provider, drift=now), TODAY + timedelta(days=1))
        assert len(provider.met) == asked + 2 * 2 * 5


def test_a_check_that_was_stopped_goes_on_and_is_not_paid_twice(dataset: Path, tmp_path: Path) -> None:
    with Loopback(answer=score_of) as provider:
        score(tmp_path, settings(dataset, provider))
        age(tmp_path, 9)
        asked = len(provider.met)
        price = {"input_per_mtok": 0, "output_per_mtok": 0, "per_image": 0.01, "as_of": "2026-11-01"}
        judges = [
            {"name": "mllm", "params": {"name": name, "routes": routes(provider, name, price=price)}}
            for name in ("Ada", "Bo")
        ]
        now = {"when": "now", "outputs": OUTPUTS}
        poor = {"backoff_s": 0.01, "attempts": 2, "budget": 0.2, "in_flight": 1}
        with pytest.raises(StoppedError, match="budget"):
            again(tmp_path, settings(dataset, provider, judges=judges, drift=now, calls=poor))
        spent = len(provider.met) - asked
        assert 0 < spent < 2 * 5 * OUTPUTS
        results, _ = again(tmp_path, settings(dataset, provider, judges=judges, drift=now), TODAY + timedelta(days=1))
        assert len(provider.met) == asked + 2 * 5 * OUTPUTS
    assert results.judging is not None
    assert {part.mean for check in results.judging.checks for part in check.parts} == {0}


def test_new_answers_that_are_none_are_counted(dataset: Path, tmp_path: Path) -> None:
    with Loopback(answer=score_of) as provider:
        score(tmp_path, settings(dataset, provider))
    age(tmp_path, 9)

    def shy(asked: Asked) -> str:
        return "I cannot judge real people." if len(asked.pictures) == 1 else score_of(asked)

    with Loopback(answer=shy) as provider:
        results, _ = again(tmp_path, settings(dataset, provider, drift={"when": "now", "outputs": 3}))
    assert results.judging is not None
    for check in results.judging.checks:
        assert (check.abstained, check.unreached) == (3, 0)
        assert [(part.outputs, part.mean) for part in check.parts] == [(0, None), (3, 0), (3, 0)]
    with Loopback(answer=score_of, share=1.0, faults=("500",)) as down:
        chosen = settings(dataset, down, drift={"when": "now", "outputs": 3})
        results, _ = again(tmp_path, chosen, TODAY + timedelta(days=5))
    assert results.judging is not None
    assert [check.unreached for check in results.judging.checks] == [0, 0, 15, 15]


def test_a_check_by_batch_is_collected_on_another_day(dataset: Path, tmp_path: Path) -> None:
    with Batching(answer=score_of) as provider:
        judges = [{"name": "mllm", "params": {"name": "Ada", "routes": routes(provider, "Ada", batch=True)}}]
        waits = {"backoff_s": 0.01, "batches": {"poll_s": 0.01}}
        score(tmp_path, settings(dataset, provider, judges=judges, calls=waits))
        age(tmp_path, 9)
        now = {"when": "now", "outputs": OUTPUTS}
        sent = len(provider.batches)
        leaves = {"backoff_s": 0.01, "batches": {"poll_s": 0.01, "wait": False}}
        with pytest.raises(BatchesWaiting):
            again(tmp_path, settings(dataset, provider, judges=judges, drift=now, calls=leaves))
        later = TODAY + timedelta(days=1)
        results, _ = again(tmp_path, settings(dataset, provider, judges=judges, drift=now, calls=waits), later)
        assert len(provider.batches) == sent + 1
    assert results.judging is not None
    assert [check.outputs for check in results.judging.checks] == [OUTPUTS]
