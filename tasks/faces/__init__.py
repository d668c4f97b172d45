"""Faces: detection, landmarks, blendshapes, pose, masks, alignment, crops, quality measures, identity."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.engine.images import Picture
from tasks.engine.registry import Registry


@dataclass(frozen=True, eq=False, slots=True)
class Face:
    """One face in a picture; all coordinates are pixels of that picture, x right, y down.

    Attributes:
        box: (4,) float32: x, y, width, height.
        score: Detection confidence, 0..1.
        landmarks: (478, 3) float32; z in pixels too, towards the camera negative. Row order is MediaPipe's.
        blendshapes: 52 coefficients by name, each 0..1.
        yaw, pitch, roll: Head pose in degrees, 0 is frontal.
    """

    box: NDArray[np.float32]
    score: float
    landmarks: NDArray[np.float32]
    blendshapes: dict[str, float]
    yaw: float
    pitch: float
    roll: float


class FaceAnalyzer(Protocol):
    """Finds faces and measures them."""

    def analyze(self, picture: Picture) -> tuple[Face, ...]:
        """All faces, the largest box first; empty where there is none. Equal pictures give equal faces."""
        ...


class FaceEmbedder(Protocol):
    """Turns a face into an identity vector."""

    def embed(self, picture: Picture, face: Face) -> NDArray[np.float32]:
        """(D,) float32 of length 1, from the face aligned by the one 5-point alignment."""
        ...


ANALYZERS: Registry[FaceAnalyzer] = Registry("face analyzer", {"mediapipe": "tasks.faces.analyzer:MediapipeAnalyzer"})
EMBEDDERS: Registry[FaceEmbedder] = Registry(
    "identity model", {"sface": "tasks.faces.identity:SFace", "buffalo_l": "tasks.faces.identity:BuffaloL"}
)
