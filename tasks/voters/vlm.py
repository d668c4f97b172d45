"""A voter that is a vision-language model of transformers in this process; no picture leaves the machine."""

import json
import math
from collections.abc import Callable
from typing import Any, Final, Literal, get_args

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

import prompts
from schemas.answers import CANNOT_TELL, FORMS, Ballot
from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.providers.answers import Heard, read_expression, read_polarity
from tasks.providers.in_process import Model, NotTaken, Place, load

REPAIR: Final = "repair"
Class = Expression | Polarity


class VlmVoter(Adapter):
    """Shown one picture and asked for a word; the prompt is the same for all pictures and targets."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which model, and how it is asked.

        Attributes:
            name: What votes and reports call it; its adapter's name if empty, so two models in a panel need it.
            family: The family of models it belongs to (qwen, gemma, ...), whose relatives it cannot vouch for.
            model: Its id on the hub, of which it must lie in the hub's cache; of a model in `folder`, what you call it.
            revision: The commit at the hub; of a folder, its digest, which the error names if it is another.
            folder: Where the model lies, if not in the hub's cache.
            dtype: "auto" is as stored.
            device: "auto" is a GPU if there is one.
            granularity: "fine" asks for one of seven expressions, "coarse" for a polarity.
            answer: "text" has it write an answer, which is read. "likelihood" has it write nothing: the words to
                choose from compete by the probability of the answer that holds only them, without signs named first.
                That always gives an answer, with a confidence, for eight passes (four if coarse).
            max_new_tokens: Where a written answer is cut off.
            side: Pixels of the longer side of a picture it is shown, at most.
        """

        name: str = ""
        family: str = ""
        model: str = Field(min_length=1)
        revision: str = Field(min_length=1)
        folder: str = ""
        dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
        device: str = "auto"
        granularity: Literal["fine", "coarse"] = "coarse"
        answer: Literal["text", "likelihood"] = "text"
        max_new_tokens: int = Field(256, ge=8, le=8192)
        side: int = Field(1024, ge=64, le=4096)

    params: Params
    version = 2
    local = ("folder", "device", "name", "family")  # none of them decides an answer
    device = "gpu"  # for forecasts: it also runs on a CPU, at length
    prompts = ("vote_coarse", "vote_fine", REPAIR)

    @classmethod
    def check(cls, params: Any) -> None:
        _place(params).check()

    @classmethod
    def family_of(cls, params: Any) -> str:
        return str(params.family)

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.granularity: str = params.granularity
        self._model: Model = load(_place(params))
        self._prompt = f"vote_{params.granularity}"

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        """The model's answer, or its abstention, with what it said.

        Raises:
            ItemFailed: `OUT_OF_MEMORY`, retryable.
        """
        pixels = _at_most(picture.pixels, self.params.side)
        try:
            return self._written(pixels) if self.params.answer == "text" else self._weighed(pixels)
        except NotTaken as error:
            return Ballot(abstained=Abstention.NOT_TAKEN, raw=str(error))

    def _written(self, pixels: NDArray[np.uint8]) -> Ballot:
        """One answer; if it cannot be read, the second, to the question what is wrong with the first."""
        read: Callable[..., Heard[Any]] = read_expression if self.granularity == "fine" else read_polarity
        text = prompts.render(self._prompt)
        said = self._model.say(pixels, [{"text": text}], self.params.max_new_tokens)
        heard, raw, repaired = read(said), said.text, False
        if heard.mendable:
            mend = prompts.render(REPAIR, problem=heard.problem, form=text.rsplit("\n", 1)[-1])
            turns = [{"text": text}, {"text": said.text}, {"text": mend}]
            said = self._model.say(pixels, turns, self.params.max_new_tokens)
            heard, raw, repaired = read(said), said.text or raw, True
        return Ballot(answer=heard.value, abstained=heard.abstained, raw=raw, repaired=repaired)

    def _weighed(self, pixels: NDArray[np.uint8]) -> Ballot:
        """The likeliest of the words; `raw` is a JSON object of their shares of 1. Ties go to the first word."""
        fine = self.granularity == "fine"
        key, kind = ("expression", Expression) if fine else ("polarity", Polarity)
        words = get_args(FORMS[self._prompt].model_fields[key].annotation)
        answers = [json.dumps({key: word}) for word in words]
        logs = self._model.likelihoods(pixels, prompts.render(self._prompt), answers)
        weights = [math.exp(log - max(logs)) for log in logs]
        # Four digits: the last bits of a network's numbers are the machine's.
        shares = dict(zip(words, (round(weight / math.fsum(weights), 4) for weight in weights), strict=True))
        word = max(words, key=lambda each: shares[each])
        raw = json.dumps(shares, separators=(",", ":"))
        if word == CANNOT_TELL:
            return Ballot(abstained=Abstention.CANNOT_TELL, raw=raw)
        answer: Class = kind(word)
        return Ballot(answer=answer, confidence=shares[word], raw=raw)


def _place(params: VlmVoter.Params) -> Place:
    return Place(params.model, params.revision, params.folder, params.dtype, params.device)


def _at_most(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """The picture, made smaller if its longer side is more than `side` pixels."""
    scale = side / max(pixels.shape[:2])
    if scale >= 1:
        return pixels
    height, width = (max(1, round(length * scale)) for length in pixels.shape[:2])
    return np.asarray(cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
