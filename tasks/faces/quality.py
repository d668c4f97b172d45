"""How usable a photo is as a source: sharpness, exposure, other faces. Measures only; screening decides.

The measures follow OFIQ (ISO/IEC 29794-5) where it has one. Nothing here looks at the expression.
"""

import math
from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.faces import Face
from tasks.faces.geometry import context_box, crop, face_mask, landmark_box

# Ours; Laplacian variance depends on scale, so it is always measured at this one. At 112 px sharp photos measured
# 77..1681 (13 faces), the same blurred by sigma 1 px 30..495 and by 2 px 8..126, depending on their first size.
SHARPNESS_SIZE: Final = 112
BRIGHT: Final = 247  # OFIQ OverExposurePrevention counts luminance 247..255
DARK: Final = 25  # OFIQ UnderExposurePrevention counts luminance 0..25


def second_face_ratio(faces: Sequence[Face]) -> float:
    """sqrt(A2 / A1) of the box areas of the two largest faces, 0..1; 0 where there are fewer than two.

    OFIQ calls it SingleFacePresent and scores 100 · (1 − f).
    """
    areas = sorted((float(face.box[2]) * float(face.box[3]) for face in faces), reverse=True)
    return math.sqrt(areas[1] / areas[0]) if len(areas) > 1 else 0.0


def sharpness(pixels: NDArray[np.uint8], face: Face) -> float:
    """Variance of the Laplacian of the grey face (0..255) on its landmark square at 112 px; a blurred one is low.

    A small face is enlarged first and therefore counts as blurred, which it is.
    """
    square = crop(pixels, context_box(landmark_box(face), 1.0), SHARPNESS_SIZE)
    return float(cv2.Laplacian(cv2.cvtColor(square, cv2.COLOR_RGB2GRAY), cv2.CV_64F).var())


def exposure_shares(pixels: NDArray[np.uint8], face: Face) -> tuple[float, float]:
    """Shares (over, under) of over- and under-exposed pixels in the face oval, each 0..1 (luminance by BT.601).

    A face whose oval lies outside the picture has no pixels and gives (0, 0).
    """
    luminance = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)[face_mask(pixels.shape, face)]
    if luminance.size == 0:
        return 0.0, 0.0
    return float(np.mean(luminance >= BRIGHT)), float(np.mean(luminance <= DARK))
