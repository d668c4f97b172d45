"""Scoring runs on drawn photos: what is asked, kept, failed, resumed and refused. Real photos: test_baselines.py."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.outcomes import Abstention, FailureKind
from schemas.scoring import PartStatus, ScoreRow, State
from tasks.dataset.read import data_set
from tasks.dataset.release import released
from tasks.engine.errors import ConfigError, StoppedError, TooManyFailures
from tasks.engine.images import ImageStore
from tasks.engine.store import Store
from tasks.scoring.checks import check
from tasks.scoring.run import due, open_scoring
from tasks.withdrawal.withdraw import Wish, withdraw
from tests import fakes
from tests.doors import routes
from tests.providers.loopback import Asked, Loopback
from tests.providers.loopback_batches import Batching
from tests.scoring.runs import Mean, config, files, read_scores, rows_of, score, score_of


def test_every_output_is_scored_and_a_second_run_is_idle(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    settings = config(dataset, provider)
    results = score(tmp_path, settings)
    rows = rows_of(results)
    triplets = data_set(dataset).triplets
    assert triplets >= 4
    assert len(rows) == triplets * 2 * 2 == results.manifest.rows
    assert {row.scored.state for row in rows} >= {State.SCORED}
    assert all(len(row.judged) == 2 * 5 for row in rows if row.rule)
    assert {len(row.instruction) > 0 for row in rows} == {True}
    asked, worked, distances = len(provider.met), len(fakes.world().asked), Mean.asked
    again = score(tmp_path, settings)
    assert files(again) == files(results)
    assert (len(provider.met), len(fakes.world().asked), Mean.asked) == (asked, worked, distances)


def test_another_cut_runs_no_model_and_asks_nothing(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    first = rows_of(score(tmp_path, config(dataset, provider)))
    asked, worked, distances = len(provider.met), len(fakes.world().asked), Mean.asked
    cut = {"normaliser": "linear255", "sigma": 1.0, "gain": "au"}
    second = rows_of(score(tmp_path, config(dataset, provider, cut=cut, name="other")))
    assert (len(provider.met), len(fakes.world().asked), Mean.asked) == (asked, worked, distances)
    assert [row.rule for row in second] == [row.rule for row in first]
    assert [row.scored.score for row in second] != [row.scored.score for row in first]


def test_neither_order_nor_shards_nor_threads_nor_a_stop_change_a_byte(
    dataset: Path, provider: Loopback, tmp_path: Path
) -> None:
    one = score(tmp_path / "one", config(dataset, provider))
    editors = list(reversed(config(dataset, provider).editors))
    changes = {"editors": editors, "shard_size": 1, "workers": 3, "granularities": ["dense", "simple"]}
    other = score(tmp_path / "other", config(dataset, provider, **changes), threads=3)
    assert files(one) == files(other)

    price = {"input_per_mtok": 0, "output_per_mtok": 0, "per_image": 0.01, "as_of": "2026-11-01"}
    judges = [
        {"name": "mllm", "params": {"name": name, "routes": routes(provider, name, price=price)}}
        for name in ("Ada", "Bo")
    ]
    calls = {"backoff_s": 0.01, "attempts": 2, "budget": 0.3}
    with pytest.raises(StoppedError, match="budget"):
        score(tmp_path / "stopped", config(dataset, provider, judges=judges, calls=calls))
    resumed = score(tmp_path / "stopped", config(dataset, provider, judges=judges))
    assert files(resumed)["scores.parquet"] == files(one)["scores.parquet"]


def test_a_new_editor_alone_is_run(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    score(tmp_path, config(dataset, provider))
    asked = fakes.world().counts()["edit"]
    odd = [*config(dataset, provider).editors, {"called": "odd", "adapter": "odd"}]
    results = score(tmp_path, config(dataset, provider, editors=odd))
    assert fakes.world().counts()["edit"] == asked
    assert [one.editor for one in results.scores] == ["fake", "fake", "odd", "odd", "plain", "plain"]


def test_outputs_that_fail_count_as_nothing_in_one_column(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    odd = [{"called": "odd", "adapter": "odd"}]
    results = score(tmp_path, config(dataset, provider, editors=odd, granularities=["simple"]))
    rows, (whole,) = rows_of(results), [one.whole for one in results.scores]
    kinds = {row.failure for row in rows}
    assert kinds == {FailureKind.REFUSED, FailureKind.BAD_OUTPUT, None}
    assert all(row.scored.state is State.FAILED and row.rule is None for row in rows if row.failure)
    assert whole.owed == len(rows) == whole.scored + whole.failed + whole.unscored
    assert whole.score.value is not None
    assert whole.score_all.value == pytest.approx(whole.score.value * whole.scored / (whole.scored + whole.failed))
    copies = [row for row in rows if row.rule and row.raw_height == row.raw_width]
    assert copies
    assert all(row.rule and (row.rule.identity, row.rule.background_rmse) == (pytest.approx(1), 0) for row in copies)
    assert all(row.scored.lpips_ratio == 0 for row in copies)


def test_a_judge_that_refuses_is_a_status_and_one_out_of_reach_is_asked_again(dataset: Path, tmp_path: Path) -> None:
    def shy(asked: Asked) -> str:
        return "I cannot judge real people." if len(asked.pictures) == 1 else score_of(asked)

    with Loopback(answer=shy) as provider:
        rows = [row for row in rows_of(score(tmp_path / "a", config(dataset, provider))) if row.rule]
    assert {row.scored.reason for row in rows} == {"pq: abstained"}
    assert {one.abstained for row in rows for one in row.judged if one.value is None} == {Abstention.REFUSED}
    with Loopback(answer=score_of, share=1.0, faults=("500",)) as down:
        settings = config(dataset, down, max_failed=0.05)
        with pytest.raises(TooManyFailures, match="provider"):
            score(tmp_path / "b", settings)
        told = rows_of_folder(tmp_path / "b")
        assert {row.scored.reason for row in told if row.rule} == {"judge: provider"}
        assert {row.scored.state for row in told if row.rule} == {State.UNSCORED}
    with Loopback(answer=score_of) as up:
        rows = [row for row in rows_of(score(tmp_path / "b", config(dataset, up, max_failed=0.05))) if row.rule]
    assert not {row.scored.reason for row in rows} & {"judge: provider"}


def rows_of_folder(workspace: Path) -> list[ScoreRow]:
    return read_scores(workspace / "runs/scores/scores")[1]


def test_without_a_judge_it_is_a_partial_score(dataset: Path, tmp_path: Path) -> None:
    results = score(tmp_path, config(dataset, None))
    assert results.manifest.score == "partial score"
    assert "FED-Score" not in json.dumps(results.plain())
    good = [row.scored for row in rows_of(results) if row.scored.state is State.SCORED]
    assert good
    assert all(one.id is not None and one.bg is not None and one.reg is not None for one in good)
    assert [one.score for one in good] == pytest.approx([(one.id + one.bg) / 2 * one.reg for one in good])  # type: ignore[operator]
    assert all(f"pq {PartStatus.NOT_MEASURED}" in one.statuses for one in good)


def test_by_batch_every_judge_is_asked_once_for_all_and_the_scores_are_the_same(dataset: Path, tmp_path: Path) -> None:
    with Batching(answer=score_of) as provider:
        single = score(tmp_path / "single", config(dataset, provider))
        judges = [
            {"name": "mllm", "params": {"name": name, "routes": routes(provider, name, batch=True)}}
            for name in ("Ada", "Bo")
        ]
        calls = {"backoff_s": 0.01, "batches": {"poll_s": 0.01}}
        together = score(tmp_path / "together", config(dataset, provider, judges=judges, calls=calls), threads=2)
        assert len(provider.batches) == 2
    assert files(together)["scores.parquet"] == files(single)["scores.parquet"]


def test_what_it_would_ask_is_known_before(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    from tasks.scoring.price import asks

    run = open_scoring(tmp_path, config(dataset, provider))
    triplets = run.benchmark.triplets
    assert [(ask.who, ask.questions, ask.dollars) for ask in asks(run, due(run))] == [
        ("Ada", triplets * 4 * 5, 0.0),
        ("Bo", triplets * 4 * 5, 0.0),
    ]
    run.call.close()
    assert provider.met == []


def test_an_index_is_refused_with_the_way_out(dataset: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    released(dataset, index, ())
    with pytest.raises(ConfigError, match="no pictures") as caught:
        open_scoring(tmp_path / "w", config(index, None))
    assert "fedbench hydrate" in caught.value.hint


def test_pictures_of_a_restricted_pool_stay_here(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    far = [{"name": "mllm", "params": {"name": "Far", "routes": [
        {"model": "openai/far", "provider": "far", "api_base": "https://models.example/v1"}]}}]  # fmt: skip
    settings = config(dataset, provider, judges=far)
    run = open_scoring(tmp_path, config(dataset, provider))
    run.call.close()
    closed = run.benchmark.manifest.pools[0].model_copy(update={"redistributable": False})
    benchmark = replace(run.benchmark, manifest=run.benchmark.manifest.model_copy(update={"pools": (closed,)}))
    with pytest.raises(ConfigError, match="judge 'Far' sends pictures to an outside service"):
        check(settings, benchmark)
    check(settings.model_copy(update={"acknowledge_external_api": True}), benchmark)
    check(config(dataset, provider), benchmark)


def test_a_table_that_was_changed_is_not_believed(dataset: Path, tmp_path: Path) -> None:
    results = score(tmp_path, config(dataset, None))
    results.table.write_bytes(results.table.read_bytes() + b"x")
    with pytest.raises(ConfigError, match="not the table that its manifest names"):
        rows_of(results)
    assert score(tmp_path, config(dataset, None)).manifest == results.manifest
    assert rows_of(results)


def test_relatives_are_marked(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    results = score(tmp_path, config(dataset, provider))
    told = {used.editor: used.conflicts for used in results.manifest.editors}
    assert told["fake"] == ("the same as the ground truths' editor fake",)
    assert told["plain"] == ()


def test_who_is_withdrawn_is_in_no_score_and_no_picture(dataset: Path, tmp_path: Path) -> None:
    results = score(tmp_path, config(dataset, None))
    gone = next(row for row in rows_of(results) if row.image and row.noop)
    source = f"{gone.pool}/{gone.source_id}"
    images = ImageStore(Store(tmp_path))
    assert images.get(gone.source_image)
    with Store(tmp_path).lock():
        withdraw(Store(tmp_path), Wish([source]))
    assert not results.table.exists()
    assert gone.noop is not None
    for digest in (gone.source_image, gone.truth_image, gone.image, gone.noop.image):
        assert not (tmp_path / images.path(digest)).exists()
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "withdrawn.json"]
    assert [path for path in left if f'"{gone.source_id}"'.encode() in path.read_bytes()] == []
    with pytest.raises(ConfigError, match=f"holds {source}, which was withdrawn here"):
        open_scoring(tmp_path, config(dataset, None))
