"""What the page draws: places in percent or pixels, no colour and no text of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from schemas.scoring import PARTIAL_SCORE
from tasks.leaderboard.bootstrap import Floats
from tasks.leaderboard.ranking import Board

TOP: Final = 3.0  # r beyond it is drawn in the last bin
BINS: Final = 30
SIDE: Final = 400  # of the scatter's square, in its own units
_ISO: Final = (0.1, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Dot:
    """One editor in the plane, in `SIDE` units from the left and from the top."""

    rank: int | None
    label: str
    x: float
    y: float
    told: tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """Fidelity against alignment; in a partial board, which has no alignment, against the gain.

    Attributes:
        upward: What the second axis is.
        dots: The editors that have both.
        lines: Where the product is equal: its value, and points as SVG takes them.
    """

    upward: str
    dots: list[Dot]
    lines: list[tuple[float, str]]


def plane(board: Board) -> Plane:
    """The editors of a board by two dimensions, each 0..1."""
    upward = "gain" if board.manifest.score == PARTIAL_SCORE else "alignment"
    dots = []
    for row in board.rows:
        parts = row.entrant.whole.parts
        x, y = parts["fidelity"].value, parts[upward].value
        if x is not None and y is not None:
            dots.append(Dot(row.rank, row.label, round(SIDE * x, 1), round(SIDE * (1 - y), 1), (x, y)))
    return Plane(upward, dots, [(value, _curve(value)) for value in _ISO])


def _curve(product: float) -> str:
    xs = np.linspace(product, 1, 40)
    return " ".join(f"{SIDE * x:.1f},{SIDE * (1 - product / x):.1f}" for x in xs)


@dataclass(frozen=True)
class Ratios:
    """How an editor's r are spread.

    Attributes:
        bars: Left edge and width in percent of the axis, height 0..1 of the highest, and the words for it.
        lazy, overfit: Shares of r under 1 − σ and over 1 + σ, where REG is under .6065; None without any r.
        n: How many r there are.
    """

    bars: list[tuple[float, float, float, str]]
    lazy: float | None
    overfit: float | None
    n: int


def ratios(values: Floats, sigma: float) -> Ratios:
    """A histogram of r over 0..`TOP`, with what lies beyond in the last bin.

    Args:
        values: r ≥ 0, float64 (n,).
        sigma: Tolerance of the gain.
    """
    n = len(values)
    if not n:
        return Ratios([], None, None, 0)
    width = TOP / BINS
    places = np.minimum((values / width).astype(np.int64), BINS - 1)
    counts = np.bincount(places, minlength=BINS)
    most = int(counts.max())
    bars = [
        (100 * place / BINS, 100 / BINS, int(count) / most, _words(place, int(count), width))
        for place, count in enumerate(counts)
        if count
    ]
    return Ratios(bars, float((values < 1 - sigma).mean()), float((values > 1 + sigma).mean()), n)


def _words(place: int, count: int, width: float) -> str:
    end = "up" if place == BINS - 1 else f"{(place + 1) * width:.1f}"
    return f"r {place * width:.1f} to {end}: {count}" if end != "up" else f"r {place * width:.1f} and up: {count}"


def zones(sigma: float) -> Sequence[tuple[str, float, float]]:
    """Name, left edge and width in percent of the axis 0..`TOP`."""
    low, high = max(0.0, 1 - sigma), min(TOP, 1 + sigma)
    return [("lazy", 0.0, 100 * low / TOP), ("overfit", 100 * high / TOP, 100 * (TOP - high) / TOP)]
