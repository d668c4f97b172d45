"""Relative expression gain (REG): how much an output changes the face, against how much the ground truth does."""

import math
from collections.abc import Mapping

from tasks.metrics.change import weight

SIGMA = 0.5


def ratio(output: float, truth: float, least: float) -> float | None:
    """r = d(source, output) / d(source, ground truth), ≥ 0; 0 is no change, 1 as much as the ground truth.

    FED-Bench takes LPIPS of the face for d. It says nothing of ground truths that hardly differ from their source;
    none is divided by here (ours).

    Args:
        output, truth: The two distances, ≥ 0.
        least: Below it (and at 0) the divisor is degenerate.

    Returns:
        The ratio, or None: that is a status, not a score.
    """
    return None if truth <= 0 or truth < least else output / truth


def s_reg(r: float, sigma: float = SIGMA) -> float:
    """exp(−(r − 1)² / (2σ²)), 0..1: 1 at r = 1, .6065 at .5 and 1.5, .1353 at 0 and 2 (FED-Bench, σ = .5).

    A copy (r = 0) keeps .1353: it is for SC and GTA to make nothing of it.

    Args:
        r: A ratio, ≥ 0.
        sigma: Tolerance, > 0.
    """
    return math.exp(-((r - 1) ** 2) / (2 * sigma * sigma))


def direction(source: Mapping[str, float], output: Mapping[str, float], truth: Mapping[str, float]) -> float | None:
    """Cosine of the output's and the ground truth's change of blendshapes, −1..1; 1 is the same way.

    cos(a(output) − a(source), a(truth) − a(source)), under the weights of `change.expression_change` (ours): what a
    ratio of lengths cannot see.

    Args:
        source, output, truth: Coefficients by name, each 0..1 (`Face.blendshapes`).

    Returns:
        The cosine, or None where one of the faces does not change at all.

    Raises:
        ValueError: The faces are of different models: their coefficients have other names.
    """
    if not source.keys() == output.keys() == truth.keys():
        raise ValueError("blendshapes of different models")
    one = {name: output[name] - source[name] for name in source}
    other = {name: truth[name] - source[name] for name in source}
    lengths = math.sqrt(_dot(one, one) * _dot(other, other))
    return max(-1.0, min(1.0, _dot(one, other) / lengths)) if lengths > 0 else None


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return math.fsum(weight(name) * one[name] * other[name] for name in one)
