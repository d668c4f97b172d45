"""How far each feature moves for each expression, and what an average neutral face looks like.

Unit: the person's outer-eye distance (about 90 mm). y points down, so a drop is positive and a raise negative.

Provenance: set by hand while looking at photos, then tuned with a (1+1) evolution strategy against the probabilities
of two small expression networks, one of them the `fer` voter, on 21 crops, and blended back towards the hand-set
values where the tuned ones looked wrong. Afterwards, by eye and by the embedded voters: pressed lips for anger, a
wider mouth for disgust, and for neutral a little more of everything that ends a smile. So no pass rate of those
voters says anything about the quality of this editor.
"""

from dataclasses import dataclass
from typing import Final

from schemas.expressions import Expression

BrowCurve = tuple[float, float, float]
"""A vertical value at the inner end, the middle and the outer end of a brow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplitudes:
    """What an expression adds to a neutral face at intensity 1.

    Attributes:
        half_width: Each mouth corner outwards.
        corner: Mouth corners down.
        upper: Lower edge of the upper lip down, at the middle.
        lower: Upper edge of the lower lip down, at the middle; with `upper` it opens the mouth.
        upper_thickness, lower_thickness: Factors on the lips' own thickness.
        curve: Exponent of the lip line between middle and corner: 1 is a V, 2 a parabola.
        brow: Brow down.
        squeeze: Inner brow ends towards the middle, each.
        upper_lid, lower_lid: Lids up.
        nose: Nostrils down; flare: nostrils apart, each.
        cheek: Cheeks down.
        chin: The chin's skin down; where it is 0 the skin follows the lower lip. jaw: the whole jaw down.
    """

    half_width: float
    corner: float
    upper: float
    lower: float
    upper_thickness: float
    lower_thickness: float
    curve: float
    brow: BrowCurve
    squeeze: float = 0.0
    upper_lid: float = 0.0
    lower_lid: float = 0.0
    nose: float = 0.0
    flare: float = 0.0
    cheek: float = 0.0
    chin: float = 0.0
    jaw: float = 0.0


AMPLITUDES: Final[dict[Expression, Amplitudes]] = {
    Expression.NEUTRAL: Amplitudes(
        half_width=-0.012,
        corner=0.030,
        upper=-0.002,
        lower=-0.004,
        upper_thickness=0.98,
        lower_thickness=0.97,
        curve=2.0,
        brow=(0.012, 0.014, -0.002),
        cheek=0.020,
    ),
    Expression.HAPPY: Amplitudes(
        half_width=0.098,
        corner=-0.102,
        upper=-0.042,
        lower=0.040,
        upper_thickness=0.835,
        lower_thickness=0.953,
        curve=1.7,
        brow=(0.003, -0.012, 0.005),
        squeeze=-0.002,
        upper_lid=-0.008,
        lower_lid=0.015,
        nose=-0.007,
        flare=0.014,
        cheek=-0.042,
        jaw=0.006,
    ),
    Expression.SAD: Amplitudes(
        half_width=0.032,
        corner=0.087,
        upper=-0.0055,
        lower=-0.0035,
        upper_thickness=0.935,
        lower_thickness=1.077,
        curve=2.2,
        brow=(-0.133, 0.038, 0.029),
        squeeze=0.031,
        upper_lid=-0.027,
        lower_lid=0.008,
        nose=-0.0055,
        cheek=0.009,
        chin=-0.028,
    ),
    Expression.SURPRISE: Amplitudes(
        half_width=-0.071,
        corner=0.074,
        upper=-0.026,
        lower=0.229,
        upper_thickness=0.897,
        lower_thickness=0.863,
        curve=2.4,
        brow=(-0.124, -0.115, -0.091),
        squeeze=0.002,
        upper_lid=0.040,
        lower_lid=-0.009,
        nose=-0.0035,
        flare=-0.006,
        cheek=0.017,
        jaw=0.127,
    ),
    Expression.FEAR: Amplitudes(
        half_width=0.048,
        corner=0.082,
        upper=-0.030,
        lower=0.181,
        upper_thickness=0.746,
        lower_thickness=0.813,
        curve=2.0,
        brow=(-0.135, -0.030, -0.025),
        squeeze=0.035,
        upper_lid=0.043,
        lower_lid=-0.006,
        flare=0.006,
        cheek=0.007,
        jaw=0.031,
    ),
    Expression.DISGUST: Amplitudes(
        half_width=-0.020,
        corner=0.069,
        upper=-0.078,
        lower=-0.019,
        upper_thickness=0.772,
        lower_thickness=1.067,
        curve=1.5,
        brow=(0.0825, 0.0655, -0.003),
        squeeze=0.019,
        upper_lid=-0.0265,
        lower_lid=0.024,
        nose=-0.0475,
        flare=0.020,
        cheek=-0.044,
    ),
    Expression.ANGER: Amplitudes(
        half_width=-0.040,
        corner=0.0725,
        upper=-0.014,
        lower=-0.014,
        upper_thickness=0.598,
        lower_thickness=0.623,
        curve=2.0,
        brow=(0.094, 0.069, -0.052),
        squeeze=0.0355,
        upper_lid=0.005,
        lower_lid=0.015,
        nose=-0.019,
        flare=0.016,
        cheek=0.005,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageFace:
    """Means, and the spreads (standard deviation) of brow and lid, over neutral faces; heights are above the eyes.

    Mouth values are measured from the base of the nose, as in `warp_geometry.Measures`.
    """

    half_width: float = 0.296
    corner: float = 0.276
    upper: float = 0.255
    lower: float = 0.268
    brow: BrowCurve = (0.206, 0.250, 0.152)
    brow_spread: BrowCurve = (0.022, 0.027, 0.020)
    aperture: float = 0.097
    aperture_spread: float = 0.018


AVERAGE: Final = AverageFace()
