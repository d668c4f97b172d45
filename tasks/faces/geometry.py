"""Where a face is: alignment, masks, crops, distances. Everything works on MediaPipe's 478 landmarks.

Landmark names follow the picture: "left" is the left side of the picture, which is the subject's right.
"""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.faces import Face

# Eye centres (irises), nose tip, mouth corners, in the order of the template below.
FIVE_POINTS: Final = (468, 473, 1, 61, 291)

# ArcFace's template for 112 px (Deng et al., CVPR 2019; InsightFace's `arcface_dst`), x and y in pixels.
ARCFACE_TEMPLATE: Final = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]], np.float64
)
ALIGNED_SIZE: Final = 112

# The face oval of MediaPipe's mesh, from the top of the forehead clockwise as seen in the picture.
FACE_OVAL: Final = (
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377,
    152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109,
)  # fmt: skip

# The 51 blendshapes in MediaPipe's order, without `_neutral`, which is not an expression coefficient.
BLENDSHAPES: Final = (
    "browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft", "browOuterUpRight",
    "cheekPuff", "cheekSquintLeft", "cheekSquintRight",
    "eyeBlinkLeft", "eyeBlinkRight", "eyeLookDownLeft", "eyeLookDownRight", "eyeLookInLeft", "eyeLookInRight",
    "eyeLookOutLeft", "eyeLookOutRight", "eyeLookUpLeft", "eyeLookUpRight", "eyeSquintLeft", "eyeSquintRight",
    "eyeWideLeft", "eyeWideRight",
    "jawForward", "jawLeft", "jawOpen", "jawRight",
    "mouthClose", "mouthDimpleLeft", "mouthDimpleRight", "mouthFrownLeft", "mouthFrownRight", "mouthFunnel",
    "mouthLeft", "mouthLowerDownLeft", "mouthLowerDownRight", "mouthPressLeft", "mouthPressRight", "mouthPucker",
    "mouthRight", "mouthRollLower", "mouthRollUpper", "mouthShrugLower", "mouthShrugUpper",
    "mouthSmileLeft", "mouthSmileRight", "mouthStretchLeft", "mouthStretchRight",
    "mouthUpperUpLeft", "mouthUpperUpRight", "noseSneerLeft", "noseSneerRight",
)  # fmt: skip


class Square(NamedTuple):
    """A square window in picture pixels; it may reach beyond the picture."""

    left: int
    top: int
    side: int


def align(pixels: NDArray[np.uint8], face: Face) -> NDArray[np.uint8]:
    """The face as identity models want it: the one alignment of this project.

    A similarity transform (no shear, no mirror) takes the five points to ArcFace's template with the least squares
    error, which is what InsightFace's `norm_crop` does. Bilinear, black beyond the picture.

    Args:
        pixels: RGB (H, W, 3) uint8.
        face: A face of that picture.

    Returns:
        RGB (112, 112, 3) uint8.
    """
    matrix = similarity(face.landmarks[FIVE_POINTS, :2].astype(np.float64), ARCFACE_TEMPLATE)
    aligned: NDArray[np.uint8] = cv2.warpAffine(pixels, matrix, (ALIGNED_SIZE, ALIGNED_SIZE), flags=cv2.INTER_LINEAR)
    return aligned


def similarity(points: NDArray[np.float64], template: NDArray[np.float64]) -> NDArray[np.float64]:
    """The (2, 3) similarity transform that takes `points` to `template`, both (N, 2), with least squares error.

    In the plane a similarity is w = a·z + b over complex numbers, so least squares has this closed form
    (Umeyama 1991 without the reflection case).
    """
    source, target = points[:, 0] + 1j * points[:, 1], template[:, 0] + 1j * template[:, 1]
    centred = source - source.mean()
    a = np.vdot(centred, target - target.mean()) / np.vdot(centred, centred)
    b = target.mean() - a * source.mean()
    return np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])


def face_mask(shape: tuple[int, ...], face: Face, dilate: float = 0.0) -> NDArray[np.bool_]:
    """The pixels of a face: its oval, widened.

    Args:
        shape: Of the picture; the first two entries (H, W) are read.
        face: A face of that picture.
        dilate: Widening in inter-eye distances, which an opened mouth does not change.

    Returns:
        (H, W) bool, true on the face.
    """
    height, width = shape[:2]
    oval = face.landmarks[FACE_OVAL, :2]
    mask = np.zeros((height, width), np.uint8)
    cv2.fillPoly(mask, [np.round(oval).astype(np.int32)], 1)
    if dilate > 0 and mask.any():
        # A distance threshold is an exact round dilation, at a cost that does not grow with the radius.
        radius = dilate * inter_eye_distance(face)
        distance = cv2.distanceTransform(1 - mask, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        return np.asarray(distance <= radius, np.bool_)
    return mask.astype(np.bool_)


def context_box(box: NDArray[np.float32], scale: float) -> Square:
    """The square around a box's centre, `scale` times its longer side; integer pixels, not clipped.

    Args:
        box: (4,) x, y, width, height in pixels, such as `Face.box`.
        scale: 1 is the box itself; 2.2 is what the landmarker wants.
    """
    x, y, width, height = (float(value) for value in box)
    side = max(1, round(max(width, height) * scale))
    return Square(round(x + width / 2 - side / 2), round(y + height / 2 - side / 2), side)


def landmark_box(face: Face) -> NDArray[np.float32]:
    """(4,) x, y, width, height of the landmarks, which fits a face tighter than the detector's box."""
    low, high = face.landmarks[:, :2].min(axis=0), face.landmarks[:, :2].max(axis=0)
    return np.concatenate([low, high - low]).astype(np.float32)


def crop(pixels: NDArray[np.uint8], square: Square, size: int) -> NDArray[np.uint8]:
    """Cut a square out of a picture; what lies beyond the border repeats the border's pixels.

    Args:
        pixels: (H, W, 3) uint8.
        square: The window; it must touch the picture.
        size: Side of the result in pixels, by area when shrinking and bilinear when growing.

    Returns:
        (size, size, 3) uint8, contiguous.
    """
    height, width = pixels.shape[:2]
    left, top, side = square
    right, bottom = left + side, top + side
    cut: NDArray[np.uint8] = pixels[max(top, 0) : min(bottom, height), max(left, 0) : min(right, width)]
    beyond = (max(-top, 0), max(bottom - height, 0), max(-left, 0), max(right - width, 0))
    if any(beyond):
        cut = cv2.copyMakeBorder(cut, *beyond, cv2.BORDER_REPLICATE)
    if size != side:
        cut = cv2.resize(cut, (size, size), interpolation=cv2.INTER_AREA if size < side else cv2.INTER_LINEAR)
    return np.ascontiguousarray(cut)


def inter_eye_distance(face: Face) -> float:
    """Pixels between the eye centres as if the head faced the camera: d / cos(yaw), as OFIQ measures it.

    ISO/IEC 29794-5 takes the centres from eye corners; we take MediaPipe's irises, which follow the gaze by a
    few per cent. The cosine is held above 0.1, so that a profile gives a large number instead of an infinite one.
    """
    left, right = face.landmarks[FIVE_POINTS[0], :2], face.landmarks[FIVE_POINTS[1], :2]
    return float(np.linalg.norm(right - left)) / max(math.cos(math.radians(face.yaw)), 0.1)


def coefficient(blendshapes: Mapping[str, float], name: str) -> float:
    """A blendshape by name, 0..1; "mouthSmile" is the mean of its left and right half."""
    if name in blendshapes:
        return blendshapes[name]
    return (blendshapes[f"{name}Left"] + blendshapes[f"{name}Right"]) / 2
