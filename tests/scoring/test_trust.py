"""What tells whether a score can be believed: orders, repeats, no-ops, relatives, several ground truths."""

from pathlib import Path
from typing import Any

import pytest

from schemas.score_config import ScoreCut
from schemas.score_manifest import EditorUsed, JudgeUsed
from schemas.scoring import Part, PartStatus, State, Unchanged
from tasks.engine.errors import ConfigError
from tasks.judges import JUDGES
from tasks.metrics.score import scored, with_truths
from tasks.metrics.score_summary import summary
from tasks.scoring.relatives import Relatives, relatives, without
from tests.leaderboard.made_up import rows, write
from tests.leaderboard.test_boards import board
from tests.providers.loopback import Loopback
from tests.scoring.runs import Mean, config, files, rows_of, score
from tests.scoring.samples import CUT, judged, row, rule

SAME = Unchanged(image="", lpips=0.02, au=0.3)


def test_both_orders_and_all_repeats_make_one_answer_of_a_judge() -> None:
    answers = (
        *judged(8, 4, 6, "a"),
        *judged(6, 8, 6, "a", repeat=1),
        *judged(None, 3, 0, "a", swapped=True)[1:],
        *judged(0, 5, 4, "b"),
    )
    one = scored(rule(), answers, CUT, partial=False)
    # a: PQ 7, SC 5, GTA 4; b: 0, 5, 4. However often a is asked, it counts as much as b.
    assert (one.pq, one.sc, one.gta) == pytest.approx((0.35, 0.5, 0.4))
    assert (one.pq_spread, one.sc_spread) == pytest.approx((24.5**0.5, 0))


def test_the_noop_ratio_is_over_the_ground_truths_distance() -> None:
    one = scored(rule(), judged(9, 4, 6), CUT, partial=False, noop=SAME)
    assert one.noop_ratio == pytest.approx(0.2)
    assert one.score == scored(rule(), judged(9, 4, 6), CUT, partial=False).score, "it is no part of the score"
    by_au = scored(rule(), judged(9, 4, 6), ScoreCut(gain="au"), partial=False, noop=SAME)
    assert by_au.noop_ratio == pytest.approx(0.5)
    assert scored(rule(lpips_truth=0.0), (), CUT, partial=True, noop=SAME).noop_ratio is None
    held = [row(rule(), noop=SAME, scored=one), row(rule(), scored=by_au), row(None)]
    told = summary(held, CUT, partial=False)
    assert (told.parts["noop_ratio"].value, told.parts["noop_ratio"].n) == (pytest.approx(0.35), 2)
    assert told.noop_median == pytest.approx(0.35)


def test_ground_truths_of_one_source_and_target_are_a_set() -> None:
    held = with_truths(
        [
            row(rule(), judged(10, 8, 8)),
            row(rule(), judged(10, 2, 2), truth_attempt=1),
            row(rule(), judged(10, 5, 5), number=1),
            row(None, number=2),
            row(rule(lpips_truth=0.0), judged(1, 1, 1), number=3),
        ]
    )
    high, low = ((0.8 + 1 + 1) / 3 * share for share in (0.8, 0.2))
    assert [one.truths for one in held] == [2, 2, 1, 1, 1]
    assert [one.truth_best for one in held] == pytest.approx([high, high, high / 1.6, 0, None])
    assert held[0].truth_mean == held[1].truth_mean == pytest.approx((high + low) / 2)
    told = summary(held, CUT, partial=False)
    assert (told.truth_best.n, told.truth_mean.n, told.score_all.n) == (3, 3, 4)
    assert told.truth_best.value == pytest.approx((high + high / 1.6) / 3)
    # An output that failed at one of them is worth nothing there.
    half = with_truths([row(rule(), judged(10, 8, 8)), row(None, truth_attempt=1)])
    assert (half[0].truth_best, half[0].truth_mean) == pytest.approx((high, high / 2))


def used(name: str, family: str, **more: Any) -> dict[str, Any]:
    return {"family": family, "identity": {"name": name}, "conflicts": ()} | more


def test_without_relatives_leaves_out_judges_and_ground_truths(tmp_path: Path) -> None:
    answers = (*judged(10, 10, 10, "kin"), *judged(10, 4, 4, "voter"), *judged(10, 2, 2, "free"))
    judges = (
        JudgeUsed(judge="kin", of_data_set=False, **used("kin", "f")),
        JudgeUsed(judge="voter", of_data_set=True, **used("voter", "v")),
        JudgeUsed(judge="free", of_data_set=False, **used("free", "")),
    )
    editors = (EditorUsed(editor="e", truths=("t",), **used("e", "f")),)
    held = [
        row(rule(identity=1.0), answers),
        row(rule(identity=1.0), answers, number=1, truth_editor="u"),
        row(None, number=2, truth_editor="u"),
    ]
    write(tmp_path, "r", held, judges=judges, editors=editors)
    (one,) = board(tmp_path, "r")
    manifest = one.manifest
    of = relatives(manifest, manifest.editors[0])
    assert of == Relatives(frozenset({"kin", "voter"}), frozenset({"t"}))
    told = without(held, of, CUT, partial=False)
    assert told is not None
    assert (told.value, told.n) == (pytest.approx(0.2 / 2), 2)
    assert one.rows[0].entrant.kin == told
    alone = without(held[:1], of, CUT, partial=False)
    assert alone is not None
    assert (alone.value, alone.n) == (None, 0), "where only relatives made ground truths, nothing is left"
    assert without(held, Relatives(frozenset(), frozenset()), CUT, partial=False) is None
    partial = [row(rule(identity=1.0), number=place, partial=True, truth_editor="u") for place in range(2)]
    assert without(partial, of, CUT, partial=True) == without(partial, of, ScoreCut(), partial=True)


def test_a_board_shows_the_ranks_under_each_order(tmp_path: Path) -> None:
    def outputs(editor: str, given: float, swapped: float) -> list[Any]:
        answers = (*judged(10, given, given), *judged(None, swapped, swapped, swapped=True)[1:])
        keys = [
            {name: getattr(one, name) for name in ("source_id", "subject", "triplet")} for one in rows("x", [1] * 12)
        ]
        return [row(rule(identity=1.0), answers, editor=editor, **key) for key in keys]

    write(tmp_path, "q", rows("x", [0.5] * 12))
    settings = board(tmp_path, "q")[0].manifest.settings | {"judging": {"orders": "both", "repeats": 1}}
    write(tmp_path, "r", [*outputs("first", 9, 3), *outputs("last", 2, 8)], settings=settings)
    (one,) = board(tmp_path, "r")
    told = {way.variant: way.ranks for way in one.stability}
    assert (told["pictures as given"], told["pictures swapped"]) == ([1, 2], [2, 1])
    assert [row.entrant.judges[1].flips for row in one.rows] == [12, 12]


def test_runs_that_asked_otherwise_stand_apart(tmp_path: Path) -> None:
    write(tmp_path, "q", rows("x", [0.5] * 12))
    settings = board(tmp_path, "q")[0].manifest.settings | {"judging": {"orders": "both", "repeats": 1}}
    write(tmp_path, "r", rows("y", [0.5] * 12), settings=settings)
    assert [one.apart for one in board(tmp_path, "q", "r")] == ["", "judging.orders: both here, given above"]


def test_what_is_asked_follows_the_config(dataset: Path, provider: Loopback, tmp_path: Path) -> None:
    editors = [{"called": "plain", "adapter": "fake-plain"}]
    simple = {"editors": editors, "granularities": ["simple"], "noop": {"sources": 2}}
    once = score(tmp_path, config(dataset, provider, **simple, judging={"orders": "given"}))
    outputs = [one for one in rows_of(once) if one.rule]
    assert {len(one.judged) for one in outputs} == {2 * 3}
    assert {answer.swapped for one in outputs for answer in one.judged} == {False}
    asked = len(provider.met)
    both = score(tmp_path, config(dataset, provider, **simple, judging={"repeats": 2}))
    told = [one for one in rows_of(both) if one.rule]
    # What was asked before is not asked again: of 2 × 5 questions, 3 are there.
    assert len(provider.met) == asked + asked // 3 * 7
    seen = {(answer.part, answer.swapped, answer.repeat) for one in told for answer in one.judged}
    assert len(seen) == 2 * 5
    assert (Part.PQ, True, 0) not in seen
    judges = both.scores[0].judges
    assert [one.part for one in judges] == [Part.PQ, Part.SC, Part.GTA] * 2
    assert {len(one.orders) == len(one.spreads) / 2 for one in judges if one.part is not Part.PQ} == {True}
    assert any(one.flips for one in judges)


def test_noops_are_of_the_first_sources_and_cost_no_rank(dataset: Path, tmp_path: Path) -> None:
    settings = {"editors": [{"called": "plain", "adapter": "fake-plain"}], "granularities": ["simple"]}
    none = rows_of(score(tmp_path / "none", config(dataset, None, **settings, noop={"sources": 0})))
    some = rows_of(score(tmp_path / "some", config(dataset, None, **settings, noop={"sources": 2})))
    every = rows_of(score(tmp_path / "some", config(dataset, None, **settings)))
    assert (
        [one.scored.score for one in none] == [one.scored.score for one in some] == [one.scored.score for one in every]
    )
    assert {one.noop for one in none} == {None}
    assert len({one.source_id for one in some if one.noop}) == 2
    # One source of the fakes is refused whatever is asked of it; every other has its no-op.
    assert all(one.noop for one in every)
    measured = [one for one in every if one.scored.noop_ratio is not None]
    assert measured
    for one in measured:
        assert one.noop is not None
        assert one.rule is not None
        assert one.noop.lpips is not None
        assert one.rule.lpips_truth is not None
        assert one.scored.noop_ratio == pytest.approx(one.noop.lpips / one.rule.lpips_truth)


def test_a_judge_that_knows_no_repeats_is_not_asked_twice(dataset: Path, tmp_path: Path) -> None:
    JUDGES.add("bare", Mean)
    settings = config(dataset, None, judges=[{"name": "bare"}], judging={"repeats": 2})
    with pytest.raises(ConfigError, match="judge 'bare': repeat"):
        score(tmp_path, settings)


def test_states_are_untouched_by_a_status_of_the_noop() -> None:
    faceless = rule(identity=None, identity_status=PartStatus.NO_FACE, faces=0)
    one = scored(faceless, judged(5, 5, 5), CUT, partial=False, noop=Unchanged(image="", lpips=None, au=None))
    assert (one.state, one.noop_ratio) == (State.SCORED, None)


@pytest.mark.parametrize("count", [1, 100])
def test_no_order_of_editors_changes_a_byte(dataset: Path, tmp_path: Path, count: int) -> None:
    editors = [
        {"called": f"e{place}", "adapter": {"name": "fake-plain", "params": {"strength": 100 + place}}}
        for place in range(count)
    ]
    more = {"granularities": ["simple"], "limit": 1, "noop": {"sources": 1}}
    one = score(tmp_path / "one", config(dataset, None, editors=editors, **more))
    other = score(tmp_path / "other", config(dataset, None, editors=editors[::-1], **more))
    assert files(one) == files(other)
    assert [held.editor for held in one.scores] == sorted(f"e{place}" for place in range(count))
    assert len({held.whole.score.value for held in one.scores}) > count // 3
