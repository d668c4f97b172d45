"""Voters that are small local models: fast, free, and only for the demo.

Both were looked at while the embedded warp editor was tuned (see `tuned_against` in the model list), so what they
say of that editor's pictures is no measure of quality.
"""

import json
from typing import Any, Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from schemas.answers import Ballot
from schemas.expressions import EXPRESSIONS, POLARITY, Expression, Polarity, parse_expression
from schemas.outcomes import Abstention
from tasks.engine import weights
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.faces import ANALYZERS, Face
from tasks.faces.geometry import context_box, crop, landmark_box
from tasks.faces.quiet import quiet_stderr
from tasks.voters.action_units import probabilities


class ExpertVoter(Adapter):
    """A voter that gives seven probabilities for the largest face. Subclasses say how."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """How it answers.

        Attributes:
            granularity: "fine" names one of seven expressions, "coarse" one of three polarities, whose probability
                is the sum over its expressions.
            min_confidence: Below this probability of its answer the voter abstains (cannot tell).
        """

        granularity: Literal["fine", "coarse"] = "coarse"
        min_confidence: float = Field(0.0, ge=0, le=1)

    params: Params

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.granularity: str = params.granularity

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        """What the largest face shows; `raw` is a JSON object of the seven probabilities.

        Abstains where there is no face or its confidence is below `min_confidence`; never raises for a picture.
        """
        faces = ANALYZERS.get("mediapipe", {}).analyze(picture)
        if not faces:
            return Ballot(abstained=Abstention.NO_FACE)
        shares = self._probabilities(picture.pixels, faces[0])
        raw = json.dumps({str(name): round(share, 4) for name, share in shares.items()}, separators=(",", ":"))
        answer, confidence = self._answer(shares)
        if confidence < self.params.min_confidence:
            return Ballot(abstained=Abstention.CANNOT_TELL, raw=raw)
        return Ballot(answer=answer, confidence=confidence, raw=raw)

    def _answer(self, shares: dict[Expression, float]) -> tuple[Expression | Polarity, float]:
        """The likeliest class and its probability; ties go to the first in the order of the enum."""
        if self.params.granularity == "fine":
            likeliest = max(EXPRESSIONS, key=lambda name: shares[name])
            return likeliest, min(1.0, shares[likeliest])
        sums = {side: sum(shares[name] for name in EXPRESSIONS if POLARITY[name] is side) for side in Polarity}
        side = max(Polarity, key=lambda name: sums[name])
        return side, min(1.0, sums[side])

    def _probabilities(self, pixels: NDArray[np.uint8], face: Face) -> dict[Expression, float]:
        """A share of 1 for each expression."""
        raise NotImplementedError


class FerVoter(ExpertVoter):
    """The `fer` package's network (trained on FER-2013, quantised), run by LiteRT: 64 px grey, under 1 ms."""

    version = 1
    weights = ("face_landmarker", "yunet", "fer")
    seconds = 0.01
    family = "FER-2013"

    ORDER: Final = ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral")  # of the network's output
    SIZE: Final = 64
    MARGIN: Final = 1.1  # the square against the landmarks' box

    def __init__(self, params: ExpertVoter.Params) -> None:
        super().__init__(params)
        file = str(weights.path("fer"))
        with quiet_stderr():
            from ai_edge_litert.interpreter import Interpreter

            self._network: Any = Interpreter(file, num_threads=1)
            self._network.allocate_tensors()
        self._input = self._network.get_input_details()[0]["index"]
        self._output = self._network.get_output_details()[0]["index"]

    def _probabilities(self, pixels: NDArray[np.uint8], face: Face) -> dict[Expression, float]:
        square = crop(pixels, context_box(landmark_box(face), self.MARGIN), self.SIZE)
        grey = cv2.cvtColor(square, cv2.COLOR_RGB2GRAY).astype(np.float32)
        self._network.set_tensor(self._input, ((grey / 255 - 0.5) * 2)[None, :, :, None])
        self._network.invoke()
        output = self._network.get_tensor(self._output)[0]
        by_name = {parse_expression(label): float(share) for label, share in zip(self.ORDER, output, strict=True)}
        return {expression: by_name[expression] for expression in EXPRESSIONS}


class BlendshapeVoter(ExpertVoter):
    """Scores on MediaPipe's blendshapes, one readable table by action unit (`action_units`), no weights of its own."""

    version = 1
    weights = ("face_landmarker", "yunet")
    seconds = 0.001
    family = "MediaPipe"

    def _probabilities(self, pixels: NDArray[np.uint8], face: Face) -> dict[Expression, float]:
        return probabilities(face.blendshapes)
