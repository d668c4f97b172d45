"""Which rows stand for an editor in pictures: its best, its most typical, its worst."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemas.scoring import ScoreRow, State

SHOWN: Final = 3  # of each


@dataclass(frozen=True, slots=True)
class Sample:
    """One row for a gallery; the pictures are digests."""

    triplet: str
    source_expression: str
    target: str
    instruction: str
    source: str
    output: str
    truth: str
    score: float
    identity: float | None
    background: float | None
    ratio: float | None
    fidelity: float | None
    alignment: float | None


def gallery(rows: Sequence[ScoreRow]) -> dict[str, list[Sample]]:
    """The `SHOWN` best, most typical (nearest to the median) and worst scored rows; none stands twice.

    Args:
        rows: Of one editor under one instruction. Ties go by the triplet's name.
    """
    good = [row for row in rows if row.scored.state is State.SCORED]
    good.sort(key=lambda row: (-_score(row), row.triplet))
    if not good:
        return {}
    # Few rows are shared out evenly.
    each = max(1, min(SHOWN, len(good) // 3))
    best, rest = good[:each], good[each:]
    worst, rest = rest[::-1][:each], rest[: max(0, len(rest) - each)]
    middle = statistics.median(_score(row) for row in good)
    typical = sorted(rest, key=lambda row: (abs(_score(row) - middle), row.triplet))[:each]
    found = {"best": best, "most typical": typical, "worst": worst}
    return {name: [_sample(row) for row in held] for name, held in found.items() if held}


def _score(row: ScoreRow) -> float:
    return row.scored.score or 0.0


def _sample(row: ScoreRow) -> Sample:
    rule, scored = row.rule, row.scored
    return Sample(
        triplet=row.triplet,
        source_expression=str(row.source_expression),
        target=str(row.target),
        instruction=row.instruction,
        source=row.source_image,
        output=row.image,
        truth=row.truth_image,
        score=_score(row),
        identity=rule.identity if rule else None,
        background=rule.background_rmse if rule else None,
        ratio=scored.lpips_ratio if scored.lpips_ratio is not None else scored.au_ratio,
        fidelity=scored.fidelity,
        alignment=scored.alignment,
    )
