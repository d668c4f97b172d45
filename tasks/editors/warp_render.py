"""From displaced landmarks to pixels: a triangle mesh, an inverse map, one cubic look-up."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.editors.warp_geometry import (
    LANDMARKS,
    LIPS_OUTLINE,
    LOWER_LIP,
    OVAL,
    SIDES,
    UPPER_LIP,
    FaceFrame,
    Floats,
    Indices,
    ring,
)
from tasks.editors.warp_plan import Plan

Pixels = NDArray[np.uint8]
Plane = NDArray[np.float32]

_SUBPIXEL_BITS: Final = 4
_STILL: Final = 0.02  # pixels; what moves less is left alone, bit for bit


@dataclass(frozen=True, eq=False, slots=True)
class Canvas:
    """The part of the picture that an edit may touch, and the face before and after in its coordinates.

    Attributes:
        rows, columns: Where the part lies in the picture.
        source, moved: (514, 3) landmarks and ring before and after, in pixels of this part.
        right, down: Unit vectors of the face's axes in the image plane.
        unit: Outer-eye distance in pixels.
        inside: (H, W) float32, 1 within the ring; the only pixels that may change.
    """

    rows: slice
    columns: slice
    source: Floats
    moved: Floats
    right: Floats
    down: Floats
    unit: float
    inside: Plane

    @property
    def shape(self) -> tuple[int, int]:
        return self.inside.shape[0], self.inside.shape[1]

    def at(self, *landmarks: int) -> Floats:
        """(N, 2) where landmarks are after the edit."""
        places: Floats = self.moved[list(landmarks), :2]
        return places

    def polygon(self, landmarks: Indices) -> Plane:
        """Anti-aliased mask of an outline after the edit."""
        return fill(self.shape, self.moved[landmarks, :2])


def make_canvas(shape: tuple[int, ...], frame: FaceFrame, displacement: Floats) -> Canvas | None:
    """The canvas of an edit, or None where the face lies outside the picture."""
    source = np.vstack([frame.pixels, ring(frame)])
    border = source[LANDMARKS:, :2]
    left, top = np.maximum(np.floor(border.min(axis=0) - 2).astype(int), 0)
    right, bottom = np.minimum(np.ceil(border.max(axis=0) + 3).astype(int), [shape[1], shape[0]])
    if right <= left or bottom <= top:
        return None
    source = source - np.array([left, top, 0])
    moved = source.copy()
    moved[:LANDMARKS] += frame.to_pixels(displacement)
    inside = np.zeros((bottom - top, right - left), np.float32)
    cv2.fillPoly(inside, [_whole(source[LANDMARKS:])], 1.0)
    if not inside.any():
        return None
    return Canvas(
        rows=slice(int(top), int(bottom)),
        columns=slice(int(left), int(right)),
        source=source,
        moved=moved,
        right=frame.axis(0),
        down=frame.axis(1),
        unit=frame.unit,
        inside=inside,
    )


def warp(part: Pixels, canvas: Canvas, plan: Plan) -> Plane:
    """Move the pixels of the canvas's part of the picture. Returns (H, W, 3) float32, 0..255."""
    shift_x, shift_y = _inverse_map(canvas, plan)
    height, width = canvas.shape
    x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    moved = cv2.remap(part, x + shift_x, y + shift_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    moving = np.abs(shift_x) + np.abs(shift_y) > _STILL
    warped: Plane = np.where(moving[..., None], moved, part).astype(np.float32)
    return warped


def fill(shape: tuple[int, int], outline: Floats) -> Plane:
    """Anti-aliased (H, W) float32 mask 0..1 of a polygon given in pixels."""
    mask = np.zeros(shape, np.uint8)
    cv2.fillPoly(mask, [_fixed_point(outline)], 255, cv2.LINE_AA, _SUBPIXEL_BITS)
    return mask.astype(np.float32) / np.float32(255)


def line(shape: tuple[int, int], points: Floats, width: float) -> Plane:
    """Anti-aliased (H, W) float32 mask 0..1 of an open line, `width` in pixels."""
    mask = np.zeros(shape, np.uint8)
    thickness = max(1, round(width))
    cv2.polylines(mask, [_fixed_point(points)], False, 255, thickness, cv2.LINE_AA, _SUBPIXEL_BITS)
    return mask.astype(np.float32) / np.float32(255)


def blur(plane: Any, sigma: float) -> Any:
    """Gaussian blur with `sigma` in pixels."""
    return cv2.GaussianBlur(plane, (0, 0), max(sigma, 0.3))


@cache
def _skin_triangles() -> Indices:
    """MediaPipe's 852 triangles, and a band from the oval to the ring whose outer points never move."""
    from mediapipe.tasks.python.vision import FaceLandmarksConnections

    edges = FaceLandmarksConnections.FACE_LANDMARKS_TESSELATION
    skin = [[edge.start for edge in edges[k : k + 3]] for k in range(0, len(edges), 3)]
    band = []
    for k, inner in enumerate(OVAL):
        following = (k + 1) % len(OVAL)
        band.append([inner, OVAL[following], LANDMARKS + k])
        band.append([OVAL[following], LANDMARKS + following, LANDMARKS + k])
    return np.array(band + skin, dtype=np.int64)


def _strip(start: int, upper: list[int], lower: list[int], end: int) -> Indices:
    """Triangles between two rows of points that meet in `start` and `end`."""
    triangles = [[start, upper[0], lower[0]], [end, upper[-1], lower[-1]]]
    for (u, v), (p, q) in zip(pairwise(upper), pairwise(lower), strict=True):
        triangles += [[u, v, p], [v, q, p]]
    return np.array(triangles, dtype=np.int64)


_EYES: Final = tuple(
    _strip(side.inner_corner, list(side.upper_lid), list(side.lower_lid), side.outer_corner) for side in SIDES
)
_OPENING: Final = _strip(
    int(UPPER_LIP[3, 0]), UPPER_LIP[3, 1:10].tolist(), LOWER_LIP[3, 1:10].tolist(), int(UPPER_LIP[3, 10])
)


def _mesh(canvas: Canvas, plan: Plan) -> tuple[Floats, Floats]:
    """(N, 3, 2) triangles before and after, the farthest first so that nearer skin is painted over them."""
    texture = canvas.source[:, :2].copy()
    if plan.closes_mouth:
        # The edge of the lips takes its texture from inside the lip: at the edge itself there are teeth in it.
        for rows in (UPPER_LIP, LOWER_LIP):
            edge, within = rows[3, 1:10], rows[2, 1:10]
            texture[edge] = 0.35 * texture[edge] + 0.65 * texture[within]
    skin = _skin_triangles()
    layers = [(skin, texture, 0.0)]
    for side, triangles in zip(SIDES, _EYES, strict=True):
        layers.append((triangles, _eye_texture(canvas, plan, side.upper_lid, side.lower_lid), 0.5))
    if plan.closes_mouth:
        behind = texture.copy()
        behind[LOWER_LIP[3]] = behind[UPPER_LIP[3]]
        layers.append((_OPENING, behind, 0.4))
    before = np.concatenate([source[triangles] for triangles, source, _ in layers])
    after = np.concatenate([canvas.moved[triangles, :2] for triangles, _, _ in layers])
    depth = np.concatenate(
        [canvas.moved[triangles, 2].mean(axis=1) + behind * canvas.unit for triangles, _, behind in layers]
    )
    order = np.argsort(-depth, kind="stable")
    return before[order], after[order]


def _eye_texture(canvas: Canvas, plan: Plan, upper: tuple[int, ...], lower: tuple[int, ...]) -> Floats:
    """Lids that close slide over the eye (it stays where it is); lids that open stretch it."""
    texture: Floats = canvas.source[:, :2].copy()
    drop = plan.displacement[:, 1]
    closing = [i for i in upper if drop[i] > 0] + [i for i in lower if drop[i] < 0]
    texture[closing] = canvas.moved[closing, :2]
    return texture


def _inverse_map(canvas: Canvas, plan: Plan) -> tuple[Plane, Plane]:
    """For each pixel of the canvas how far away its new content lies, x and y."""
    before, after = _mesh(canvas, plan)
    owner = _rasterise(canvas.shape, before, after)
    corners = np.concatenate([after, np.ones((len(after), 3, 1))], axis=2)
    corners[np.abs(np.linalg.det(corners)) < 1e-6] += 1e-3 * np.eye(3)
    maps = np.linalg.solve(corners, before)
    y, x = np.nonzero(owner >= 0)
    affine = maps[owner[y, x]]
    limit = 0.35 * canvas.unit  # a sliver of a triangle can ask for anything
    raw = np.zeros((2, *canvas.shape), np.float32)
    for axis, here in enumerate((x, y)):
        there = affine[:, 0, axis] * x + affine[:, 1, axis] * y + affine[:, 2, axis]
        raw[axis, y, x] = np.clip(there - here, -limit, limit)
    return _smooth(canvas, raw)


def _rasterise(shape: tuple[int, int], before: Floats, after: Floats) -> NDArray[np.int32]:
    """(H, W) index of the triangle seen at each pixel, negative where nothing moves."""
    owner = np.full(shape, -1, np.int32)
    corners = _fixed_point(after)
    moves = (np.abs(before - after).max(axis=(1, 2)) > _STILL).tolist()
    for index, moving in enumerate(moves):
        cv2.fillConvexPoly(owner, corners[index], index if moving else -2, cv2.LINE_8, _SUBPIXEL_BITS)
    return owner


def _smooth(canvas: Canvas, raw: Plane) -> tuple[Plane, Plane]:
    """Hide the mesh's creases, but not at lips and lids, where the map jumps on purpose; fade out to the ring."""
    unit = canvas.unit
    keep = np.zeros(canvas.shape, np.float32)
    cv2.fillPoly(keep, [_whole(canvas.moved[LIPS_OUTLINE])], 1.0)
    for side in SIDES:
        cv2.fillPoly(keep, [_whole(canvas.moved[side.eye_outline])], 1.0)
    size = max(1, int(0.03 * unit))
    keep = blur(cv2.dilate(keep, np.ones((size, size))), 0.015 * unit)
    fade = inner_fade(canvas, 0.02, 0.012)
    shift_x, shift_y = (fade * (keep * plane + (1 - keep) * blur(plane, 0.030 * unit)) for plane in raw)
    return shift_x, shift_y


def inner_fade(canvas: Canvas, margin: float, softness: float) -> Plane:
    """1 well within the ring, 0 on and outside it; `margin` and `softness` in outer-eye distances."""
    steps = max(1, int(margin * canvas.unit))
    eroded = cv2.erode(canvas.inside, np.ones((3, 3)), iterations=steps)
    faded: Plane = blur(eroded, softness * canvas.unit) * canvas.inside
    return faded


def _whole(points: Floats) -> NDArray[np.int32]:
    return np.round(points[:, :2]).astype(np.int32)


def _fixed_point(points: Floats) -> NDArray[np.int32]:
    return np.round(np.asarray(points) * (1 << _SUBPIXEL_BITS)).astype(np.int32)
