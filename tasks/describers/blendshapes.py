"""Captions and dense instructions from what MediaPipe measures on faces; no language model.

Where MediaPipe's blendshapes are deaf (noseSneer, eyeWide, mouthFrown and cheekSquint stay near 0 on real photos) or
noisy, distances between landmarks are measured instead: on copies of a photo (recompressed, rescaled, shifted) they
change by about 0.01 eye distances, where an expression changes them by 0.05 to 0.3.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.outcomes import FailureKind
from tasks.describers.phrases import AT_REST, MOVEMENTS, MUST_STAY, ON_SIDE, Movement, Region
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.faces import ANALYZERS, Face
from tasks.faces.geometry import coefficient

Side = Literal["both", "left", "right"]

PLAIN, STRONG = 2.0, 4.5  # steps from which a movement is said plainly, and strongly
MAX_PHRASES: Final = 3  # per region in one sentence, the largest first
ONE_SIDED: Final = 1.5  # steps between the sides from which they are told apart
_BLENDSHAPES: Final = tuple(m.measure for m in MOVEMENTS if "_" not in m.measure)  # ours are in snake case
TURNED: Final = 20.0  # degrees of yaw from which the sides of a face are not compared


class _Half(NamedTuple):
    """Landmarks of one side of the face, as seen in the picture."""

    inner_eye: int
    outer_eye: int
    lids: tuple[tuple[int, int], ...]
    brow: tuple[tuple[int, int], ...]  # upper and lower edge: at the inner end, the middle, the outer end
    cheek: tuple[int, int]
    below_eye: int
    nose_wing: int
    lip_corner: int


_HALVES: Final = (
    _Half(133, 33, ((159, 145), (158, 153), (160, 144)), ((107, 55), (105, 52), (70, 46)), (50, 205), 145, 98, 61),
    _Half(
        362, 263, ((386, 374), (385, 380), (387, 373)), ((336, 285), (334, 282), (300, 276)), (280, 425), 374, 327, 291
    ),
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
    family = "MediaPipe"
    seconds = 0.001

    def caption(self, picture: Picture, call: Calls) -> str:
        """What the face does, against a face at rest, in one or two sentences.

        People's faces differ at rest, so a caption is coarser than an instruction.

        Raises:
            ItemFailed: NO_FACE.
        """
        moves = departures(_face(picture))
        said = {region: _chosen(moves, region) for region in _by_size(moves)}
        clauses = [
            _words(move, move.movement.is_more, move.movement.is_less) for group in said.values() for move in group
        ]
        if not clauses:
            return AT_REST
        return " ".join(_sentence(part) for part in (clauses[:4], clauses[4:8]) if part)

    def instruct(self, source: Picture, ground_truth: Picture, call: Calls, mistaken: str = "") -> str:
        """What moves from `source` to `ground_truth`, a sentence a region, the largest first; then what must stay.

        Raises:
            ItemFailed: NO_FACE in either picture.
        """
        moves = movements(_face(source), _face(ground_truth))
        if not moves:
            return ""
        sentences = [
            _sentence([_words(move, move.movement.more, move.movement.less) for move in _chosen(moves, region)])
            for region in _by_size(moves)
        ]
        return " ".join([*sentences, MUST_STAY])


def movements(source: Face, ground_truth: Face) -> list[Move]:
    """What moved by a step or more, the largest first; swapped faces give the same moves with other signs."""
    before, after = measure(source), measure(ground_truth)
    told_apart = max(abs(source.yaw), abs(ground_truth.yaw)) < TURNED
    moves: list[Move] = []
    for movement in MOVEMENTS:
        start, end = before[movement.measure], after[movement.measure]
        for side, steps in _split((end - start) / movement.step, told_apart):
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
        for side, steps in _split(
            (values[movement.measure] - movement.rest) / movement.spread, told_apart=abs(face.yaw) < TURNED
        )
        if (movement.is_more if steps > 0 else movement.is_less)[0]
    ]
    return _sorted(moves)


def measure(face: Face) -> dict[str, NDArray[np.float64]]:
    """Every measure of `MOVEMENTS`: (2,) float64, picture left and right, equal where it has no sides.

    Lengths are in 3-D and in distances between the eye centres; heights are along the face's own vertical, from the
    bridge of the nose to its base, so that a tilted or turned head measures like a straight one. Blendshapes are
    0..1, the mean of their sides, which disagree by noise more than by truth.
    """
    points = face.landmarks.astype(np.float64)

    def at(*rows: int) -> NDArray[np.float64]:
        return np.asarray(points[list(rows)].mean(axis=0), np.float64)

    eyes = [at(half.inner_eye, half.outer_eye) for half in _HALVES]
    unit = float(np.linalg.norm(eyes[1] - eyes[0]))
    across = (eyes[1] - eyes[0]) / unit
    down = at(_NOSE_BASE) - at(_BRIDGE)
    down -= across * (down @ across)
    down /= np.linalg.norm(down)

    def above(upper: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
        return float((lower - upper) @ down) / unit

    def apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        return float(np.linalg.norm(one - other)) / unit

    def both(value: Callable[[_Half], float]) -> NDArray[np.float64]:
        return np.array([value(half) for half in _HALVES])

    def whole(value: float) -> NDArray[np.float64]:
        return np.array([value, value])

    mouth = at(_UPPER_LIP, _LOWER_LIP)
    brow_inner = both(lambda half: above(at(*half.brow[0]), at(half.inner_eye)))
    brow_middle = both(lambda half: above(at(*half.brow[1]), at(half.inner_eye, half.outer_eye)))
    brow_outer = both(lambda half: above(at(*half.brow[2]), at(half.outer_eye)))
    wings = both(lambda half: above(at(half.inner_eye), at(half.nose_wing))).mean()
    left, right = _HALVES
    return {
        "brow_height": (brow_inner + brow_middle + brow_outer) / 3,
        "brow_slant": brow_inner - brow_outer,
        "brow_gap": whole(apart(at(*left.brow[0]), at(*right.brow[0]))),
        "eye_opening": both(lambda half: float(np.mean([apart(at(upper), at(lower)) for upper, lower in half.lids]))),
        "cheek_height": whole(-both(lambda half: above(at(half.below_eye), at(*half.cheek))).mean()),
        "nose_lift": whole(-(2 * wings + above(at(_BRIDGE), at(_NOSE_BASE))) / 3),
        "corner_height": both(lambda half: above(at(half.lip_corner), mouth)),
        "mouth_width": whole(apart(at(left.lip_corner), at(right.lip_corner))),
        "mouth_opening": whole(apart(at(_UPPER_LIP), at(_LOWER_LIP))),
    } | {name: whole(coefficient(face.blendshapes, name)) for name in _BLENDSHAPES}


def _split(steps: NDArray[np.float64], told_apart: bool) -> Iterable[tuple[Side, float]]:
    """(2,) steps of the two sides → what to say of both, or of each where they clearly differ."""
    mean, (left, right) = float(steps.mean()), (float(value) for value in steps)
    if told_apart and abs(left - right) > ONE_SIDED and 2 * min(abs(left), abs(right)) < max(abs(left), abs(right)):
        sides: Sequence[tuple[Side, float]] = (("left", left), ("right", right))
    elif told_apart and left * right < 0 and min(abs(left), abs(right)) >= 1:
        sides = (("left", left), ("right", right))
    else:
        sides = (("both", mean),)
    return [(side, value) for side, value in sides if abs(value) >= 1]


def _face(picture: Picture) -> Face:
    faces = ANALYZERS.get("mediapipe", {}).analyze(picture)
    if not faces:
        raise ItemFailed(FailureKind.NO_FACE, "no face to describe in the picture")
    return faces[0]


def _sorted(moves: list[Move]) -> list[Move]:
    return sorted(moves, key=lambda move: -abs(move.steps))


def _by_size(moves: list[Move]) -> list[Region]:
    """The regions that move, that of the largest move first."""
    return list(dict.fromkeys(move.movement.region for move in moves))


def _chosen(moves: list[Move], region: Region) -> list[Move]:
    return [move for move in moves if move.movement.region is region][:MAX_PHRASES]


def _words(move: Move, more: tuple[str, ...], less: tuple[str, ...]) -> str:
    """The phrase for a move's direction and strength, out of three (an instruction's) or two (a caption's)."""
    bounds = (PLAIN, STRONG) if len(more) == 3 else (PLAIN,)
    strength = sum(abs(move.steps) >= bound for bound in bounds)
    phrase = move.movement.close if move.closes else (more if move.steps > 0 else less)[strength]
    two = move.side == "both"
    return phrase.format(s="s" if two else "", are="are" if two else "is") + ("" if two else ON_SIDE[move.side])


def _sentence(phrases: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c", with a capital and a full stop."""
    text = ", ".join(phrases[:-1]) + " and " + phrases[-1] if len(phrases) > 1 else phrases[0]
    return text[0].upper() + text[1:] + "."
