"""How a measured number is spread over all candidates, beside the threshold that cuts it."""

import math
from array import array
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

BINS = 36


@dataclass(frozen=True)
class Bin:
    """One bar: its left edge and width in percent of the axis, its height 0..1 of the highest, its count, whether its
    middle passes the threshold, and its interval in words."""

    left: float
    width: float
    height: float
    count: int
    passes: bool
    words: str


@dataclass(frozen=True)
class Plot:
    """A histogram, ready to be drawn.

    Attributes:
        low, high: Ends of the axis.
        threshold: Place of the threshold in percent of the axis, None where it lies beyond its ends.
    """

    bins: tuple[Bin, ...]
    low: float
    high: float
    threshold: float | None


@dataclass
class Spread:
    """Values of one measure; 8 bytes each, so that a million of them are no matter.

    Attributes:
        name, about: For people.
        threshold: The config's limit.
        side: Whether passing means at least or at most the threshold.
        values: What was measured.
        missing: Candidates without a value (no face).
    """

    name: str
    about: str
    threshold: float
    side: Literal["least", "most"]
    values: "array[float]" = field(default_factory=lambda: array("d"))
    missing: int = 0

    def add(self, value: float | None) -> None:
        if value is None or not math.isfinite(value):
            self.missing += 1
        else:
            self.values.append(value)

    @property
    def passing(self) -> int:
        """Values on the right side of the threshold."""
        numbers = np.asarray(self.values)
        return int((numbers >= self.threshold if self.side == "least" else numbers <= self.threshold).sum())

    def quantile(self, share: float) -> float | None:
        """The value below which this share (0..1) lies; None without values."""
        return float(np.quantile(np.asarray(self.values), share)) if self.values else None

    def plot(self) -> Plot | None:
        """The histogram, or None without values. The axis holds all values, and the threshold if it is not far off."""
        if not self.values:
            return None
        numbers = np.asarray(self.values)
        low, high = _axis(float(numbers.min()), float(numbers.max()), self.threshold)
        counts, edges = np.histogram(np.clip(numbers, low, high), bins=BINS, range=(low, high))
        bins = []
        for place, count in enumerate(counts.tolist()):
            middle = float(edges[place] + edges[place + 1]) / 2
            bins.append(
                Bin(
                    left=100 * place / BINS,
                    width=100 / BINS,
                    height=count / max(1, int(counts.max())),
                    count=count,
                    passes=middle >= self.threshold if self.side == "least" else middle <= self.threshold,
                    words=f"{edges[place]:.3g} to {edges[place + 1]:.3g}",
                )
            )
        place_of = 100 * (self.threshold - low) / (high - low)
        return Plot(tuple(bins), low, high, place_of if 0 <= place_of <= 100 else None)


def _axis(least: float, most: float, threshold: float) -> tuple[float, float]:
    """Round ends around the values; the threshold is inside unless that would triple the axis.

    Values that hardly differ (by less than a twentieth of the threshold) are not blown up.
    """
    width = max(most - least, abs(threshold) / 20, 1e-6)
    most = max(most, least + width)
    if least - 2 * width <= threshold <= most + 2 * width:
        least, most = min(least, threshold), max(most, threshold)
    step = 10 ** math.floor(math.log10(max(most - least, 1e-6)))
    step = step if (most - least) / step >= 4 else step / 4
    low, high = math.floor(least / step) * step, math.ceil(most / step) * step
    return low, high if high > low else low + step
