"""Captions and dense instructions from what MediaPipe measures on faces; no language model.

Where MediaPipe's blendshapes are deaf (noseSneer, eyeWide, mouthFrown and cheekSquint stay near 0 on real photos) or
noisy, distances between landmarks are measured instead: on copies of a photo (recompressed, rescaled, shifted) they
change by about 0.01 eye distances, where an expression changes them by 0.05 to 0.3.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from schemas.outcomes import FailureKind
from tasks.describers.phrases import AT_REST, MOVEMENTS, MUST_STAY, ON_SIDE, Movement, Region
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.faces import ANALYZERS, Face

Side = Literal["both", "left", "right"]

PLAIN, STRONG = 2.0, 4.5  # steps from which a movement is said plainly, and strongly
MAX_PHRASES: Final = 3  # per region in one sentence, the largest first
ONE_SIDED: Final = 1.5  # steps between the sides from which they are told apart
TURNED: Final = 15.0  # degrees of yaw (of a caption), or between two poses, from which sides are not compared

# Landmarks, picture left then picture right: inner and outer eye corner, three lid pairs, brow points (upper and
# lower edge at the inner end, the middle, the outer end), cheek, below the eye, nose wing, lip corner.
_SIDES: Final = (
    {
        "eye": (133, 33),
        "lids": ((159, 145), (158, 153), (160, 144)),
        "brow": ((107, 55), (105, 52), (70, 46)),
        "cheek": (50, 205),
        "below": 145,
        "wing": 98,
        "corner": 61,
    },
    {
        "eye": (362, 263),
        "lids": ((386, 374), (385, 380), (387, 373)),
        "brow": ((336, 285), (334, 282), (300, 276)),
        "cheek": (280, 425),
        "below": 374,
        "wing": 327,
        "corner": 291,
    },
)
_BRIDGE, _NOSE_BASE, _UPPER_LIP, _LOWER_LIP = 168, 2, 13, 14


@dataclass(frozen=True, slots=True)
class Move:
    """How far something moved (or lies from rest).

    Attributes:
        movement: What.
        side: Side of the picture, or both.
        steps: Signed; in `Movement.step`s, or `spread`s of a caption. At least 1 in size.
        closes: The measure went down to closed.
    """

    movement: Movement
    side: Side
    steps: float
    closes: bool = False


class BlendshapeDescriber(Adapter):
    """Describes the largest face. Deterministic; says only what it measured, and never a class."""

    version = 1
    weights = ("face_landmarker", "yunet")

    def caption(self, picture: Picture) -> str:
        """What the face does, against a face at rest, in one or two sentences.

        People's faces differ at rest, so a caption is coarser than an instruction.

        Raises:
            ItemFailed: NO_FACE.
        """
        moves = departures(_face(picture))
        said = {region: _chosen(moves, region) for region in _by_size(moves)}
        clauses = [_words(move, move.movement.is_more, move.movement.is_less) for group in said.values() for move in group]
        if not clauses:
            return AT_REST
        return " ".join(_sentence(part) for part in (clauses[:4], clauses[4:8]) if part)

    def instruct(self, source: Picture, ground_truth: Picture) -> str:
        """What moves from `source` to `ground_truth`, a sentence a region, the largest first; then what must stay.

        Raises:
            ItemFailed: NO_FACE in either picture; BAD_OUTPUT where nothing measurable moved.
        """
        moves = movements(_face(source), _face(ground_truth))
        if not moves:
            raise ItemFailed(FailureKind.BAD_OUTPUT, "no measurable difference between the two faces")
        sentences = [
            _sentence([_words(move, move.movement.more, move.movement.less) for move in _chosen(moves, region)])
            for region in _by_size(moves)
        ]
        return " ".join([*sentences, MUST_STAY])


def movements(source: Face, ground_truth: Face) -> list[Move]:
    """What moved by a step or more, the largest first; swapped faces give the same moves with other signs."""
    before, after = measure(source), measure(ground_truth)
    told_apart = abs(source.yaw - ground_truth.yaw) < TURNED
    moves: list[Move] = []
    for movement in MOVEMENTS:
        start, end = before[movement.measure], after[movement.measure]
        for side, steps in _sides((end - start) / movement.step, told_apart):
            chosen = {"both": slice(None), "left": slice(0, 1), "right": slice(1, 2)}[side]
            moves.append(Move(movement, side, steps, steps < 0 and float(end[chosen].mean()) < movement.closed))
    return _sorted(moves)


def departures(face: Face) -> list[Move]:
    """What lies a `spread` or more from rest and has words for it, the largest first."""
    values = measure(face)
    moves = [
        Move(movement, side, steps)
        for movement in MOVEMENTS
        if movement.spread
        for side, steps in _sides(
            (values[movement.measure] - movement.rest) / movement.spread, told_apart=abs(face.yaw) < TURNED
        )
        if (movement.is_more if steps > 0 else movement.is_less)[0]
    ]
    return _sorted(moves)


def measure(face: Face) -> dict[str, NDArray[np.float64]]:
    """Every measure of `MOVEMENTS`: (2,) float64, picture left and right, equal where it has no sides.

    Lengths are in 3-D and in distances between the eye centres; heights are along the face's own vertical, from the
    bridge of the nose to its base, so that a tilted or turned head measures like a straight one. Blendshapes are
    0..1; MediaPipe names their sides after the person, whose left is the picture's right.
    """
    points = face.landmarks.astype(np.float64)

    def at(*rows: int) -> NDArray[np.float64]:
        return np.asarray(points[list(rows)].mean(axis=0))

    across = at(*_SIDES[1]["eye"]) - at(*_SIDES[0]["eye"])
    unit = float(np.linalg.norm(across))
    across /= unit
    down = at(_NOSE_BASE) - at(_BRIDGE)
    down -= across * (down @ across)
    down /= np.linalg.norm(down)

    def height(upper: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
        return float((lower - upper) @ down) / unit

    def length(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        return float(np.linalg.norm(one - other)) / unit

    return {}
