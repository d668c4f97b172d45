"""Where the mouth shall be: the person's own neutral mouth, estimated, plus what the expression adds to it.

A smile or an open mouth hides the neutral one, so the average mouth stands in for it as far as there is one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schemas.expressions import Expression
from tasks.editors.warp_amplitudes import AMPLITUDES, AVERAGE
from tasks.editors.warp_geometry import Measures
from tasks.faces.geometry import coefficient


@dataclass(frozen=True, slots=True)
class MouthTarget:
    """Where the mouth shall be, in the same measures as `Measures`."""

    half_width: float
    corner: float
    upper: float
    lower: float

    @property
    def gap(self) -> float:
        return self.lower - self.upper


def mouth_target(
    now: Measures, blendshapes: Mapping[str, float], target: Expression, strength: float, undo: float
) -> MouthTarget:
    """The mouth of a face that shows `target`; `strength` and `undo` as in `warp_plan.Plan`."""
    add = AMPLITUDES[target]
    hidden = _neutral_hidden(blendshapes, now)
    upper = _mix(now.upper, AVERAGE.upper, hidden)
    lower = float(np.clip(_mix(now.lower, AVERAGE.lower, hidden), upper + 0.004, upper + 0.012))
    half_width = _mix(now.half_width, AVERAGE.half_width, hidden)
    corner = _mix(now.corner, AVERAGE.corner, hidden)
    if target is not Expression.HAPPY:
        # Folds and cheeks keep part of a smile, so the mouth has to go a little beyond neutral.
        half_width -= 0.022 * hidden
        corner += 0.024 * hidden
    upper = _mix(now.upper, upper, undo) + strength * add.upper
    lower = max(_mix(now.lower, lower, undo) + strength * add.lower, upper + 0.004)
    if target is Expression.HAPPY and now.gap > 0.06:  # a mouth that is open already stays so
        lower = max(lower, upper + min(now.gap, 0.05))
    return MouthTarget(
        half_width=_mix(now.half_width, half_width, undo) + strength * add.half_width,
        corner=_mix(now.corner, corner, undo) + strength * add.corner,
        upper=upper,
        lower=lower,
    )


def _neutral_hidden(blendshapes: Mapping[str, float], now: Measures) -> float:
    """How far the mouth of the moment hides the person's neutral mouth, 0..1."""
    signs = (
        1.3 * coefficient(blendshapes, "mouthSmile") - 0.15,
        2.2 * blendshapes["jawOpen"],
        (now.gap - 0.02) / 0.04,
        8.0 * coefficient(blendshapes, "mouthFrown"),
        1.2 * blendshapes["mouthPucker"] - 0.3,
    )
    return float(np.clip(max(signs), 0.0, 1.0))


def _mix(start: float, end: float, share: float) -> float:
    return start + share * (end - start)
