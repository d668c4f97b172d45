"""Drift of a judge, by hand-made answers."""

import pytest

from schemas.judging import DriftCheck, DriftPart, JudgedOn
from schemas.scoring import Granularity, Part
from tasks.metrics.drift import Pair, drift_part
from tasks.metrics.drift_words import apart, drifted, unchecked, words_of


def test_a_judge_that_answers_the_same_has_not_drifted() -> None:
    found = drift_part(Part.PQ, [Pair(f"p{n}", f"o{n}", n % 10, n % 10) for n in range(20)])
    assert (found.outputs, found.mean, found.low, found.high, found.flips, found.answers) == (20, 0, 0, 0, 0, 20)
    assert not found.drifted


def test_a_judge_that_became_kinder_has() -> None:
    pairs = [Pair(f"p{n}", f"o{n}", 4.5 + n % 2, 5.2 + n % 2) for n in range(20)]
    found = drift_part(Part.SC, pairs)
    assert (found.mean, found.low, found.high, found.flips) == (pytest.approx(0.7), 0.7, 0.7, 10)
    assert found.drifted


def test_orders_of_an_output_are_one_difference_and_people_are_drawn_whole() -> None:
    # One output went up by 2 and down by 1; nine did not move; nine more outputs of the first person moved by 1.
    pairs = [Pair("a", "0", 5, 7), Pair("a", "0", 5, 4), *(Pair(f"p{n}", str(n), 5, 5) for n in range(1, 10))]
    found = drift_part(Part.GTA, pairs)
    assert (found.outputs, found.answers, found.mean) == (10, 11, 0.05)
    crowd = drift_part(Part.GTA, [*pairs, *(Pair("a", f"x{n}", 5, 6) for n in range(9))])
    assert crowd.low == 0, "in a third of the draws the one person who moved is missing"
    assert crowd.high is not None
    assert crowd.high > 0.7


def test_few_people_have_a_mean_and_no_interval() -> None:
    found = drift_part(Part.PQ, [Pair(f"p{n % 9}", str(n), 5, 6) for n in range(30)])
    assert (found.mean, found.low, found.drifted) == (1, None, False)
    assert drift_part(Part.PQ, []).mean is None


def judged(editor: str, first: str, last: str) -> JudgedOn:
    return JudgedOn(editor=editor, granularity=Granularity.SIMPLE, judge="Ada", first=first, last=last, outputs=9)


def check(on: str, first: str, last: str, mean: float = 0.1, low: float = -0.1) -> DriftCheck:
    part = DriftPart(part=Part.PQ, outputs=50, mean=mean, low=low, high=0.3, answers=50, flips=2)
    return DriftCheck(
        judge="Ada", identity="", on=on, first=first, last=last, outputs=50, abstained=1, unreached=0, parts=(part,)
    )


def test_answers_of_different_days_need_a_check_since() -> None:
    old, new = judged("a", "2026-03-01", "2026-03-02"), judged("b", "2026-11-30", "2026-11-30")
    assert unchecked([old], (), 1) == unchecked([new, judged("c", "2026-11-29", "2026-11-30")], (), 1) == []
    assert unchecked([old, new], (), 1) == [old]
    assert unchecked([old, new], [check("2026-06-01", "2026-03-01", "2026-03-02")], 1) == [old]
    assert unchecked([old, new], [check("2026-11-29", "2026-05-01", "2026-05-01")], 1) == [old]
    for day in ("2026-11-29", "2026-11-30", "2026-12-24"):
        assert unchecked([old, new], [check(day, "2026-03-01", "2026-03-02")], 1) == []
    assert list(apart([old, new], (), 1)) == [
        "Ada judged a from 2026-03-01 on, others up to 2026-11-30, and nobody looked whether it still answers so"
    ]


def test_a_check_in_words() -> None:
    told = check("2026-11-30", "2026-03-01", "2026-03-02")
    assert words_of(told) == (
        "Ada judged 50 outputs of 2026-03-01 to 2026-03-02 again on 2026-11-30: PQ +0.10 (-0.10 to +0.30); "
        "flips 2 of 50; 1 abstained; no drift seen"
    )
    moved = check("2026-11-30", "2026-03-01", "2026-03-01", 0.2, 0.1)
    assert drifted(moved)
    assert words_of(moved).endswith("it drifted")
