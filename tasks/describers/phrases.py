"""What a face can do, in words: each measurable movement with its phrases, as data. All wording is ours.

Nothing here names an expression, so no description can tell a class that its writer was not told. `{s}` is the
plural of what has two sides, `{are}` its verb.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Region(StrEnum):
    """Where on the face."""

    BROWS = "brows"
    EYES = "eyes"
    CHEEKS = "cheeks"
    NOSE = "nose"
    MOUTH = "mouth"
    JAW = "jaw"


@dataclass(frozen=True, slots=True)
class Movement:
    """One thing that can move.

    Attributes:
        measure: What is measured: a name of `tasks.describers.blendshapes.measure`.
        region: Where.
        step: The least change that is said, in the measure's unit; at least twice what a recompressed, rescaled or
            shifted copy of a photo changes.
        more, less: What to do for a growing or shrinking measure: slightly, plainly (2 steps), strongly (4.5 steps).
        rest: The measure on a face at rest (the median of ten or so relaxed faces).
        spread: How far from rest is said in a caption, plainly; twice that, strongly. People differ at rest, so it is
            wider than `step`. 0 is never said.
        is_more, is_less: What a caption says: plainly, strongly.
        closed: Below this value it is closed, and shrinking to there is said as `close`.
        close: What to do to close it.
    """

    measure: str
    region: Region
    step: float
    more: tuple[str, str, str]
    less: tuple[str, str, str]
    rest: float = 0.0
    spread: float = 0.0
    is_more: tuple[str, str] = ("", "")
    is_less: tuple[str, str] = ("", "")
    closed: float = -1.0
    close: str = ""


MUST_STAY: Final = (
    "Keep everything else as it is: the person's identity, hair, head pose, gaze, lighting and background."
)
AT_REST: Final = "The face is relaxed: brows, eyes and mouth are in their resting places."
ON_SIDE: Final = {"left": " on the left side of the picture", "right": " on the right side of the picture"}

MOVEMENTS: Final[tuple[Movement, ...]] = (
    Movement(
        "brow_height",
        Region.BROWS,
        0.025,
        ("lift the brow{s} a little", "raise the brow{s}", "raise the brow{s} high up the forehead"),
        ("lower the brow{s} a little", "lower the brow{s}", "pull the brow{s} far down over the eye{s}"),
        rest=0.27,
        spread=0.06,
        is_more=("the brow{s} {are} raised", "the brow{s} {are} raised high"),
        is_less=("the brow{s} {are} lowered", "the brow{s} {are} pulled far down"),
    ),
    Movement(
        "brow_slant",
        Region.BROWS,
        0.025,
        (
            "tilt the inner end{s} of the brow{s} up a little",
            "pull the inner end{s} of the brow{s} up into a slant",
            "pull the inner end{s} of the brow{s} steeply up",
        ),
        (
            "tilt the inner end{s} of the brow{s} down a little",
            "pull the inner end{s} of the brow{s} down towards the nose",
            "pull the inner end{s} of the brow{s} steeply down towards the nose",
        ),
        rest=0.04,
        spread=0.06,
        is_more=("the inner end{s} of the brow{s} {are} pulled up", "the inner end{s} of the brow{s} {are} steeply up"),
        is_less=(
            "the inner end{s} of the brow{s} {are} pulled down",
            "the inner end{s} of the brow{s} {are} steeply down",
        ),
    ),
    Movement(
        "brow_gap",
        Region.BROWS,
        0.025,
        ("let the brows part a little", "let the brows move apart", "let the brows move far apart"),
        ("draw the brows slightly together", "draw the brows together", "knit the brows tightly together"),
        rest=0.46,
        spread=0.06,
        is_less=("the brows are drawn together", "the brows are knitted tightly"),
    ),
    Movement(
        "eye_opening",
        Region.EYES,
        0.02,
        ("open the eye{s} a little more", "widen the eye{s}", "open the eye{s} as wide as possible"),
        ("narrow the eye{s} slightly", "narrow the eye{s}", "narrow the eye{s} to slits"),
        rest=0.105,
        spread=0.04,
        is_more=("the eye{s} {are} wide open", "the eye{s} {are} opened to the full"),
        is_less=("the eye{s} {are} narrowed", "the eye{s} {are} almost shut"),
        closed=0.035,
        close="close the eye{s}",
    ),
    Movement(
        "eyeSquint",
        Region.EYES,
        0.2,
        ("tighten the lower eyelids slightly", "tighten the lower eyelids", "squeeze the lower eyelids up"),
        ("relax the lower eyelids slightly", "relax the lower eyelids", "let the lower eyelids go slack"),
    ),
    Movement(
        "cheek_height",
        Region.CHEEKS,
        0.045,
        ("lift the cheeks a little", "raise the cheeks", "push the cheeks high up under the eyes"),
        ("let the cheeks sink a little", "let the cheeks sink", "let the cheeks hang"),
    ),
    Movement(
        "cheekPuff",
        Region.CHEEKS,
        0.2,
        ("fill the cheeks with a little air", "puff out the cheeks", "puff out the cheeks fully"),
        ("let a little air out of the cheeks", "let the cheeks fall in", "empty the puffed cheeks"),
        spread=0.3,
        is_more=("the cheeks are puffed out", "the cheeks are fully puffed out"),
    ),
    Movement(
        "nose_lift",
        Region.NOSE,
        0.06,
        ("draw the nose up a little", "wrinkle the nose and draw it up", "wrinkle the nose hard"),
        ("let the nose relax a little downwards", "let the nose relax downwards", "let the nose lengthen"),
    ),
    Movement(
        "corner_height",
        Region.MOUTH,
        0.035,
        ("lift the lip corner{s} slightly", "raise the lip corner{s}", "pull the lip corner{s} far up"),
        ("lower the lip corner{s} slightly", "lower the lip corner{s}", "pull the lip corner{s} far down"),
        rest=0.025,
        spread=0.05,
        is_more=("the lip corner{s} {are} raised", "the lip corner{s} {are} pulled far up"),
        is_less=("the lip corner{s} {are} turned down", "the lip corner{s} {are} pulled far down"),
    ),
    Movement(
        "mouth_width",
        Region.MOUTH,
        0.08,
        ("widen the mouth a little", "stretch the mouth wider", "stretch the mouth as wide as it goes"),
        ("make the mouth a little narrower", "make the mouth narrower", "draw the mouth tightly together sideways"),
        rest=0.82,
        spread=0.14,
        is_more=("the mouth is stretched wide", "the mouth is stretched very wide"),
        is_less=("the mouth is narrowed", "the mouth is drawn tightly together"),
    ),
    Movement(
        "mouthUpperUp",
        Region.MOUTH,
        0.25,
        ("lift the upper lip slightly", "raise the upper lip", "pull the upper lip well up"),
        ("let the upper lip down slightly", "bring the upper lip down", "bring the raised upper lip fully down"),
        spread=0.35,
        is_more=("the upper lip is raised", "the upper lip is pulled well up"),
    ),
    Movement(
        "mouthPucker",
        Region.MOUTH,
        0.2,
        ("push the lips forward a little", "pucker the lips", "pucker the lips hard"),
        ("bring the lips back a little", "undo the pucker of the lips", "flatten the puckered lips"),
        spread=0.35,
        is_more=("the lips are puckered", "the lips are puckered hard"),
    ),
    Movement(
        "mouthRollLower",
        Region.MOUTH,
        0.15,
        ("roll the lower lip in slightly", "roll the lower lip inwards", "tuck the lower lip in"),
        ("roll the lower lip out slightly", "roll the lower lip back out", "let the tucked lower lip out"),
        spread=0.25,
        is_more=("the lower lip is rolled in", "the lower lip is tucked in"),
    ),
    Movement(
        "mouthPress",
        Region.MOUTH,
        0.15,
        ("press the lips lightly together", "press the lips together", "press the lips hard together"),
        ("ease the pressure of the lips", "let the lips lie loosely", "let go of the pressed lips"),
        spread=0.3,
        is_more=("the lips are pressed together", "the lips are pressed hard"),
    ),
    Movement(
        "mouthShrugLower",
        Region.JAW,
        0.15,
        ("push the chin up slightly", "push the chin up against the lower lip", "push the chin hard up"),
        ("ease the chin slightly", "let the chin relax", "let the raised chin down"),
        spread=0.25,
        is_more=("the chin is pushed up", "the chin is pushed hard up"),
    ),
    Movement(
        "mouth_opening",
        Region.JAW,
        0.05,
        ("part the lips a little more", "open the mouth", "let the jaw drop wide open"),
        ("bring the lips a little closer together", "bring the jaw up", "bring the dropped jaw well up"),
        rest=0.02,
        spread=0.06,
        is_more=("the mouth is open", "the mouth is wide open"),
        closed=0.03,
        close="close the mouth",
    ),
)
