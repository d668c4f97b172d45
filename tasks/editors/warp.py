"""The embedded editor: bends the face in the photo to another expression with a landmark mesh, on the CPU."""

from collections.abc import Mapping, Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from schemas.expressions import Expression
from schemas.outcomes import FailureKind
from tasks.editors import EditRequest
from tasks.editors.warp_geometry import face_frame, ring
from tasks.editors.warp_mouth import fill_mouth
from tasks.editors.warp_plan import plan_edit
from tasks.editors.warp_render import make_canvas, warp
from tasks.editors.warp_shading import add_creases, soften_folds
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.registry import Adapter
from tasks.faces import ANALYZERS, Face

# Two failures that scores should tell from a plain edit: too little of the expression, and too much of it.
INTENSITIES: Final[Mapping[str, float]] = {"lazy": 0.3, "plain": 1.0, "overfit": 2.0}
_SMILES = 0.3  # from here on a smile leaves folds that another expression must lose


class WarpEditor(Adapter):
    """Moves mouth, brows, lids, nose, cheeks and jaw of the largest face; paints a mouth that opens.

    Knows nothing of the instruction: it obeys the target alone. Deterministic; the seed is not used. It was tuned
    against the embedded voters, so no verdict of theirs on its edits says anything about quality.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """How the warp editor works.

        Attributes:
            intensity: How far the face goes from its own neutral towards the expression: 0 leaves it alone, 1 is a
                plain expression, above about 1.3 it turns into a cartoon. `INTENSITIES` names the baselines.
            shading: Whether to draw the expression's creases and to soften the folds of a former smile.
        """

        intensity: float = Field(default=1.0, ge=0.0, le=3.0)
        shading: bool = True

    version = 1
    weights = ("face_landmarker", "yunet")
    family = "MediaPipe"  # its mesh is the Face Landmarker's
    tuned_against = ("fer", "blendshapes")
    uses_seed = False
    seconds = 0.1
    params: Params

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[NDArray[np.uint8] | ItemFailed]:
        """One edit per request; where the photo shows no face, each request fails with NO_FACE."""
        if not requests:
            return []
        source = requests[0].source
        faces = ANALYZERS.get("mediapipe", {}).analyze(source)
        if not faces:
            return [ItemFailed(FailureKind.NO_FACE, "no face to edit in the photo") for _ in requests]
        params = self.params
        return [
            warp_face(source.pixels, faces[0], request.target, params.intensity, shading=params.shading)
            for request in requests
        ]


def warp_face(
    pixels: NDArray[np.uint8], face: Face, target: Expression, intensity: float = 1.0, *, shading: bool = True
) -> NDArray[np.uint8]:
    """The picture with the face's expression changed.

    Args:
        pixels: RGB (H, W, 3) uint8.
        face: The face to change, in pixels of that picture.
        target: The expression to show.
        intensity, shading: As in `WarpEditor.Params`.

    Returns:
        A new RGB array of the same shape, equal to `pixels` outside `edit_mask`.
    """
    edited = pixels.copy()
    frame = face_frame(face.landmarks)
    plan = plan_edit(frame, face.blendshapes, target, intensity)
    canvas = make_canvas(pixels.shape, frame, plan.displacement)
    if canvas is None or intensity == 0:
        return edited
    part = edited[canvas.rows, canvas.columns]
    painted = warp(part, canvas, plan)
    fill_mouth(painted, part, canvas, plan)
    if shading:
        if plan.smile > _SMILES and target is not Expression.HAPPY:
            soften_folds(painted, canvas, plan)
        add_creases(painted, canvas, plan)
    inside = canvas.inside > 0
    part[inside] = np.clip(painted[inside] + 0.5, 0, 255).astype(np.uint8)
    return edited


def edit_mask(shape: tuple[int, ...], face: Face) -> NDArray[np.bool_]:
    """(H, W) mask of the pixels an edit may change; every pixel outside it comes out bit-identical."""
    mask = np.zeros(shape[:2], np.uint8)
    outline = np.round(ring(face_frame(face.landmarks))[:, :2]).astype(np.int32)
    cv2.fillPoly(mask, [outline], 1)
    return mask > 0
