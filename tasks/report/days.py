"""The daily board as a picture: answers per day, stacked by person, and how long an answer took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Of the fill colours that the report has, in an order in which neighbours differ.
FILLS = ("sad", "happy", "anger", "disgust", "fear", "surprise", "neutral")


@dataclass(frozen=True)
class Part:
    """One person's answers of a day: left edge, width, top and height in percent, fill, and words for the pointer."""

    left: float
    width: float
    top: float
    height: float
    fill: str
    words: str


@dataclass(frozen=True)
class DayPlot:
    """Bars, one per day; `most` is what the highest stands for. `names` says which fill is whose."""

    parts: tuple[Part, ...]
    names: tuple[tuple[str, str], ...]
    first: str
    last: str
    most: int


def day_plot(days: Sequence[Mapping[str, Any]]) -> DayPlot | None:
    """The bars of a board's `days`; None where no answer has a day. Days without an answer are left out.

    Args:
        days: Rows as `tasks.boards.daily.board` gives them.
    """
    rows = [row for row in days if row["day"]]
    if not rows:
        return None
    names = sorted({row["annotator"] for row in rows})
    fills = {name: FILLS[place % len(FILLS)] for place, name in enumerate(names)}
    dates = sorted({row["day"] for row in rows})
    totals = {day: sum(row["answers"] + row["extra"] for row in rows if row["day"] == day) for day in dates}
    most, step = max(1, *totals.values()), 100 / max(len(dates), 7)
    parts = []
    for place, day in enumerate(dates):
        top = 100.0
        for row in (row for row in rows if row["day"] == day):
            count = row["answers"] + row["extra"]
            height = 100 * count / most
            top -= height
            pace = "" if row["median_seconds"] is None else f", {row['median_seconds']:.0f} s at the median"
            words = f"{day}, {row['annotator']}: {count} answers{pace}"
            parts.append(Part(place * step, step * 0.86, top, height, fills[row["annotator"]], words))
    return DayPlot(tuple(parts), tuple(fills.items()), dates[0], dates[-1], most)
