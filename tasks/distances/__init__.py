"""Perceptual distances of face crops: how different two pictures of one face look."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.engine.registry import Registry


class FaceDistance(Protocol):
    """Measures pairs of crops of one size."""

    def between(self, one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
        """The distance, ≥ 0; 0 for equal crops. The same whatever was measured before.

        Args:
            one, other: RGB (S, S, 3) uint8 of one shape.
        """
        ...


DISTANCES: Registry[FaceDistance] = Registry(
    "distance",
    {
        "lpips": "tasks.distances.lpips:Lpips",
        "lpips_squeeze": "tasks.distances.lpips:LpipsSqueeze",
        "lpips_vgg": "tasks.distances.lpips:LpipsVgg",
    },
)
