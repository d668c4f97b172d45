"""What a mean, a difference and a rank are worth, against values worked out by hand."""

import numpy as np
import pytest

from tasks.leaderboard.bootstrap import LEAST, draws, interval, kendall, paired, rank_ranges, ranks, resampled


def test_draws_are_whole_sum_to_n_and_are_the_same_for_a_seed() -> None:
    drawn = draws(12, 3, resamples=50)
    assert drawn.shape == (50, 12)
    assert (drawn.sum(axis=1) == 12).all()
    assert (drawn == np.round(drawn)).all()
    assert (drawn == draws(12, 3, resamples=50)).all()
    assert (drawn != draws(12, 4, resamples=50)).any()


def test_a_source_is_drawn_with_all_its_rows() -> None:
    # Two people: one with a single row of 1, one with three rows of 0. By hand: (2, 0), (1, 1), (0, 2) drawn.
    drawn = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    means = resampled(drawn, np.array([1.0, 0.0]), np.array([1.0, 3.0]))
    assert means.tolist() == [1.0, 0.25, 0.0]


def test_an_editor_without_a_row_has_no_mean() -> None:
    means = resampled(np.ones((3, 2)), np.zeros(2), np.zeros(2))
    assert np.isnan(means).all()
    assert interval(means) is None


def test_a_constant_difference_is_better_however_small() -> None:
    found = paired(draws(20, 0), np.full(20, 0.01), np.ones(20))
    assert (found.value, found.low, found.high, found.detectable) == (0.01, 0.01, 0.01, 0.0)
    assert found.verdict == "better"
    assert paired(draws(20, 0), np.full(20, -0.01), np.ones(20)).verdict == "worse"


def test_a_difference_that_cancels_out_is_indistinguishable() -> None:
    differences = np.array([0.5, -0.5] * 50)
    found = paired(draws(100, 0), differences, np.ones(100))
    assert found.value == 0
    assert found.verdict == "indistinguishable"
    # The standard error of 100 values of ±.5 is .05: the interval is ±1.96 × .05, and 2.80 × .05 would show.
    assert found.low == pytest.approx(-0.098, abs=0.011)
    assert found.high == pytest.approx(0.098, abs=0.011)
    assert found.detectable == pytest.approx(0.140, abs=0.011)


def test_pairing_sees_what_unpaired_means_cannot() -> None:
    # Sources differ by far more than the two editors do.
    hard = np.linspace(0, 1, 40)
    assert paired(draws(40, 0), (hard + 0.02) - hard, np.ones(40)).verdict == "better"
    drawn = draws(40, 0)
    one, other = (interval(resampled(drawn, values, np.ones(40))) for values in (hard + 0.02, hard))
    assert one is not None
    assert other is not None
    assert one[0] < other[1]


def test_too_few_people_give_no_verdict() -> None:
    found = paired(draws(LEAST - 1, 0), np.ones(LEAST - 1), np.ones(LEAST - 1))
    assert (found.value, found.low, found.verdict) == (1.0, None, "too few people")
    assert paired(draws(20, 0), np.zeros(20), np.zeros(20)).value is None


def test_ties_share_the_better_rank() -> None:
    assert ranks([0.5, 0.9, 0.5, None, 0.1]) == [2, 1, 2, None, 4]
    assert rank_ranges(np.array([[1.0, 1.0, 0.0]] * 9)) == [(1, 1), (1, 1), (3, 3)]
    assert rank_ranges(np.array([[1.0, np.nan]])) == [(1, 1), None]


@pytest.mark.parametrize(
    ("one", "other", "tau"),
    [
        ([3.0, 2.0, 1.0], [30.0, 20.0, 10.0], 1.0),
        ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], -1.0),
        # Three pairs: one swapped. (2 − 1) / 3.
        ([3.0, 2.0, 1.0], [2.0, 3.0, 1.0], 0.333333),
        # One tie: two pairs agree; 2 / √(3 · 2).
        ([3.0, 2.0, 1.0], [2.0, 2.0, 1.0], 0.816497),
        ([3.0, None, 1.0], [2.0, 3.0, 1.0], 1.0),
        ([3.0], [1.0], None),
        ([1.0, 1.0], [1.0, 2.0], None),
    ],
)
def test_kendall(one: list[float | None], other: list[float | None], tau: float | None) -> None:
    assert kendall(one, other) == tau
