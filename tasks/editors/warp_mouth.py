"""What shows between the lips: a line where they meet, real teeth where there are any, painted ones elsewhere."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.expressions import Expression
from tasks.editors.warp_geometry import LOWER_LIP, OPENING_OUTLINE, UPPER_LIP, Floats
from tasks.editors.warp_plan import CLOSED_GAP, Plan
from tasks.editors.warp_render import Canvas, Pixels, Plane, blur, fill, line

# RGB, for skin of the brightness said; all are scaled by the brightness of the skin in the picture.
_LUMINANCE: Final = np.array([0.299, 0.587, 0.114], np.float32)
_CAVITY: Final = np.array([46.0, 18.0, 22.0], np.float32) / 170
_TONGUE: Final = np.array([140.0, 74.0, 78.0], np.float32) / 190
_TOOTH: Final = np.array([0.97, 0.93, 0.84], np.float32)
_SKIN_HUE: Final = np.array([1.18, 0.95, 0.79], np.float32)  # skin under white light, over its own luminance

_REAL_GAP: Final = 0.035  # an opening in the source that shows something worth keeping
_TONGUE_GAP: Final = 0.11
_TOOTH_LENGTH: Final = {Expression.HAPPY: 0.10, Expression.FEAR: 0.055}
_OTHER_TOOTH_LENGTH: Final = 0.045


def fill_mouth(warped: Plane, part: Pixels, canvas: Canvas, plan: Plan) -> None:
    """Paint the mouth's opening into `warped`, in place; `part` is the same area of the source."""
    if plan.mouth.gap >= CLOSED_GAP:
        _paint_opening(warped, part, canvas, plan)
    elif plan.closes_mouth:
        _paint_lip_line(warped, canvas, plan.undo)


def _paint_lip_line(warped: Plane, canvas: Canvas, amount: float) -> None:
    middle = (canvas.moved[UPPER_LIP[3], :2] + canvas.moved[LOWER_LIP[3], :2]) / 2
    unit = canvas.unit
    seam = blur(line(canvas.shape, middle, 0.012 * unit), max(0.6, 0.008 * unit))[..., None] * amount
    mixed = np.clip(1.6 * seam, 0, 1)
    warped += mixed * (blur(warped, max(0.7, 0.007 * unit)) - warped)
    warped *= 1 - 0.40 * np.clip(seam, 0, 1)


@dataclass(frozen=True, eq=False, slots=True)
class _Opening:
    """The opening's own coordinates, in pixels around its centre, one plane each.

    Attributes:
        window: The rows and columns of the canvas that hold it.
        along, across: To the viewer's right along the mouth; down the face.
        upper, lower: `across` of the lips' edges at each pixel.
        sideways: |along| over half the mouth's width, 0 at the middle, 1 at the corners.
        half_width: Pixels. gap: height at the middle as planned, pixels. unit: outer-eye distance, pixels.
    """

    window: tuple[slice, slice]
    along: Plane
    across: Plane
    upper: Plane
    lower: Plane
    sideways: Plane
    half_width: float
    gap: float
    unit: float

    @property
    def height(self) -> Plane:
        return np.asarray(np.maximum(self.lower - self.upper, 1), np.float32)


def _opening(canvas: Canvas, gap: float) -> _Opening | None:
    outline = canvas.moved[OPENING_OUTLINE, :2]
    centre = outline.mean(axis=0)
    left, top = np.maximum(np.floor(outline.min(axis=0) - 6), 0).astype(int)
    right, bottom = np.minimum(np.ceil(outline.max(axis=0) + 7).astype(int), [canvas.shape[1], canvas.shape[0]])
    if right <= left or bottom <= top:
        return None
    y, x = np.mgrid[top:bottom, left:right].astype(np.float32)
    along = ((x - centre[0]) * canvas.right[0] + (y - centre[1]) * canvas.right[1]).astype(np.float32)
    across = ((x - centre[0]) * canvas.down[0] + (y - centre[1]) * canvas.down[1]).astype(np.float32)
    upper_lip, lower_lip = canvas.moved[UPPER_LIP[3], :2] - centre, canvas.moved[LOWER_LIP[3], :2] - centre
    stations = upper_lip @ canvas.right
    order = np.argsort(stations)
    half_width = float(max(np.abs(stations).max(), 1.0))

    def edge(lip: Floats) -> Plane:
        heights = np.interp(along, stations[order], (lip @ canvas.down)[order])
        return np.asarray(heights, np.float32)

    return _Opening(
        window=(slice(int(top), int(bottom)), slice(int(left), int(right))),
        along=along,
        across=across,
        upper=edge(upper_lip),
        lower=edge(lower_lip),
        sideways=np.clip(np.abs(along) / half_width, 0, 1).astype(np.float32),
        half_width=half_width,
        gap=gap * canvas.unit,
        unit=canvas.unit,
    )


def _paint_opening(warped: Plane, part: Pixels, canvas: Canvas, plan: Plan) -> None:
    opening = _opening(canvas, plan.mouth.gap)
    if opening is None:
        return
    unit = canvas.unit
    brightness, hue = _skin_colour(warped, canvas)
    colour = _cavity(opening, brightness)
    if plan.mouth.gap > _TONGUE_GAP:
        _add_tongue(colour, opening, brightness)
    _add_teeth(colour, opening, plan, _tooth_colour(brightness, hue))
    colour = blur(colour, max(0.4, 0.004 * unit))
    shadow = _lip_shadow(opening)
    if _shows_real_teeth(plan):
        real = _real_content(canvas)[opening.window][..., None]
        colour += real * (part[opening.window].astype(np.float32) - colour)
        shadow = 0.5 + 0.5 * shadow  # real teeth bring half of their shadow along
    colour *= shadow[..., None]
    mask = blur(canvas.polygon(OPENING_OUTLINE)[opening.window], max(0.5, 0.005 * unit))[..., None]
    mask *= min(1.0, 4 * plan.undo)  # a hint of an edit must not repaint a mouth that was open before
    warped[opening.window] += mask * (colour - warped[opening.window])


def _shows_real_teeth(plan: Plan) -> bool:
    """Whether what the source's mouth shows fits the target; a mouth open in awe has no teeth for a smile."""
    return plan.now.gap > _REAL_GAP and (plan.target is not Expression.HAPPY or plan.smile > 0.3)


def _skin_colour(warped: Plane, canvas: Canvas) -> tuple[float, Floats]:
    """Luminance of well-lit skin, and the RGB hue of the face over its own luminance."""
    sample = warped[canvas.inside > 0][::17]
    brightness = float(np.percentile(sample @ _LUMINANCE, 85))
    colour = np.median(sample, axis=0).astype(np.float64)
    hue: Floats = colour / max(float(colour @ _LUMINANCE), 1.0)
    return brightness, hue


def _tooth_colour(brightness: float, hue: Floats) -> Plane:
    """White under the light that the skin shows: half of the skin's cast, since the other half may be its own hue."""
    tooth = _TOOTH * np.sqrt(np.clip(hue / _SKIN_HUE, 0.5, 2.0))
    tooth *= float(_TOOTH @ _LUMINANCE) / float(tooth @ _LUMINANCE)
    return np.asarray(tooth * min(225.0, 1.22 * brightness), np.float32)


def _cavity(opening: _Opening, brightness: float) -> Plane:
    depth = np.clip((opening.across - opening.upper) / opening.height, 0, 1)
    light = 1.0 + 0.5 * depth - 0.5 * opening.sideways
    return np.asarray(_CAVITY * brightness * light[..., None], np.float32)


def _add_tongue(colour: Plane, opening: _Opening, brightness: float) -> None:
    x = opening.along / (0.62 * opening.half_width)
    y = (opening.across - opening.lower) / (0.42 * opening.gap)
    share = 0.75 * np.clip(1.6 * (1 - (x**2 + y**2)), 0, 1)[..., None]
    colour += share * (_TONGUE * brightness - colour)


def _add_teeth(colour: Plane, opening: _Opening, plan: Plan, tooth: Plane) -> None:
    """The upper row hangs from the upper lip; fear also bares the tips of the lower one."""
    unit, sideways = opening.unit, opening.sideways
    happy = plan.target is Expression.HAPPY
    soft = max(0.5, 0.006 * unit)
    gaps = _tooth_gaps(opening)
    length = _TOOTH_LENGTH.get(plan.target, _OTHER_TOOTH_LENGTH) * unit * (1 - 0.45 * sideways**2.2)
    tips = opening.upper + np.minimum(length, (0.9 if happy else 0.8) * opening.height)
    row = _step((tips - opening.across) / soft) * _row_ends(opening, 0.90, soft)
    gums = 0.84 + 0.16 * np.clip((opening.across - opening.upper) / (0.02 * unit), 0, 1)
    shade = (1 - 0.50 * sideways**2.4) * gums * gaps
    colour += row[..., None] * (tooth * shade[..., None] - colour)
    if plan.target is Expression.FEAR and plan.mouth.gap > 0.05:
        tips = opening.lower - 0.03 * unit * (1 - 0.5 * sideways**2)
        row = _step((opening.across - tips) / soft) * _row_ends(opening, 0.70, soft)
        shade = 0.7 * (1 - 0.6 * sideways**1.6) * gaps
        colour += 0.8 * row[..., None] * (tooth * shade[..., None] - colour)


def _row_ends(opening: _Opening, share: float, soft: float) -> Plane:
    """1 over the middle `share` of the mouth, where a row of teeth shows; `soft` in pixels."""
    return _step((share * opening.half_width - np.abs(opening.along)) / (2 * soft))


def _tooth_gaps(opening: _Opening) -> Plane:
    """Faint lines between about ten teeth, closer together towards the corners as the row bends away."""
    angle = np.arcsin(np.clip(opening.along / (1.02 * opening.half_width), -1, 1)) / (np.pi / 2)
    phase = 5.75 * angle
    distance = np.abs(phase - np.round(phase))
    gaps: Plane = 1 - 0.11 * np.exp(-((distance / 0.10) ** 2))
    return gaps


def _real_content(canvas: Canvas) -> Plane:
    """Mask of the source's own opening: teeth are fixed to the skull, so they stay where they are."""
    outline = canvas.source[OPENING_OUTLINE, :2]
    centre = outline.mean(axis=0)
    mask: Plane = blur(fill(canvas.shape, centre + 0.95 * (outline - centre)), max(0.8, 0.012 * canvas.unit))
    return mask


def _lip_shadow(opening: _Opening) -> Plane:
    distance = np.minimum(opening.across - opening.upper, opening.lower - opening.across)
    shadow: Plane = 0.72 + 0.28 * np.clip(distance / (0.016 * opening.unit), 0, 1)
    return shadow


def _step(value: NDArray[Any]) -> Plane:
    """A soft step from 0 to 1 around 0."""
    return np.asarray(1 / (1 + np.exp(-np.clip(value, -30, 30))), np.float32)
