"""Whether an edit changed the expression at all, whatever it became.

Votes by polarity cannot see that an angry face stayed angry when it was asked to be sad: both are negative. So the
distance of the two faces' blendshapes stands beside them.
"""

import math
from collections.abc import Mapping
from typing import Final

# Ours. A coefficient's weight by the start of its name; the first that matches counts, 1 where none does.
# Gaze is not expression, and blinks and squints come and go between two photos of one expression. The last
# three hardly ever leave 0 in MediaPipe's model (noseSneer ~0, mouthFrown and eyeWide below .05 on real photos), so a
# small change of them means much.
WEIGHTS: Final[Mapping[str, float]] = {
    "_neutral": 0.0,
    "eyeLook": 0.0,
    "eyeBlink": 0.5,
    "eyeSquint": 0.5,
    "browDown": 0.5,
    "eyeWide": 2.0,
    "noseSneer": 2.0,
    "mouthFrown": 2.0,
}


def expression_change(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Weighted Euclidean distance of two faces' blendshapes, ≥ 0; 0 for equal ones. The norm is ours.

    sqrt(Σ w·(a − b)²) over the coefficients, left and right apart, with the weights above. A single full-scale
    coefficient of weight 1 changes it by 1, a full smile (both sides) by 1.4.

    The default of `verify.cut.min_change`, .25, lies above what re-encoding does and below what an expression does.
    Measured on ten photos against themselves: JPEG 90 and 60, halved and enlarged, blurred by 1 px, shifted, turned by
    3 degrees, scaled by 3 %, noise of 6, brightened, waves of 0.2 %: at most .23 (JPEG 30: .51). Neighbouring video
    frames: at most .15. One man smiling and not: 1.8. Warp edits of intensity 1: at least .31, the least ones on faces
    that smiled already.

    Args:
        before, after: Coefficients by name, each 0..1 (`Face.blendshapes`).

    Raises:
        ValueError: The faces are of different models: their coefficients have other names.
    """
    if before.keys() != after.keys():
        raise ValueError("blendshapes of different models")
    return math.sqrt(math.fsum(weight(name) * (after[name] - before[name]) ** 2 for name in before))


def weight(name: str) -> float:
    """How much a coefficient counts, as `WEIGHTS` says."""
    return next((each for start, each in WEIGHTS.items() if name.startswith(start)), 1.0)
