"""From blendshapes to expressions: a table of action units, read like the textbook descriptions (FACS/EMFACS).

The numbers are ours, set by hand on real photos and on the warp editor's edits, not fitted to labels. Negative
expressions could not be checked against labelled photos.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from schemas.expressions import EXPRESSIONS, Expression
from tasks.faces.geometry import coefficient

SHARPNESS: Final = 2.0  # of the softmax: a lead of 1 in score is a ratio of e² in probability
SMILE_WEIGHT: Final = 2.2  # a smile of 1 / 2.2 = .45 silences what a smile contradicts


@dataclass(frozen=True, slots=True)
class Term:
    """One action unit's part in a score: weight · min(limit, max(0, blendshape − above)).

    Attributes:
        unit: FACS name, for the reader.
        blendshape: MediaPipe's name; the mean of left and right where it has sides.
        weight: Score for a full blendshape.
        above: What a relaxed face reaches already.
        limit: Where more of it says no more.
    """

    unit: str
    blendshape: str
    weight: float
    above: float = 0.0
    limit: float = 1.0


@dataclass(frozen=True, slots=True)
class Score:
    """bias + (unsmiling + under_smile) · (base + Σ terms), where unsmiling = max(0, 1 − 2.2 · mouthSmile).

    `under_smile` is what is left of the score under a full smile.
    """

    terms: tuple[Term, ...] = ()
    base: float = 0.0
    bias: float = 0.0
    under_smile: float = 0.0


SCORES: Final[Mapping[Expression, Score]] = {
    Expression.NEUTRAL: Score(base=1.35, bias=0.22),
    Expression.HAPPY: Score(),  # scored by the smile itself, below
    Expression.SAD: Score(
        (
            Term("AU1", "browInnerUp", 3.6, above=0.04),
            Term("AU26", "jawOpen", -7.2, above=0.04, limit=0.25),  # raised brows over an open mouth are not sad
            Term("AU17", "mouthShrugLower", 2.0, above=0.10),
            Term("AU28", "mouthRollLower", 1.6, above=0.05),
            Term("AU18", "mouthPucker", 1.0, above=0.08),
            Term("AU15", "mouthFrown", 10.0, above=0.004),
            Term("AU43", "eyeBlink", 0.8, above=0.15),
        )
    ),
    Expression.SURPRISE: Score(
        (
            Term("AU2", "browOuterUp", 2.0, above=0.05),
            Term("AU1", "browInnerUp", 0.8, above=0.05),
            Term("AU26", "jawOpen", 4.6, above=0.04),
            Term("AU5", "eyeWide", 4.0, above=0.02),
        )
    ),
    Expression.FEAR: Score(
        (
            Term("AU1", "browInnerUp", 3.2, above=0.06),
            Term("AU2", "browOuterUp", -1.2, above=0.30),
            Term("AU20", "mouthStretch", 4.0, above=0.05),
            Term("AU5", "eyeWide", 6.0, above=0.015),
            Term("AU26", "jawOpen", 3.0, above=0.04, limit=0.3),
            Term("AU15", "mouthFrown", 5.0, above=0.004),
            Term("AU10", "mouthUpperUp", 2.0, above=0.05),
        )
    ),
    Expression.DISGUST: Score(
        (
            Term("AU4", "browDown", 3.0, above=0.28),
            Term("AU10", "mouthUpperUp", 3.2, above=0.04),
            Term("AU10", "mouthShrugUpper", 5.0, above=0.03),
            Term("AU9", "noseSneer", 8.0, above=0.02),
            Term("AU7", "eyeSquint", 2.0, above=0.55),
            Term("AU17", "mouthShrugLower", 1.5, above=0.10),
            Term("AU15", "mouthFrown", 4.0, above=0.004),
        ),
        under_smile=0.25,
    ),
    Expression.ANGER: Score(
        (
            Term("AU4", "browDown", 4.6, above=0.24),
            Term("AU24", "mouthPress", 1.2, above=0.15),
            Term("AU28", "mouthRollLower", 2.2, above=0.05),
            Term("AU28", "mouthRollUpper", 2.2, above=0.05),
            Term("AU17", "mouthShrugLower", 1.0, above=0.10),
        ),
        under_smile=0.15,
    ),
}
AU12_HAPPY: Final = 3.6  # score of a full mouthSmile (AU12)


def probabilities(blendshapes: Mapping[str, float]) -> dict[Expression, float]:
    """Shares of 1 for the seven expressions: a softmax over the table's scores.

    Args:
        blendshapes: MediaPipe's 52 coefficients by name, each 0..1.
    """
    smile = coefficient(blendshapes, "mouthSmile")
    unsmiling = max(0.0, 1.0 - SMILE_WEIGHT * smile)
    scores = {name: _score(SCORES[name], blendshapes, unsmiling) for name in EXPRESSIONS}
    scores[Expression.HAPPY] += AU12_HAPPY * smile
    highest = max(scores.values())
    weights = {name: math.exp(SHARPNESS * (score - highest)) for name, score in scores.items()}
    total = math.fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _score(score: Score, blendshapes: Mapping[str, float], unsmiling: float) -> float:
    terms = (
        term.weight * min(term.limit, max(0.0, coefficient(blendshapes, term.blendshape) - term.above))
        for term in score.terms
    )
    return score.bias + (unsmiling + score.under_smile) * max(0.0, score.base + math.fsum(terms))
