"""Rows of scores, made by hand."""

from typing import Any

from schemas.expressions import Expression
from schemas.outcomes import Abstention
from schemas.score_config import ScoreCut
from schemas.scoring import Granularity, JudgeScore, Part, PartStatus, RuleParts, ScoreRow
from tasks.metrics.score import failed, scored

CUT = ScoreCut()


def rule(**changes: Any) -> RuleParts:
    """An output of cosine .8 whose face changed as much as the ground truth's, on an untouched background."""
    values: dict[str, Any] = {
        "identity": 0.8,
        "identity_status": PartStatus.OK,
        "faces": 1,
        "background_rmse": 0.0,
        "background_own_rmse": 0.0,
        "registered_rmse": 0.0,
        "registered_own_rmse": 0.0,
        "background_status": PartStatus.OK,
        "motion": None,
        "lpips_output": 0.1,
        "lpips_truth": 0.1,
        "au_output": 0.9,
        "au_truth": 0.6,
        "au_direction": 1.0,
    }
    return RuleParts(**values | changes)


def judged(
    pq: float | None,
    sc: float | None,
    gta: float | None,
    judge: str = "J",
    *,
    swapped: bool = False,
    repeat: int = 0,
) -> tuple[JudgeScore, ...]:
    """One judge's scores; None is an abstention."""
    return tuple(
        JudgeScore(
            judge=judge,
            family="f",
            part=part,
            value=value,
            abstained=Abstention.REFUSED if value is None else None,
            reason="",
            model="m",
            repaired=False,
            swapped=swapped,
            repeat=repeat,
        )
        for part, value in ((Part.PQ, pq), (Part.SC, sc), (Part.GTA, gta))
    )


def row(
    parts: RuleParts | None,
    answers: tuple[JudgeScore, ...] = (),
    *,
    number: int = 0,
    partial: bool = False,
    **more: Any,
) -> ScoreRow:
    """A row of an editor "e"; without `parts`, one that failed."""
    values: dict[str, Any] = {
        "editor": "e",
        "granularity": Granularity.SIMPLE,
        "pool": "p",
        "source_id": str(number),
        "target": Expression.HAPPY,
        "truth_editor": "t",
        "truth_attempt": 0,
        "triplet": f"p/{number}:happy@t#0",
        "subject": f"p/{number}",
        "source_expression": Expression.SAD,
        "instruction": "",
        "seed": 0,
        "failure": None,
        "message": "",
        "image": "",
        "raw_width": 0,
        "raw_height": 0,
        "source_image": "",
        "truth_image": "",
        "rule": parts,
        "judged": answers,
        "noop": None,
        "truths": 1,
        "truth_best": None,
        "truth_mean": None,
        "scored": failed("refused") if parts is None else scored(parts, answers, CUT, partial=partial),
    }
    return ScoreRow(**values | more)
