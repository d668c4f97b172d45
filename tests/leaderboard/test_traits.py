"""How an editor fails, and what it gains from being told more."""

from pathlib import Path

import numpy as np
import pytest

from tasks.leaderboard.entrants import opened
from tasks.leaderboard.instructions import told_more
from tasks.leaderboard.ranking import boards
from tasks.leaderboard.traits import traits
from tests.leaderboard.made_up import rows, write


@pytest.mark.parametrize(
    ("ratios", "identity", "words"),
    [
        ([0.0, 0.0, 1.0], 1.0, ["lazy"]),
        ([2.0, 1.6, 1.0], 0.6, ["overfit"]),
        ([9.0, 9.0, 9.0], 0.1, ["overfit", "another person"]),
        ([1.0, 0.5, 1.5, 0.4], 0.6, []),
        ([0.1, 2.0], 0.6, []),  # half each is no majority
        ([], None, []),
    ],
)
def test_a_copy_an_exaggeration_and_another_person(
    ratios: list[float], identity: float | None, words: list[str]
) -> None:
    assert traits(np.array(ratios), 0.5, identity) == words


def test_dense_minus_simple_is_paired_by_row(tmp_path: Path) -> None:
    scores = [0.2, 0.4, 0.6, 0.8] * 5
    held = [
        *rows("a", scores),
        *rows("a", [value + 0.1 for value in scores], granularity="dense"),
        *rows("b", scores),
        *rows("b", [value - 0.1 if place else None for place, value in enumerate(scores)], granularity="dense"),
        *rows("only", scores),
    ]
    write(tmp_path, "r", held)
    ((dense, told),) = told_more(boards(opened(tmp_path, ["r"])))
    assert dense.granularity == "dense"
    a, b = told
    assert (a.label, a.gain.value, a.words) == ("a", pytest.approx(0.1), "better with dense")
    # b failed once where it had .2: (19 · −.1 − .2) / 20.
    assert (b.label, b.gain.value, b.gain.n, b.words) == ("b", pytest.approx(-0.105), 20, "worse with dense")
    assert list(told_more(boards(opened(tmp_path, ["r"]))[1:])) == []
