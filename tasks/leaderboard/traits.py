"""How an editor fails, read off the parts of its scores: a copy, another person, an exaggeration and no face differ."""

from typing import Final

from tasks.leaderboard.bootstrap import Floats
from tasks.metrics.score_summary import Mean

# Ours: under it SFace's authors call two faces two people (cosine .363); ArcFace models put different people lower.
STRANGER: Final = 0.363


def traits(ratios: Floats, sigma: float, identity: float | None, faceless: Mean) -> list[str]:
    """What stands out, in words; nothing where most faces change about as much as they should and stay themselves.

    Args:
        ratios: r of its outputs, ≥ 0.
        sigma: Tolerance of the gain: more than half under 1 − σ is lazy, more than half over 1 + σ overfit.
        identity: Mean cosine of source and output; None without one.
        faceless: Share of its outputs that show no face. Any is told; of more than half, r says nothing of faces.
    """
    told = [f"no face in {round(faceless.value * faceless.n)} of {faceless.n}"] if faceless.value else []
    if len(ratios) and (faceless.value or 0.0) <= 0.5:
        told += ["lazy"] if (ratios < 1 - sigma).mean() > 0.5 else []
        told += ["overfit"] if (ratios > 1 + sigma).mean() > 0.5 else []
    return told + (["another person"] if identity is not None and identity < STRANGER else [])
