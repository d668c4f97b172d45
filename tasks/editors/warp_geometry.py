"""Where things are in a face: landmark tables, the face's own frame, and the measures taken in it.

The two sides are named as the viewer sees them. Lengths in the face frame are in outer-eye distances.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tasks.faces.geometry import FACE_OVAL

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

LANDMARKS: Final = 478
IRISES: Final = 468  # landmarks from here on lie in the irises, which stay where they look

# Four nested rows of each lip, from the outer edge (0) to the edge of the mouth's opening (3); each from the left
# corner to the right one.
UPPER_LIP: Final[Indices] = np.array(
    [
        [61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291],
        [76, 184, 74, 73, 72, 11, 302, 303, 304, 408, 306],
        [62, 183, 42, 41, 38, 12, 268, 271, 272, 407, 292],
        [78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308],
    ]
)
LOWER_LIP: Final[Indices] = np.array(
    [
        [61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291],
        [76, 77, 90, 180, 85, 16, 315, 404, 320, 307, 306],
        [62, 96, 89, 179, 86, 15, 316, 403, 319, 325, 292],
        [78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308],
    ]
)
LIPS_OUTLINE: Final[Indices] = np.concatenate([UPPER_LIP[0], LOWER_LIP[0, -2:0:-1]])
OPENING_OUTLINE: Final[Indices] = np.concatenate([UPPER_LIP[3], LOWER_LIP[3, -2:0:-1]])
OVAL: Final[Indices] = np.array(FACE_OVAL)
NOSE_BASE: Final = 2
CHIN: Final = 152
FOREHEAD: Final = 10


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """The landmarks of one half of the face; rows run from the nose outwards.

    Attributes:
        outward: -1 on the viewer's left, +1 on the right.
        brow_top, brow_bottom: Five points each.
        upper_lid, lower_lid: Seven points each, without the corners.
        inner_corner, outer_corner: Of the eye.
        mouth_corner: Of the lips' outer edge.
        fold: The smile fold, from beside the nostril down past the mouth corner.
        under_eye: Along the lower rim of the eye socket.
        cheekbone: Where crow's feet and raised cheeks cast a line.
    """

    outward: float
    brow_top: tuple[int, ...]
    brow_bottom: tuple[int, ...]
    upper_lid: tuple[int, ...]
    lower_lid: tuple[int, ...]
    inner_corner: int
    outer_corner: int
    mouth_corner: int
    fold: tuple[int, ...]
    under_eye: tuple[int, ...]
    cheekbone: tuple[int, ...]

    @property
    def eye_outline(self) -> list[int]:
        return [self.inner_corner, *self.upper_lid, self.outer_corner, *reversed(self.lower_lid)]


SIDES: Final = (
    Side(
        outward=-1.0,
        brow_top=(107, 66, 105, 63, 70),
        brow_bottom=(55, 65, 52, 53, 46),
        upper_lid=(173, 157, 158, 159, 160, 161, 246),
        lower_lid=(155, 154, 153, 145, 144, 163, 7),
        inner_corner=133,
        outer_corner=33,
        mouth_corner=61,
        fold=(129, 203, 206, 216, 212),
        under_eye=(117, 118, 119),
        cheekbone=(116, 117, 118),
    ),
    Side(
        outward=1.0,
        brow_top=(336, 296, 334, 293, 300),
        brow_bottom=(285, 295, 282, 283, 276),
        upper_lid=(398, 384, 385, 386, 387, 388, 466),
        lower_lid=(382, 381, 380, 374, 373, 390, 249),
        inner_corner=362,
        outer_corner=263,
        mouth_corner=291,
        fold=(358, 423, 426, 436, 432),
        under_eye=(346, 347, 348),
        cheekbone=(345, 346, 347),
    ),
)


@dataclass(frozen=True, eq=False, slots=True)
class FaceFrame:
    """The face's own axes, which follow the head's pose.

    Attributes:
        pixels: (478, 3) landmarks in pixels of the picture.
        points: (478, 3) the same landmarks in the frame: origin between the eyes, unit one outer-eye distance.
        axes: (3, 3) rows are the unit vectors to the viewer's right, down the face, and into the head.
        unit: Outer-eye distance in pixels.
    """

    pixels: Floats
    points: Floats
    axes: Floats
    unit: float

    def to_pixels(self, displacement: Floats) -> Floats:
        """Displacements in the frame (N, 3) as displacements in pixels (N, 3)."""
        moved: Floats = displacement @ self.axes * self.unit
        return moved

    def axis(self, index: int) -> Floats:
        """The right (0) or down (1) axis as the picture shows it, a unit vector in the image plane."""
        seen = self.axes[index, :2]
        unit: Floats = seen / np.linalg.norm(seen)
        return unit


def face_frame(landmarks: NDArray[np.floating]) -> FaceFrame:
    """The frame of a face, from all three coordinates of its landmarks."""
    pixels = landmarks.astype(np.float64)
    # Three pairs share the vote on what is horizontal: a smirk or a tilted jaw alone cannot turn the frame.
    right = _unit((pixels[263] - pixels[33]) + 0.5 * (pixels[454] - pixels[234]) + 0.3 * (pixels[291] - pixels[61]))
    down = pixels[CHIN] - pixels[FOREHEAD]
    down = _unit(down - right * (down @ right))
    axes = np.stack([right, down, np.cross(right, down)])
    unit = float(np.linalg.norm(pixels[263] - pixels[33]))
    origin = pixels[[33, 263, 133, 362]].mean(axis=0)
    return FaceFrame(pixels=pixels, points=(pixels - origin) @ axes.T / unit, axes=axes, unit=unit)


@dataclass(frozen=True, slots=True)
class EyeMeasures:
    """One eye: brow heights above the eyes (inner, middle, outer) and the opening between the lids."""

    brow: tuple[float, float, float]
    aperture: float


@dataclass(frozen=True, slots=True)
class Measures:
    """The shape of a face now. Mouth heights are measured down from the base of the nose."""

    middle: float
    half_width: float
    corner: float
    upper: float
    lower: float
    upper_thickness: float
    lower_thickness: float
    eyes: tuple[EyeMeasures, EyeMeasures]

    @property
    def gap(self) -> float:
        return self.lower - self.upper


def measure(frame: FaceFrame) -> Measures:
    """Measure mouth, brows and eyes in the face frame."""
    points = frame.points
    x, y = points[:, 0], points[:, 1]
    base = y[NOSE_BASE]
    return Measures(
        middle=float(x[13] + x[14]) / 2,
        half_width=float(x[291] - x[61]) / 2,
        corner=float((y[61] + y[291]) / 2 - base),
        upper=float(y[13] - base),
        lower=float(y[14] - base),
        upper_thickness=float(y[13] - y[0]),
        lower_thickness=float(y[17] - y[14]),
        eyes=(_measure_eye(y, SIDES[0]), _measure_eye(y, SIDES[1])),
    )


def _measure_eye(y: Floats, side: Side) -> EyeMeasures:
    inner, middle, outer = (-float(y[side.brow_top[k]] + y[side.brow_bottom[k]]) / 2 for k in (0, 2, 4))
    return EyeMeasures((inner, middle, outer), float(y[side.lower_lid[3]] - y[side.upper_lid[3]]))


def ring(frame: FaceFrame) -> Floats:
    """(36, 3) points in pixels around the face's oval. Nothing on or outside this ring ever moves.

    It lies 0.06 outer-eye distances outside the oval at the temples and 0.22 under the chin, where a jaw may drop.
    """
    oval = frame.points[OVAL]
    directions = oval[:, :2] - np.array([0.0, oval[:, 1].mean()])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    margin = 0.06 + 0.16 * smoothstep(directions[:, 1:] + 0.1)
    outer: Floats = frame.pixels[OVAL] + margin * directions @ frame.axes[:2] * frame.unit
    return outer


def smoothstep(value: Floats) -> Floats:
    """0 below 0, 1 above 1, smooth between."""
    value = np.clip(value, 0.0, 1.0)
    smooth: Floats = value * value * (3 - 2 * value)
    return smooth


def _unit(vector: Floats) -> Floats:
    unit: Floats = vector / np.linalg.norm(vector)
    return unit
