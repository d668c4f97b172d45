"""The paper's own table of 18 editors, to stand beside what is scored here; never ranked with it."""

from functools import cache
from pathlib import Path
from typing import Final

import yaml
from pydantic import Field

from schemas.sections import Section

_FILE: Final = Path(__file__).parent / "paper_scores.yaml"


class PublishedMeans(Section):
    """Means under one instruction, as printed.

    Attributes:
        score: FED-Score, 0..1.
        id: ArcFace cosine; None where the summary at hand has no such column.
        mean_ratio: The column they call REG: the mean of r.
        gta: 0..10.
    """

    score: float = Field(ge=0, le=1)
    id: float | None = Field(default=None, ge=-1, le=1)
    mean_ratio: float = Field(ge=0)
    gta: float | None = Field(default=None, ge=0, le=10)


class PublishedEditor(Section):
    """One line of the table."""

    editor: str
    dense: PublishedMeans
    simple: PublishedMeans


class PublishedScores(Section):
    """The table.

    Attributes:
        source: Where it stands.
        triplets: On how many.
        names: What their columns are called here.
        rows: In their order: by the score under dense instructions.
    """

    source: str
    triplets: int = Field(ge=1)
    names: dict[str, str]
    rows: tuple[PublishedEditor, ...]


@cache
def paper_scores() -> PublishedScores:
    """The published table."""
    return PublishedScores.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))
