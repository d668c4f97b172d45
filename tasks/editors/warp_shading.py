"""Light and shadow: smile folds that must go, creases that an expression brings."""

from typing import Final

import cv2
import numpy as np

from schemas.expressions import Expression
from tasks.editors.warp_geometry import LIPS_OUTLINE, SIDES, Floats, Side
from tasks.editors.warp_plan import Plan
from tasks.editors.warp_render import Canvas, Plane, blur, inner_fade, line

# Lines across the forehead, between the brows and the points above them, from the viewer's left to the right.
_BROW_TO_FOREHEAD: Final = ((105, 104), (66, 69), (107, 108), (9, 151), (336, 337), (296, 299), (334, 333))


def soften_folds(warped: Plane, canvas: Canvas, plan: Plan) -> None:
    """Take the smile folds and the lines under the eyes out of a face that smiled, in place.

    They are what a narrow blur keeps and a wide one loses; only that band is removed, so pores and light remain.
    """
    where = _fold_mask(canvas)
    rows, columns = np.nonzero(where > 0.01)
    if not len(rows):
        return
    reach = int(0.15 * canvas.unit)
    window = (
        slice(max(int(rows.min()) - reach, 0), int(rows.max()) + reach),
        slice(max(int(columns.min()) - reach, 0), int(columns.max()) + reach),
    )
    skin = warped[window]
    band = blur(skin, 0.010 * canvas.unit) - _wide_blur(skin, 0.10 * canvas.unit)
    amount = plan.undo * min(1.0, 1.2 * plan.smile)
    skin -= amount * where[window][..., None] * np.clip(band, -70, 25)


def _fold_mask(canvas: Canvas) -> Plane:
    """Where a smile leaves its lines: beside the nose, beside the mouth corners, and half as much under the eyes."""
    mask = np.zeros(canvas.shape, np.float32)
    unit = canvas.unit
    for side in SIDES:
        mask = np.maximum(mask, line(canvas.shape, canvas.at(*side.fold), 0.15 * unit))
        mask = np.maximum(mask, line(canvas.shape, _beside_corner(canvas, side), 0.10 * unit))
        mask = np.maximum(mask, 0.7 * line(canvas.shape, canvas.at(*side.under_eye), 0.05 * unit))
    lips = cv2.dilate(canvas.polygon(LIPS_OUTLINE), np.ones((3, 3)), iterations=max(1, int(0.01 * unit)))
    folds: Plane = blur(mask, 0.025 * unit) * (1 - blur(lips, 0.01 * unit))
    return folds


def _beside_corner(canvas: Canvas, side: Side) -> Floats:
    """An arc around a mouth corner, where a narrowing mouth squeezes the dimple of the smile into a dark line."""
    corner = canvas.at(side.mouth_corner)[0]
    outward, down = side.outward * canvas.unit * canvas.right, canvas.unit * canvas.down
    offsets = (0.03 * outward - 0.06 * down, 0.05 * outward, 0.03 * outward + 0.07 * down)
    return np.stack([corner + offset for offset in offsets])


def _wide_blur(skin: Plane, sigma: float) -> Plane:
    """A wide blur, taken at a quarter of the size where the part is large enough."""
    height, width = skin.shape[:2]
    if min(height, width) <= 40:
        return np.asarray(blur(skin, sigma), np.float32)
    small = cv2.resize(skin, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    wide: Plane = cv2.resize(blur(small, sigma / 4), (width, height), interpolation=cv2.INTER_LINEAR)
    return wide


def add_creases(warped: Plane, canvas: Canvas, plan: Plan) -> None:
    """Darken the creases of the target expression and lighten left-over smile folds, in place."""
    creases = _Creases(canvas, _softness(warped, canvas))
    strength = plan.strength
    corners = strength * (1 - 0.7 * plan.smile)  # skin that a narrowing mouth squeezes is dark there already
    if plan.target is Expression.HAPPY:
        _smile(creases, strength * max(0.0, 1 - plan.smile))  # a face that smiles has its folds already
    elif plan.target is Expression.SAD:
        _worried_forehead(creases, strength)
        _mouth_corners(creases, corners)
        _pushed_chin(creases, strength)
    elif plan.target in (Expression.SURPRISE, Expression.FEAR):
        _raised_forehead(creases, min(strength, 1.2))
    elif plan.target is Expression.DISGUST:
        _frown(creases, 0.7 * strength)
        _wrinkled_nose(creases, strength)
        _mouth_corners(creases, corners)
    elif plan.target is Expression.ANGER:
        _frown(creases, strength)
        _mouth_corners(creases, corners)
    if plan.smile > 0.3 and plan.target is not Expression.HAPPY:
        for side in SIDES:
            creases.stroke(canvas.at(*side.fold[1:4]), -0.06 * plan.smile * plan.undo, 0.012, 0.018)
    lips = blur(canvas.polygon(LIPS_OUTLINE), 0.01 * canvas.unit)
    light = creases.light * inner_fade(canvas, 0.05, 0.03) * (1 - lips)
    warped *= (1 + light)[..., None]


def _softness(warped: Plane, canvas: Canvas) -> float:
    """0 where the face shows pores and hair, 1 where it was enlarged from a small picture or is out of focus.

    The finest detail over the next coarser one: above 0.95 in sharp studio photos, about 0.7 in enlarged ones.
    """
    luminance = cv2.cvtColor(warped, cv2.COLOR_RGB2GRAY)
    narrow, wide = blur(luminance, 0.012 * canvas.unit), blur(luminance, 0.024 * canvas.unit)
    face = canvas.inside > 0
    ratio = float(np.abs(luminance - narrow)[face].mean()) / max(float(np.abs(narrow - wide)[face].mean()), 1e-3)
    return float(np.clip((0.95 - ratio) / 0.25, 0.0, 1.0))


class _Creases:
    """Collects strokes of light and shadow; lengths are in outer-eye distances, amounts in shares of the light.

    In a soft picture (0 sharp, 1 soft) a crisp line looks like a scratch: there, strokes are wider and fainter.
    """

    def __init__(self, canvas: Canvas, soft: float) -> None:
        self.canvas = canvas
        self.soft = soft
        self.light = np.zeros(canvas.shape, np.float32)

    def stroke(self, points: Floats, amount: float, width: float, softness: float) -> None:
        """Darken by `amount` along a line; a negative amount lightens."""
        unit = self.canvas.unit
        amount *= 1 - 0.3 * self.soft
        softness *= 1 + 0.7 * self.soft
        margin = int(3 * softness * unit + width * unit) + 3
        low = np.maximum(np.floor(points.min(axis=0)).astype(int) - margin, 0)
        high = np.minimum(np.ceil(points.max(axis=0)).astype(int) + margin, self.canvas.shape[::-1])
        if amount == 0 or (high <= low).any():
            return
        window = (slice(low[1], high[1]), slice(low[0], high[0]))
        shape = (int(high[1] - low[1]), int(high[0] - low[0]))
        drawn = blur(line(shape, points - low, width * unit), softness * unit)
        self.light[window] -= amount * drawn / max(float(drawn.max()), 1e-6)

    def fold(
        self, points: Floats, amount: float, offset: Floats, *, highlight: float, width: float, softness: float
    ) -> None:
        """A crease with the light on the bulge beside it, `offset` away."""
        self.stroke(points, amount, width, softness)
        self.stroke(points + offset * self.canvas.unit, -highlight * (1 - 0.7 * self.soft), width, 1.4 * softness)

    def place(self, landmark: int, right: float = 0.0, down: float = 0.0) -> Floats:
        """(2,) a point `right` and `down` of a landmark, in pixels."""
        canvas = self.canvas
        point: Floats = canvas.at(landmark)[0] + canvas.unit * (right * canvas.right + down * canvas.down)
        return point


def _smile(creases: _Creases, strength: float) -> None:
    right, down = creases.canvas.right, creases.canvas.down
    for side in SIDES:
        offset = 0.05 * side.outward * right - 0.02 * down
        creases.fold(
            creases.canvas.at(*side.fold[:4]),
            0.13 * strength,
            offset,
            highlight=0.06 * strength,
            width=0.012,
            softness=0.016,
        )
        creases.stroke(creases.canvas.at(*side.cheekbone), 0.04 * strength, 0.010, 0.020)


def _frown(creases: _Creases, strength: float) -> None:
    """Two upright lines between the brows, and shadow under them."""
    canvas = creases.canvas
    centre = canvas.at(8, 9).mean(axis=0)
    for side in SIDES:
        top = centre + canvas.unit * (0.055 * side.outward * canvas.right - 0.05 * canvas.down)
        bottom = centre + canvas.unit * (0.045 * side.outward * canvas.right + 0.05 * canvas.down)
        offset = 0.03 * side.outward * canvas.right
        creases.fold(
            np.stack([top, bottom]), 0.13 * strength, offset, highlight=0.05 * strength, width=0.010, softness=0.012
        )
        creases.stroke(canvas.at(*side.brow_bottom[:4]), 0.10 * strength, 0.020, 0.022)


def _wrinkled_nose(creases: _Creases, strength: float) -> None:
    """Folds beside the nostrils and three short ones across the bridge."""
    for side in SIDES:
        offset = 0.05 * side.outward * creases.canvas.right
        creases.fold(
            creases.canvas.at(*side.fold[:3]),
            0.13 * strength,
            offset,
            highlight=0.05 * strength,
            width=0.012,
            softness=0.016,
        )
        for down in (0.02, 0.06, 0.10):
            start = creases.place(6, 0.02 * side.outward, down)
            end = creases.place(6, 0.075 * side.outward, down - 0.035)
            creases.stroke(np.stack([start, end]), 0.06 * strength, 0.009, 0.013)


def _raised_forehead(creases: _Creases, strength: float) -> None:
    for height, amount in ((0.30, 0.045), (0.52, 0.045), (0.72, 0.030)):
        points = _across_forehead(creases.canvas, height, _BROW_TO_FOREHEAD)
        creases.fold(
            points,
            amount * strength,
            -0.03 * creases.canvas.down,
            highlight=0.012 * strength,
            width=0.008,
            softness=0.013,
        )


def _worried_forehead(creases: _Creases, strength: float) -> None:
    for height, amount in ((0.35, 0.045), (0.60, 0.035)):
        points = _across_forehead(creases.canvas, height, _BROW_TO_FOREHEAD[1:-1])
        creases.stroke(points, amount * strength, 0.007, 0.011)


def _across_forehead(canvas: Canvas, height: float, pairs: tuple[tuple[int, int], ...]) -> Floats:
    brows, above = canvas.at(*(pair[0] for pair in pairs)), canvas.at(*(pair[1] for pair in pairs))
    points: Floats = brows + height * (above - brows)
    return points


def _mouth_corners(creases: _Creases, strength: float) -> None:
    """Lines from the mouth corners down towards the jaw."""
    for side in SIDES:
        corner, jowl = creases.canvas.at(side.mouth_corner, side.fold[-1])
        creases.stroke(np.stack([corner, corner + 0.6 * (jowl - corner)]), 0.10 * strength, 0.012, 0.016)


def _pushed_chin(creases: _Creases, strength: float) -> None:
    lip, chin = creases.canvas.at(17, 18)
    below = lip + 0.9 * (chin - lip)
    reach = 0.10 * creases.canvas.unit * creases.canvas.right
    creases.stroke(np.stack([below - reach, below, below + reach]), 0.06 * strength, 0.012, 0.020)
