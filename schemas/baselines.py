"""What the baselines score on the demo's own data set: whether a machine measures as ours did."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from schemas.scoring import Granularity
from schemas.sections import Section

_FILE: Final = Path(__file__).parent / "baselines.yaml"


class Means(Section):
    """Means of one editor: score, ID and ratio as in the table of scores, RMSE on 0–255. Or how far each may be off."""

    score: float
    id: float
    background_rmse: float
    au_ratio: float


class Baselines(Section):
    """The numbers that ship.

    Attributes:
        triplets: Of the data set.
        granularity: The instructions.
        settings: What of a run's cut and measurement they hold under.
        tolerance: How far a number may be off; ours.
        editors: By what the recipe calls them.
    """

    triplets: int
    granularity: Granularity
    settings: dict[str, Any]
    tolerance: Means
    editors: dict[str, Means]


@cache
def baselines() -> Baselines:
    """The numbers that ship."""
    return Baselines.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))
