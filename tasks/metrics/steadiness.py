"""How far a judge can be believed: whether it answers, whether the order of the pictures or the day moves its scores.

All on the judges' own scale, 0..10. Pure: answers in, counts and means out.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from schemas.scoring import JudgeScore, Part

MIDDLE: Final = 5.0


def flipped(one: float, other: float) -> bool:
    """Whether two answers, 0..10, lie on different sides of the middle: from more bad than good to the reverse.

    An answer of exactly 5 is on neither side. Ours: there is no standard for answers on a scale.
    """
    return (one - MIDDLE) * (other - MIDDLE) < 0


@dataclass
class Steadiness:
    """What one judge's answers on one part tell of it, over any number of outputs.

    Attributes:
        judge, part: Whose, and on what.
        means: Per output that it scored, the mean of its answers.
        abstained: Answers that were none.
        orders: Per output that it scored in both orders of the pictures: given, swapped.
        spreads: Per output that it scored more than once in one order: the sample standard deviation.
    """

    judge: str
    part: Part
    means: list[float] = field(default_factory=list)
    abstained: int = 0
    orders: list[tuple[float, float]] = field(default_factory=list)
    spreads: list[float] = field(default_factory=list)

    def add(self, answers: Sequence[JudgeScore]) -> None:
        """Take its answers on one output in."""
        values = {
            swapped: [one.value for one in answers if one.swapped is swapped and one.value is not None]
            for swapped in (False, True)
        }
        self.abstained += sum(one.value is None for one in answers)
        given, swapped = values[False], values[True]
        if given or swapped:
            self.means.append(statistics.fmean([*given, *swapped]))
        if given and swapped:
            self.orders.append((statistics.fmean(given), statistics.fmean(swapped)))
        self.spreads += [statistics.stdev(held) for held in (given, swapped) if len(held) > 1]

    @property
    def mean(self) -> float | None:
        return _mean(self.means)

    @property
    def flips(self) -> int:
        """Outputs whose score changes sides with the order."""
        return sum(flipped(given, swapped) for given, swapped in self.orders)

    @property
    def shift(self) -> float | None:
        """Mean of swapped − given: what the place is worth."""
        return _mean([swapped - given for given, swapped in self.orders])

    @property
    def repeat_spread(self) -> float | None:
        """Mean standard deviation of answers to the very same question."""
        return _mean(self.spreads)

    def plain(self) -> dict[str, Any]:
        """For JSON: each number with its n."""
        return {
            "judge": self.judge,
            "part": str(self.part),
            "mean": self.mean,
            "outputs": len(self.means),
            "abstained": self.abstained,
            "both_orders": len(self.orders),
            "flips": self.flips,
            "order_shift": self.shift,
            "order_difference": _mean([abs(swapped - given) for given, swapped in self.orders]),
            "repeated": len(self.spreads),
            "repeat_spread": self.repeat_spread,
        }


def steadiness(outputs: Iterable[Sequence[JudgeScore]]) -> list[Steadiness]:
    """Every judge's on every part, by judge, then part.

    Args:
        outputs: The answers on each output, of all judges.
    """
    found: dict[tuple[str, Part], Steadiness] = {}
    for answers in outputs:
        for key in dict.fromkeys((one.judge, one.part) for one in answers):
            found.setdefault(key, Steadiness(*key)).add([one for one in answers if (one.judge, one.part) == key])
    order = list(Part)
    return [found[key] for key in sorted(found, key=lambda key: (key[0], order.index(key[1])))]


def merged(held: Iterable[Steadiness]) -> list[Steadiness]:
    """The same over several editors."""
    found: dict[tuple[str, Part], Steadiness] = {}
    for one in held:
        into = found.setdefault((one.judge, one.part), Steadiness(one.judge, one.part))
        into.means += one.means
        into.abstained += one.abstained
        into.orders += one.orders
        into.spreads += one.spreads
    return list(found.values())


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
