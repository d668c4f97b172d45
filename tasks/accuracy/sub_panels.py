"""How right panels of each size would have been: every choice of voters from those that were asked."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tasks.accuracy.tally import Right, Tally

Classes = NDArray[np.int8]
RULES: Final = ("panel", "valid")
# 2^12 choices of voters; twice as many again with each further one.
MOST_VOTERS: Final = 12


@dataclass(frozen=True)
class PanelsOfSize:
    """All panels of one size, under one majority rule.

    Attributes:
        granularity: "fine" (seven expressions) or "coarse" (three polarities).
        rule: The winner needs more than half of the whole "panel", or of the "valid" answers, as in verification.
        size: Voters in a panel.
        panels: How many such panels there are.
        best: The most accurate one over all pictures; a picture without a winner is not right. Of those that found a
            winner, `of_answered`.
        best_voters: Who is in it; of equal ones the first in panel order.
        average: Accuracy over all pictures, averaged over the panels, 0..1.
        average_of_decided: The same over pictures with a winner; None where a panel never had one.
        average_decided: Share of pictures with a winner, averaged.
    """

    granularity: str
    rule: str
    size: int
    panels: int
    best: Right
    best_voters: tuple[str, ...]
    average: float
    average_of_decided: float | None
    average_decided: float

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"best": self.best.plain()}


def sub_panels(tally: Tally) -> list[PanelsOfSize]:
    """Panels of every size, of both granularities, under both rules; empty without pictures or voters.

    FED-Bench's table gives best and average of panels of a size; that the rule is more than half, and that a picture
    without a winner counts as not right, is our reading: the paper does not say.
    """
    found = []
    for granularity in ("fine", "coarse") if len(tally) else ():
        voters, truth, answers, classes = tally.arrays(granularity)
        named = (answers[:, :, None] == np.arange(classes, dtype=np.int8)).astype(np.uint8)
        for rule in RULES:
            for size in range(1, len(voters) + 1):
                results = list(_results(rule, size, truth, named))
                found.append(_of_size(granularity, rule, size, voters, results))
    return found


def _results(rule: str, size: int, truth: Classes, named: NDArray[np.uint8]) -> Iterator[tuple[Right, tuple[int, ...]]]:
    """Every panel's accuracy, with the places of its voters."""
    for places in combinations(range(named.shape[1]), size):
        counts = named[:, places, :].sum(axis=1, dtype=np.int16)
        base = size if rule == "panel" else counts.sum(axis=1)
        decided = 2 * counts.max(axis=1) > base
        hits = int((decided & (counts.argmax(axis=1) == truth)).sum())
        yield Right.of(hits, int(decided.sum()), len(truth)), places


def _of_size(
    granularity: str, rule: str, size: int, voters: list[str], results: list[tuple[Right, tuple[int, ...]]]
) -> PanelsOfSize:
    pictures = results[0][0].of_all.of
    best, members = max(results, key=lambda result: result[0].of_all.hits)
    over_decided = [right.of_answered.value for right, _ in results]
    known = [value for value in over_decided if value is not None]
    return PanelsOfSize(
        granularity=granularity,
        rule=rule,
        size=size,
        panels=len(results),
        best=best,
        best_voters=tuple(voters[place] for place in members),
        average=sum(right.of_all.hits for right, _ in results) / (len(results) * pictures),
        average_of_decided=sum(known) / len(known) if len(known) == len(over_decided) else None,
        average_decided=sum(right.of_answered.of for right, _ in results) / (len(results) * pictures),
    )
