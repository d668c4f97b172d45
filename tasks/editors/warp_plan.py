"""From a face and a target expression to the displacement of every landmark, in the face frame.

An expression's amplitudes are added to the person's own neutral, not to the face as it is: brows and lids are first
brought back into the range of neutral faces, and `warp_target` does the same for the mouth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from schemas.expressions import Expression
from tasks.editors.warp_amplitudes import AMPLITUDES, AVERAGE, Amplitudes
from tasks.editors.warp_geometry import (
    CHIN,
    IRISES,
    LANDMARKS,
    LOWER_LIP,
    NOSE_BASE,
    OVAL,
    SIDES,
    UPPER_LIP,
    EyeMeasures,
    FaceFrame,
    Floats,
    Indices,
    Measures,
    Side,
    measure,
)
from tasks.editors.warp_target import MouthTarget, mouth_target
from tasks.faces.geometry import coefficient

CLOSED_GAP: Final = 0.02  # a target opening below this is drawn as closed lips

_NOSTRILS: Final = ((129, -1.0), (358, 1.0), (64, -1.0), (294, 1.0), (98, -0.7), (327, 0.7), (48, -1.0), (278, 1.0))
_NOSE_TIP: Final = (1, 4, 2, 19)
_NOSE_BRIDGE: Final = (6, 197, 195, 168, 5)
_CHEEKS: Final = (
    ((50, 0.8), (205, 1.0), (36, 0.9), (101, 0.7), (118, 0.5)),
    ((280, 0.8), (425, 1.0), (266, 0.9), (330, 0.7), (347, 0.5)),
)
_CHIN_SKIN: Final = ((199, 1.0), (200, 1.0), (208, 0.95), (428, 0.95), (18, 1.0))
_CHIN_BONE: Final = ((175, 1.0), (171, 0.95), (396, 0.95), (140, 0.8), (369, 0.8))
_BROW_MIDDLES: Final = (107, 66, 105, 336, 296, 334)
_FOREHEAD: Final = ((151, 0.35), (108, 0.45), (337, 0.45), (69, 0.45), (299, 0.45), (104, 0.4), (333, 0.4))
_LIP_IDS: Final = frozenset(np.concatenate([UPPER_LIP, LOWER_LIP]).ravel().tolist())


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """What shall move where.

    Attributes:
        displacement: (478, 3) in outer-eye distances, axes of the face frame.
        now: The face as it is.
        mouth: The mouth as it shall be.
        target: The expression it shall show.
        strength: Of the expression's amplitudes; the requested intensity but for a neutral target.
        undo: How much of the present expression is taken back, 0..1.
        smile: How much the source smiles, 0..1.
    """

    displacement: Floats
    now: Measures
    mouth: MouthTarget
    target: Expression
    strength: float
    undo: float
    smile: float

    @property
    def closes_mouth(self) -> bool:
        """Whether lips that are apart now shall meet."""
        return self.mouth.gap < CLOSED_GAP < self.now.gap


def plan_edit(frame: FaceFrame, blendshapes: Mapping[str, float], target: Expression, intensity: float) -> Plan:
    """Plan the edit of one face.

    Args:
        frame: The face.
        blendshapes: MediaPipe's coefficients, by name.
        target: The expression to show.
        intensity: 0 leaves the face as it is, 1 is a plain expression, more exaggerates.
    """
    return _Planner(frame, blendshapes, target, intensity).plan()


class _Planner:
    """Sets control points feature by feature, then spreads them over the face."""

    def __init__(
        self, frame: FaceFrame, blendshapes: Mapping[str, float], target: Expression, intensity: float
    ) -> None:
        self.points = frame.points
        self.now = measure(frame)
        self.target = target
        self.amplitudes: Amplitudes = AMPLITUDES[target]
        self.undo = min(1.0, intensity)
        self.smile = coefficient(blendshapes, "mouthSmile")
        self.strength = intensity
        if target is Expression.NEUTRAL:  # on a face that is neutral already there is nothing to add
            self.strength *= min(1.0, 1.5 * self.smile + 3 * blendshapes["jawOpen"])
        self.mouth = mouth_target(self.now, blendshapes, target, self.strength, self.undo)
        self.controls: dict[int, Floats] = {}
        self.displacement = np.zeros((LANDMARKS, 3))

    def plan(self) -> Plan:
        self._move_lips()
        for side, eye in zip(SIDES, self.now.eyes, strict=True):
            self._move_brow(side, eye)
            self._move_lids(side, eye)
        self._move_forehead()
        self._move_nose()
        self._move_cheeks()
        self._move_jaw()
        self._spread()
        return Plan(
            displacement=self.displacement,
            now=self.now,
            mouth=self.mouth,
            target=self.target,
            strength=self.strength,
            undo=self.undo,
            smile=self.smile,
        )

    def _move_lips(self) -> None:
        add, base = self.amplitudes, self.points[NOSE_BASE, 1]
        thickness = (1 + (add.upper_thickness - 1) * self.strength, 1 + (add.lower_thickness - 1) * self.strength)
        upper_drop = base + self.mouth.upper - self.points[13, 1]
        lower_drop = base + self.mouth.lower - self.points[14, 1]
        self._move_lip(UPPER_LIP, upper_drop, -self.now.upper_thickness * (thickness[0] - 1))
        self._move_lip(LOWER_LIP, lower_drop, self.now.lower_thickness * (thickness[1] - 1))
        for landmark in (*UPPER_LIP[0], *LOWER_LIP[0]):
            self._control(int(landmark), self.displacement[landmark])

    def _move_lip(self, rows: Indices, drop: float, thicken: float) -> None:
        """The middle of the lip drops by `drop`, its outer edge by `thicken` more; the corners go to their target."""
        x = self.points[rows, 0]
        outward = np.where(x < self.now.middle, -1.0, 1.0)
        outward[:, 0], outward[:, -1] = -1.0, 1.0
        corner = np.where(outward < 0, SIDES[0].mouth_corner, SIDES[1].mouth_corner)
        reach = np.abs(self.points[corner, 0] - self.now.middle)
        towards_corner = np.clip(np.abs(x - self.now.middle) / np.maximum(reach, 1e-3), 0.0, 1.0)
        corner_drop = self.points[NOSE_BASE, 1] + self.mouth.corner - self.points[corner, 1]
        outer_edge = np.array([1.0, 2 / 3, 1 / 3, 0.0])[:, None]
        share = towards_corner**self.amplitudes.curve
        wider = self.mouth.half_width - self.now.half_width
        self.displacement[rows, 0] = outward * wider * towards_corner
        self.displacement[rows, 1] = share * corner_drop + (1 - share) * (drop + outer_edge * thicken)
        # Teeth are round: corners that go outwards also go back, along the jaw.
        self.displacement[rows, 2] = 0.45 * max(wider, -0.03) * towards_corner**2

    def _move_brow(self, side: Side, eye: EyeMeasures) -> None:
        own, average, spread = np.array(eye.brow), np.array(AVERAGE.brow), np.array(AVERAGE.brow_spread)
        neutral = np.clip(own, average - 1.3 * spread, average + 1.3 * spread)
        drops = self.undo * (own - neutral) + self.strength * np.array(self.amplitudes.brow)
        drops = np.interp(np.arange(5), [0, 2, 4], drops)
        squeeze = self.strength * self.amplitudes.squeeze
        inwards = np.interp(np.arange(5), [0, 2, 4], [squeeze, 0.4 * squeeze, 0.0])
        for row in (side.brow_top, side.brow_bottom):
            for landmark, drop, inward in zip(row, drops, inwards, strict=True):
                self._control(landmark, (-side.outward * inward, drop, 0.0))

    def _move_lids(self, side: Side, eye: EyeMeasures) -> None:
        low, high = AVERAGE.aperture - 1.5 * AVERAGE.aperture_spread, AVERAGE.aperture + 1.2 * AVERAGE.aperture_spread
        opening = self.undo * (float(np.clip(eye.aperture, low, high)) - eye.aperture)
        if self.target in (Expression.SURPRISE, Expression.FEAR, Expression.DISGUST):
            opening = max(opening, 0.0)  # wide eyes belong to the first two; disgust narrows them by itself
        size = float(np.clip(eye.aperture / AVERAGE.aperture, 0.5, 1.2))
        upper = self.strength * self.amplitudes.upper_lid + 0.8 * opening
        lower = self.strength * self.amplitudes.lower_lid
        for position, (top, bottom) in enumerate(zip(side.upper_lid, side.lower_lid, strict=True), start=1):
            height = np.sin(np.pi * position / 8) ** 0.8 * size
            self._control(top, (0.0, -upper * height, 0.0))
            self._control(bottom, (0.0, -lower * height, 0.0))
        self._control(side.inner_corner, (0.0, 0.0, 0.0))
        self._control(side.outer_corner, (0.0, 0.0, 0.0))

    def _move_forehead(self) -> None:
        brows = float(self.displacement[list(_BROW_MIDDLES), 1].mean())
        inner = float(self.displacement[[107, 336], 1].mean())
        for landmark, share in _FOREHEAD:  # raised brows push the forehead up; lowered ones pull it far less
            self._control(landmark, (0.0, share * min(brows, 0.0) + 0.15 * max(brows, 0.0), 0.0))
        for landmark in (8, 9):
            self._control(landmark, (0.0, 0.5 * inner, 0.0))

    def _move_nose(self) -> None:
        drop, flare = self.strength * self.amplitudes.nose, self.strength * self.amplitudes.flare
        for landmark, outward in _NOSTRILS:
            self._control(landmark, (outward * flare, drop, 0.0))
        for landmark in _NOSE_TIP:
            self._control(landmark, (0.0, 0.25 * drop, 0.0))
        for landmark in _NOSE_BRIDGE:
            self._control(landmark, (0.0, 0.0, 0.0))

    def _move_cheeks(self) -> None:
        drop = self.strength * self.amplitudes.cheek
        if self.smile > 0.25 and self.target is not Expression.HAPPY:
            drop += 0.030 * self.smile * self.undo  # a smile holds the cheeks up; let them down
        outward = 0.25 * max(-drop, 0.0)
        for side, cheek in zip(SIDES, _CHEEKS, strict=True):
            for landmark, share in cheek:
                self._control(landmark, (side.outward * outward, share * drop, 0.0))

    def _move_jaw(self) -> None:
        y = self.points[:, 1]
        jaw = self.strength * self.amplitudes.jaw
        open_now = max(0.0, self.now.gap - 0.03)
        if self.mouth.gap < 0.03 and open_now > 0.06:
            jaw -= self.undo * min(0.05, 0.35 * open_now)
        ears = float(y[[132, 361]].mean())
        below_ears = np.clip((y[OVAL] - ears) / (y[CHIN] - ears + 1e-6), 0.0, 1.0) ** 1.6
        for landmark, share in zip(OVAL, below_ears, strict=True):
            self._control(int(landmark), (0.0, jaw * share, 0.0))
        chin = self.strength * self.amplitudes.chin
        for landmark, share in _CHIN_BONE:
            self._control(landmark, (0.0, jaw * share + 0.5 * chin, 0.0))
        for landmark, share in _CHIN_SKIN:
            self._control(landmark, (0.0, jaw * share + chin, 0.0))
        if not self.amplitudes.chin:
            lip = float(self.displacement[17, 1])
            self._control(18, (0.0, 0.75 * lip + 0.25 * jaw, 0.0))
            self._control(200, (0.0, 0.40 * lip + 0.60 * jaw, 0.0))

    def _control(self, landmark: int, displacement: Floats | tuple[float, float, float]) -> None:
        moved: Floats = np.array(displacement, dtype=np.float64)
        self.controls[landmark] = moved
        self.displacement[landmark] = moved

    def _spread(self) -> None:
        """A thin-plate spline through the control points moves everything that has no place of its own."""
        fixed = np.array(sorted(self.controls))
        free = np.array([i for i in range(IRISES) if i not in self.controls and i not in _LIP_IDS])
        flat = self.points[:, :2]
        count = len(fixed)
        system = np.zeros((count + 3, count + 3))
        system[:count, :count] = _thin_plate(flat[fixed], flat[fixed]) + 2e-3 * np.eye(count)  # eased, not exact
        system[:count, count] = 1.0
        system[:count, count + 1 :] = flat[fixed]
        system[count:, :count] = system[:count, count:].T
        values = np.vstack([self.displacement[fixed], np.zeros((3, 3))])
        weights = np.linalg.solve(system, values)
        basis = np.hstack([_thin_plate(flat[free], flat[fixed]), np.ones((len(free), 1)), flat[free]])
        spread: Floats = basis @ weights
        self.displacement[free] = spread


def _thin_plate(points: Floats, centres: Floats) -> Floats:
    squared = ((points[:, None] - centres[None]) ** 2).sum(axis=-1) + 1e-9
    kernel: Floats = 0.5 * squared * np.log(squared)
    return kernel
