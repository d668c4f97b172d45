"""Doors to models outside, for tests: one that stays shut, and one to a provider on this machine that knows faces."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, cast

import cv2
import numpy as np

from schemas.expressions import Expression
from schemas.outcomes import Abstention
from tasks.describers import DESCRIBERS
from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.decode import encode_png
from tasks.engine.errors import ItemFailed
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.voters import VOTERS
from tests.providers.loopback import Asked, Loopback
from tests.providers.loopback_images import Wanted


class _Shut:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"somebody tries the door: {name}")


SHUT: Final = cast(Calls, _Shut())


def routes(provider: Loopback, model: str = "m-1", **changes: Any) -> list[dict[str, Any]]:
    """The one way to a model of a provider on this machine, as a config spells it."""
    way = {"model": f"openai/{model}", "provider": "loopback", "api_base": provider.url, "timeout_s": 20}
    return [way | {"family": "loopback", "pictures": "png"} | changes]


def expert(asked: Asked) -> str:
    """What the embedded experts make of the pictures that arrive, in the form that each of our prompts asks for."""
    pictures = [decoded(data) for data in asked.pictures]
    kind = next(name for name, words in _KINDS.items() if words in asked.text)
    return json.dumps(_ANSWERS[kind](pictures, asked.text))


_KINDS: Final = {
    "fine": "one of these seven words",
    "coarse": "one of these three words",
    "caption": "Describe its expression",
    "dense": "Write the instruction",
    "pick": "Find the picture",
    "score": "Give one number",
}


def decoded(data: bytes) -> Picture:
    """A picture as it arrived."""
    bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert bgr is not None
    return Picture(sha256(data), np.ascontiguousarray(bgr[..., ::-1]))


def warped(wanted: Wanted) -> bytes:
    """What the embedded editor makes of a picture that arrives with our instruction; without a face it declines."""
    words = re.fullmatch(r"change the expression from (\w+) to (\w+)", wanted.text)
    assert words
    source, target = Expression(words[1]), Expression(words[2])
    request = EditRequest(decoded(wanted.picture), source, target, wanted.text, 0)
    (edit,) = EDITORS.get("warp", {}).edit([request], SHUT)
    if isinstance(edit, ItemFailed):
        raise ValueError(str(edit))
    return encode_png(edit)


def _vote(granularity: str, field: str) -> Callable[[list[Picture], str], Any]:
    def answer(pictures: list[Picture], _: str) -> Any:
        ballot = VOTERS.get("blendshapes", {"granularity": granularity}).vote(pictures[0], SHUT)
        said = "cannot tell" if ballot.abstained is Abstention.NO_FACE else str(ballot.answer)
        return {"signs": "as measured", field: said}

    return answer


def _caption(pictures: list[Picture], _: str) -> Any:
    try:
        return {"face": True, "caption": DESCRIBERS.get("blendshapes", {}).caption(pictures[0], SHUT)}
    except ItemFailed:
        return {"face": False, "caption": ""}


def _dense(pictures: list[Picture], _: str) -> Any:
    try:
        told = DESCRIBERS.get("blendshapes", {}).instruct(pictures[0], pictures[1], SHUT)
    except ItemFailed:
        return {"faces": False, "differs": False, "instruction": ""}
    return {"faces": True, "differs": told != "", "instruction": told}


def _pick(pictures: list[Picture], text: str) -> Any:
    match = re.search(r"<instruction>\n(.*?)\n</instruction>", text, re.DOTALL)
    assert match
    for before in pictures:
        for place, after in enumerate(pictures):
            if before is not after and _dense([before, after], "")["instruction"] == match[1]:
                return {"reason": "it says so", "choice": "ABC"[place]}
    return {"reason": "no pair says so", "choice": "cannot tell"}


def _score(pictures: list[Picture], _: str) -> Any:
    return {"reason": f"{len(pictures)} seen", "score": len(pictures) + 0.5}


_ANSWERS: Final[dict[str, Callable[[list[Picture], str], Any]]] = {
    "fine": _vote("fine", "expression"),
    "coarse": _vote("coarse", "polarity"),
    "caption": _caption,
    "dense": _dense,
    "pick": _pick,
    "score": _score,
}
