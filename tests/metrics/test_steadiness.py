"""What a judge's answers tell of the judge, by hand-made answers."""

import pytest

from schemas.scoring import Part
from tasks.metrics.steadiness import flipped, merged, steadiness
from tests.scoring.samples import judged


def test_a_flip_crosses_the_middle() -> None:
    assert flipped(4, 6)
    assert flipped(9, 1)
    assert not flipped(6, 9)
    assert not flipped(5, 9), "5 is on neither side"


def test_orders_are_compared_output_by_output() -> None:
    outputs = [
        (*judged(8, 4, 6), *judged(None, 7, 6, swapped=True)[1:]),
        (*judged(6, 9, None), *judged(None, 8, 3, swapped=True)[1:]),
    ]
    pq, sc, gta = steadiness(outputs)
    assert [one.part for one in (pq, sc, gta)] == [Part.PQ, Part.SC, Part.GTA]
    assert (pq.mean, pq.orders, pq.shift, pq.flips) == (7, [], None, 0)
    assert (sc.mean, sc.orders, sc.flips) == (7, [(4, 7), (9, 8)], 1)
    assert sc.shift == 1
    assert sc.plain()["order_difference"] == 2
    # GTA of the second output has one order alone: it has a mean, and is no pair.
    assert (gta.means, gta.abstained, gta.orders) == ([6, 3], 1, [(6, 6)])


def test_repeats_are_compared_within_one_order() -> None:
    answers = (
        *judged(5, 4, 0),
        *judged(7, 4, 0, repeat=1),
        *judged(None, 10, 0, swapped=True)[1:],
        *judged(None, 10, 0, swapped=True, repeat=1)[1:],
    )
    pq, sc, _ = steadiness([answers])
    assert (pq.mean, pq.spreads) == (6, [pytest.approx(2**0.5)])
    assert sc.spreads == [0, 0]
    assert steadiness([judged(5, 5, 5)])[0].repeat_spread is None


def test_judges_stay_apart_and_editors_come_together() -> None:
    one = steadiness([judged(2, 2, 2, "b") + judged(4, 4, 4, "a")])
    assert [(held.judge, held.mean) for held in one if held.part is Part.PQ] == [("a", 4), ("b", 2)]
    both = merged([*one, *steadiness([judged(6, None, 6, "a")])])
    assert [(held.judge, held.mean, len(held.means), held.abstained) for held in both] == [
        ("a", 5, 2, 0),
        ("a", 4, 1, 1),
        ("a", 5, 2, 0),
        ("b", 2, 1, 0),
        ("b", 2, 1, 0),
        ("b", 2, 1, 0),
    ]
