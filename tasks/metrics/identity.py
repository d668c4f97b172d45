"""How much two faces are the same person."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Cosine of two identity vectors of one model, −1..1, 1 for equal ones.

    Args:
        one, other: (D,) float, of any length but 0.

    Raises:
        ValueError: The vectors are of different models (D differs) or one has length 0.
    """
    if one.shape != other.shape:
        raise ValueError(f"vectors of different models: {one.shape} and {other.shape}")
    a, b = one.astype(np.float64), other.astype(np.float64)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    if lengths == 0:
        raise ValueError("a vector of length 0 has no direction")
    return float(np.clip(a @ b / lengths, -1.0, 1.0))


def matched(source: NDArray[np.float32], boxes: Sequence[NDArray[np.float32]]) -> int | None:
    """Which face of an output is the source's, by position: its place among `boxes`, or None where there is none.

    The one whose box overlaps the source's most (intersection over union); where none does, the one whose centre is
    nearest; ties: the first, that is the largest (ours; FED-Bench has one face a picture).

    Args:
        source: (4,) x, y, width, height in pixels.
        boxes: The same of the output's faces, the largest first, in a picture of the source's size.
    """

    def nearness(place: int) -> tuple[float, float, int]:
        box = boxes[place].astype(np.float64)
        low = np.maximum(source[:2], box[:2])
        high = np.minimum(source[:2] + source[2:], box[:2] + box[2:])
        common = float(np.prod(np.clip(high - low, 0, None)))
        union = float(np.prod(source[2:])) + float(np.prod(box[2:])) - common
        apart = float(np.linalg.norm((source[:2] + source[2:] / 2) - (box[:2] + box[2:] / 2)))
        return common / union, -apart, -place

    return max(range(len(boxes)), key=nearness, default=None)
