"""Drawn photos: the first two pixels say what a picture shows."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.expressions import EXPRESSIONS, Expression
from tasks.engine.images import Picture
from tasks.faces.geometry import FACE_OVAL, FIVE_POINTS

SIDE: Final = 64
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Code:
    """What the first two pixels of a picture say.

    Attributes:
        number: Of the source it was drawn for.
        expression: What the face shows.
        strength: How much of it, 0..255.
        salt: What makes two edits of one source differ, 0..255.
    """

    number: int
    expression: Expression
    strength: int = 200
    salt: int = 0


def draw(code: Code, side: int = SIDE) -> Pixels:
    """The photo of a source: soft blobs that no other number has, with a fine grain."""
    random = np.random.default_rng(code.number)
    blobs = random.integers(70, 180, (8, 8, 3)).repeat(side // 8, axis=0).repeat(side // 8, axis=1)
    grain = 12 + code.number % 4 * 6
    pixels = (blobs + random.integers(-grain, grain + 1, (side, side, 3))).astype(np.uint8)
    return written(pixels, code)


def written(pixels: Pixels, code: Code) -> Pixels:
    """A copy of the picture that says `code`."""
    pixels = pixels.copy()
    pixels[0, 0] = (*divmod(code.number, 256), EXPRESSIONS.index(code.expression))
    pixels[0, 1] = (code.strength, code.salt, 0)
    return pixels


def read(picture: Picture) -> Code:
    """What a picture says."""
    (high, low, expression), (strength, salt, _) = picture.pixels[0, :2].tolist()
    return Code(high * 256 + low, EXPRESSIONS[expression], strength, salt)


def _template() -> NDArray[np.float32]:
    """(478, 3) landmarks of a face that fills the middle of a picture of side 1."""
    turn = np.linspace(0, 2 * np.pi, 478, endpoint=False)
    points = np.stack([0.5 + 0.1 * np.sin(turn), 0.5 - 0.1 * np.cos(turn), 0 * turn], axis=1)
    oval = np.linspace(0, 2 * np.pi, len(FACE_OVAL), endpoint=False)
    points[list(FACE_OVAL), 0] = 0.5 + 0.22 * np.sin(oval)
    points[list(FACE_OVAL), 1] = 0.5 - 0.28 * np.cos(oval)
    points[list(FIVE_POINTS), :2] = [(0.39, 0.44), (0.61, 0.44), (0.5, 0.54), (0.42, 0.64), (0.58, 0.64)]
    return points.astype(np.float32)


LANDMARKS: Final = _template()
