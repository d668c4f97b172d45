"""How much two faces are the same person."""

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
