"""The score of one output and the means over many, by hand-computed numbers."""

import math
from typing import Any

import pytest

from schemas.score_config import ScoreCut
from schemas.scoring import ABLATIONS, MODEL, Part, PartStatus, RuleParts, State
from tasks.engine.store import arrow_schema
from tasks.metrics.background import NORMALISERS
from tasks.metrics.gain import direction, ratio, s_reg
from tasks.metrics.score import combined, rescored, scored, with_truths
from tasks.metrics.score_summary import summary
from tests.scoring.samples import CUT, judged, row, rule

PARTS = {Part.ID: 0.9, Part.BG: 0.6, Part.PQ: 0.3, Part.SC: 0.5, Part.GTA: 0.7, Part.REG: 0.8}


@pytest.mark.parametrize(
    ("r", "expected"),
    [
        *[(0, 0.1353), (0.35, 0.4296), (0.45, 0.5461), (0.5, 0.6065), (0.67, 0.8043), (0.95, 0.9950), (1, 1)],
        *[(1.18, 0.9373), (1.37, 0.7605), (1.5, 0.6065), (1.56, 0.5341), (1.72, 0.3546), (2.0, 0.1353)],
        *[(2.42, 0.0177), (2.56, 0.0077)],
    ],
)
def test_the_gain_of_the_papers_ratios(r: float, expected: float) -> None:
    assert s_reg(r) == pytest.approx(expected, abs=5e-5)


def test_a_ratio_needs_a_divisor() -> None:
    assert ratio(0.2, 0.1, 0.005) == 2
    assert ratio(0.0, 0.1, 0.005) == 0
    assert ratio(0.2, 0.004, 0.005) is None
    assert ratio(0.0, 0.0, 0.0) is None


def test_the_direction_of_a_change() -> None:
    still = {"jawOpen": 0.0, "mouthSmileLeft": 0.0}
    smile, more, jaw = still | {"mouthSmileLeft": 0.4}, still | {"mouthSmileLeft": 0.9}, still | {"jawOpen": 0.5}
    assert direction(still, more, smile) == pytest.approx(1)
    assert direction(still, jaw, smile) == 0
    assert direction(more, still, more | {"mouthSmileLeft": 1.0}) == pytest.approx(-1)
    assert direction(still, still, smile) is None
    with pytest.raises(ValueError, match="different models"):
        direction(still, {"jawOpen": 0.0}, smile)


def test_normalisers_of_the_one_published_error() -> None:
    values = {name: round(normalise(5.1), 3) for name, normalise in NORMALISERS.items()}
    assert values == {"exp20": 0.775, "exp10": 0.600, "linear255": 0.980, "linear50": 0.898}
    assert all(normalise(0) == 1 and 0 <= normalise(255) < 1e-5 for normalise in NORMALISERS.values())


def test_the_background_is_the_one_that_the_cut_names() -> None:
    parts = rule(background_rmse=20.0, background_own_rmse=10.0, registered_rmse=5.0, registered_own_rmse=2.0)

    def bg(parts: RuleParts, **cut: Any) -> float | None:
        return scored(parts, judged(9, 4, 6), ScoreCut(**cut), partial=False).bg

    assert bg(parts) == pytest.approx(math.exp(-1))
    assert bg(parts, own_face=True) == pytest.approx(math.exp(-0.5))
    assert bg(parts, background="registered") == pytest.approx(math.exp(-0.25))
    assert bg(parts, background="registered", own_face=True) == pytest.approx(math.exp(-0.1))
    # A picture that is repainted has no motion to undo; that is no way out.
    repainted = parts.model_copy(update={"registered_rmse": None})
    assert bg(repainted, background="registered") == pytest.approx(math.exp(-1))


def test_ablations_remove_parts_and_empty_dimensions() -> None:
    expected = {
        "full": 0.6 * 0.6 * 0.8,
        "w/o REG": 0.6 * 0.6,
        "w/o Rule": 0.3 * 0.6,
        "w/o Fidelity": 0.6 * 0.8,
        "w/o Alignment": 0.6 * 0.8,
        "w/o Model": 0.75 * 0.8,
    }
    assert {name: combined(PARTS, removed) for name, removed in ABLATIONS.items()} == pytest.approx(expected)
    assert combined(PARTS, frozenset(Part)) is None
    assert combined(PARTS | {Part.SC: None}) is None
    assert combined(PARTS | {Part.SC: None}, MODEL) == pytest.approx(0.6)


def test_one_output_by_hand() -> None:
    one = scored(rule(background_rmse=20.0, lpips_output=0.05), judged(9, 4, 6), CUT, partial=False)
    fidelity = (0.8 + math.exp(-1) + 0.9) / 3
    assert (one.fidelity, one.alignment, one.gain) == pytest.approx((fidelity, 0.5, math.exp(-0.5)))
    assert one.score == pytest.approx(fidelity * 0.5 * math.exp(-0.5))
    assert (one.lpips_ratio, one.au_ratio) == pytest.approx((0.5, 1.5))
    assert one.state is State.SCORED
    assert set(one.statuses) == {f"{part} ok" for part in Part}


def test_a_copy_keeps_a_little_of_the_gain_and_loses_by_alignment() -> None:
    still = rule(identity=1.0, lpips_output=0.0)
    assert scored(still, judged(10, 0, 0), CUT, partial=False).score == 0
    assert scored(still, judged(10, 2, 2), CUT, partial=False).score == pytest.approx(0.0271, abs=5e-5)


def test_a_part_without_a_value_is_a_status_and_never_a_number() -> None:
    full = judged(9, 4, 6)
    cases = {
        "id: no_reference": (rule(identity=None, identity_status=PartStatus.NO_REFERENCE), full),
        "bg: no_background": (rule(background_status=PartStatus.NO_BACKGROUND), full),
        "reg: degenerate": (rule(lpips_truth=0.001), full),
        "sc: abstained": (rule(), judged(9, None, 6)),
    }
    for reason, (parts, answers) in cases.items():
        one = scored(parts, answers, CUT, partial=False)
        assert (one.state, one.reason, one.score) == (State.UNSCORED, reason, None)
    faceless = rule(identity=None, identity_status=PartStatus.NO_FACE, faces=0, au_output=None)
    lost = scored(faceless, full, CUT, partial=False)
    assert (lost.state, lost.id) == (State.SCORED, 0)  # a destroyed face is worth nothing, and it counts
    by_au = scored(faceless, full, ScoreCut(gain="au"), partial=False)
    assert (by_au.state, by_au.reason) == (State.FAILED, "reg: no_face")
    # Where the triplet itself cannot be measured, nobody failed at it.
    hopeless = scored(faceless.model_copy(update={"au_truth": 0.0}), full, ScoreCut(gain="au"), partial=False)
    assert hopeless.reason == "reg: degenerate"


def test_a_panel_has_a_mean_and_a_spread() -> None:
    answers = judged(8, 4, 6, "a") + judged(6, None, 6, "b")
    one = scored(rule(), answers, CUT, partial=False)
    assert (one.pq, one.sc, one.gta) == pytest.approx((0.7, 0.4, 0.6))
    assert (one.pq_spread, one.sc_spread, one.gta_spread) == (pytest.approx(math.sqrt(2)), None, 0)
    assert scored(rule(), answers, ScoreCut(min_judges=2), partial=False).reason == "sc: abstained"


def test_without_a_judge_the_score_is_of_the_rule_parts() -> None:
    one = scored(rule(), (), CUT, partial=True)
    assert one.score == pytest.approx((0.8 + 1) / 2)
    assert (one.pq, one.alignment, one.state) == (None, None, State.SCORED)
    assert "pq not_measured" in one.statuses


def test_means_are_of_products_and_say_their_n() -> None:
    rows = [
        row(rule(), judged(10, 10, 10)),
        row(rule(identity=0.2, lpips_output=0.2), judged(0, 4, 0)),
        row(None),
        row(rule(lpips_truth=0.0), judged(10, 10, 10)),
    ]
    one, other = (0.8 + 1 + 1) / 3, (0.2 + 1 + 0) / 3 * 0.2 * math.exp(-2)
    found = summary(rows, CUT, partial=False)
    assert (found.owed, found.scored, found.failed, found.unscored) == (4, 2, 1, 1)
    assert (found.score.value, found.score.n) == (pytest.approx((one + other) / 2), 2)
    assert (found.score_all.value, found.score_all.n) == (pytest.approx((one + other) / 3), 3)
    assert found.parts["id"].n == 3
    product = (one + 0.4) / 2 * 0.6 * (1 + math.exp(-2)) / 2
    assert found.product_of_means == pytest.approx(product)
    assert found.product_of_means != pytest.approx(found.score.value)
    assert found.median_ratio == 1.5
    assert found.ratio_of_sums == pytest.approx(0.4 / 0.2)
    assert found.ablations["w/o REG"].n == 3
    assert found.reasons == {"refused": 1, "reg: degenerate": 1}
    assert summary([], CUT, partial=False).score.value is None


def test_another_normaliser_needs_the_row_alone() -> None:
    before = row(rule(background_rmse=5.1), judged(9, 4, 6))
    (after,) = rescored([before], ScoreCut(normaliser="linear255"), partial=False)
    assert after.scored.bg == pytest.approx(0.98)
    assert after.truth_best == after.scored.score
    assert rescored([after], CUT, partial=False) == with_truths([before])
    assert rescored([row(None)], CUT, partial=False) == with_truths([row(None)])


def test_rows_can_be_stored() -> None:
    assert {"pool", "rule", "judged", "scored"} < set(arrow_schema(type(row(None))).names)
