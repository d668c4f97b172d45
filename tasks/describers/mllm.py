"""A multimodal model that writes captions and dense instructions, and one that checks what another wrote."""

import re
from collections.abc import Sequence
from typing import Final

from schemas.answers import LETTERS, Choice
from schemas.outcomes import Abstention, FailureKind
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.providers.answers import Heard, Said, read_caption, read_choice, read_dense
from tasks.providers.asking import REPAIR, Mllm, Told, failure

CAPTION_LONGEST: Final = 800  # characters; the prompt asks for 60 words
DENSE_LONGEST: Final = 1600  # characters; the prompt asks for 120 words
# Whoever edits a photo by the text sees neither of the two pictures that the writer saw.
_PICTURES: Final = re.compile(
    r"\b(?:first|second|1st|2nd|other|left|right|source|reference|target)\s+(?:picture|image|photo|face)\b"
    r"|\b(?:picture|image|photo)\s+(?:1|2|one|two|a|b)\b|ground.?truth",
    re.IGNORECASE,
)


class MllmDescriber(Mllm):
    """Writes captions and dense instructions."""

    version = 1
    prompts = ("caption", "dense_instruction", REPAIR)
    role = "writer"
    shows = 2

    def caption(self, picture: Picture, call: Calls) -> str:
        return _text(self._ask(call, "caption", (picture,), lambda said: read_caption(said, CAPTION_LONGEST)))

    def instruct(self, source: Picture, ground_truth: Picture, call: Calls, mistaken: str = "") -> str:
        return _text(self._ask(call, "dense_instruction", (source, ground_truth), _read_dense, mistaken=mistaken))


class MllmChecker(Mllm):
    """Chooses among lettered pictures by a text."""

    version = 1
    prompts = ("back_check", REPAIR)
    role = "checker"
    shows = 3

    def pick(self, text: str, pictures: Sequence[Picture], call: Calls) -> Choice:
        assert 2 <= len(pictures) <= self.shows
        letters = LETTERS[: len(pictures)]
        told = self._ask(
            call,
            "back_check",
            pictures,
            lambda said: read_choice(said, letters),
            instruction=text,
            count=str(len(pictures)),
            letters=", ".join(letters),
        )
        heard = told.heard
        return Choice(heard.value, heard.abstained, raw=told.raw, model=told.model, repaired=told.repaired)


def _read_dense(said: Said) -> Heard[str]:
    heard = read_dense(said, DENSE_LONGEST)
    found = _PICTURES.search(heard.value or "")
    if found:
        return Heard(
            abstained=Abstention.UNPARSABLE,
            problem=f"the instruction speaks of a picture ({found[0]!r}) that its reader does not have",
        )
    return heard


def _text(told: Told[str]) -> str:
    if told.heard.abstained is Abstention.NO_FACE:
        raise ItemFailed(FailureKind.NO_FACE, f"{told.model} sees no face")
    if told.heard.value is None:
        raise failure(told)
    return told.heard.value
