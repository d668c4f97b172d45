"""How much an edit changed what it should have left alone: everything outside the faces."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.records import Motion
from tasks.metrics.registration import is_still, undone


def background_rmse(source: NDArray[np.uint8], output: NDArray[np.uint8], face: NDArray[np.bool_]) -> float:
    """Root mean square error over the pixels and channels outside the faces, 0..255; 0 is untouched.

    Args:
        source, output: RGB (H, W, 3) uint8 of one size; the caller resizes or registers, and says so.
        face: (H, W) bool, true where a face is (the dilated union of both faces).

    Returns:
        The error, or NaN where the mask leaves no background: that is a status, not a score.

    Raises:
        ValueError: The shapes differ.
    """
    if source.shape != output.shape or source.shape[:2] != face.shape:
        raise ValueError(f"shapes differ: source {source.shape}, output {output.shape}, mask {face.shape}")
    background = ~face
    if not background.any():
        return math.nan
    difference = source[background].astype(np.int32) - output[background].astype(np.int32)
    return math.sqrt(float(np.mean(difference * difference)))


def registered_rmse(
    source: NDArray[np.uint8],
    output: NDArray[np.uint8],
    source_face: NDArray[np.bool_],
    output_face: NDArray[np.bool_],
    motion: Motion,
) -> float:
    """`background_rmse` once the output's motion is undone: what is left is damage, not geometry.

    What left the picture is no background; a motion below a tenth of a pixel is not undone. Interpolation has a price:
    photos moved and moved back differ by 1 to 4.

    Args:
        source, output: RGB (H, W, 3) uint8 of one size.
        source_face, output_face: (H, W) bool, true where a face is, each in its own picture (dilated).
        motion: Of the output.
    """
    if is_still(motion, source.shape):
        return background_rmse(source, output, source_face | output_face)
    back, inside = undone(output, motion)
    face, _ = undone(output_face.astype(np.uint8) * np.uint8(255), motion)
    return background_rmse(source, back, source_face | (face > 127) | ~inside)


def linear(rmse: float, full: float) -> float:
    """1 − rmse / full, held in 0..1; `full` is the error that scores 0."""
    return min(1.0, max(0.0, 1.0 - rmse / full))


def exponential(rmse: float, tau: float) -> float:
    """exp(−rmse / tau), 0..1; `tau` is the error that scores 1/e."""
    return math.exp(-rmse / tau)


# FED-Bench says only that the error is normalised so that higher is better; there is no standard of the field. Names
# are those of `score.cut.normaliser`. An error of 5.1 scores .775 (the default), .600, .980 and .898.
NORMALISERS: Final[Mapping[str, Callable[[float], float]]] = {
    "exp20": partial(exponential, tau=20.0),
    "exp10": partial(exponential, tau=10.0),
    "linear255": partial(linear, full=255.0),
    "linear50": partial(linear, full=50.0),
}
