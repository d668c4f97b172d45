"""The paper's own figures on how well voters and panels name expressions, to stand beside what is measured here."""

from functools import cache
from pathlib import Path
from typing import Final

import yaml
from pydantic import Field

from schemas.sections import Section

_FILE: Final = Path(__file__).parent / "paper_accuracy.yaml"


class PublishedFigure(Section):
    """Percent of pictures named rightly: of the best panel of a size, and on average over panels of that size."""

    best: float | None = None
    average: float | None = None


class PublishedPanel(Section):
    """One line of the paper's table; `size` is how many models vote, None for expert networks."""

    panel: str
    size: int | None = None
    fine: PublishedFigure = PublishedFigure()
    coarse: PublishedFigure = PublishedFigure()


class PublishedAccuracy(Section):
    """The table.

    Attributes:
        source: Where it stands.
        pictures: On how many pictures, as far as the digits tell.
        rows: Its lines.
    """

    source: str
    pictures: int = Field(ge=1)
    rows: tuple[PublishedPanel, ...]


@cache
def paper_accuracy() -> PublishedAccuracy:
    """The published table."""
    return PublishedAccuracy.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))
