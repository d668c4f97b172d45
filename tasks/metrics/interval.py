"""How much a share is worth: the interval of a binomial proportion."""

import math
from dataclasses import dataclass


def wilson(hits: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share, within 0..1; `z` of 1.96 is 95 %.

    Args:
        hits: How many did, 0..trials.
        trials: Of how many, at least 1.
        z: Standard deviations on each side.
    """
    share, shrink = hits / trials, 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Share:
    """So many hits of so many trials; with no trial, it has no value and no interval."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval."""
        return wilson(self.hits, self.of) if self.of else None

    def plain(self) -> dict[str, float | int | None]:
        """For JSON: hits, of, value, low, high; null where there is nothing to say."""
        low, high = self.interval or (None, None)
        return {"hits": self.hits, "of": self.of, "value": self.value, "low": low, "high": high}
