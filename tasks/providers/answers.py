"""Reading what a multimodal model said: strictly, and never guessing.

A refusal, a filter, a contradiction or a number off its scale is an abstention with a kind. Nothing is clamped,
imputed or drawn, and no failure becomes a zero.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from schemas.answers import CANNOT_TELL, SCORE_LIMITS
from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention
from tasks.providers.json_found import Unfit, objects, without_thoughts
from tasks.providers.words import EXPRESSION_WORDS, PLACEHOLDERS, POLARITY_WORDS, UNSURE, is_refusal, plain

T = TypeVar("T")
V = TypeVar("V")

EXPRESSION_KEYS: Final = ("expression", "emotion", "label", "answer", "表情", "情绪")
POLARITY_KEYS: Final = ("polarity", "valence", "sentiment", "label", "answer", "极性", "情感")
_FILTERS: Final = frozenset({"content_filter", "safety", "prohibited_content", "blocklist", "spii", "recitation"})
_SENTENCE: Final = re.compile(
    r"(?:expression|emotion|polarity|answer|答案|表情|情绪|极性)\s*(?:is|:|是|为)\s*[\"'*]*"
    r"([a-z\u4e00-\u9fff]+(?: tell)?)"
)
_CUT: Final = "it was cut off before its end"
_SCORE: Final = re.compile(r"\**(-?\d+(?:\.\d+)?)\**\s*(?:(?:/|out of)\s*10(?:\.0)?)?\s*(?:分|points?)?\s*\.?")


class Said(Protocol):
    """What a model said, as far as reading needs it."""

    @property
    def text(self) -> str | None: ...

    @property
    def finish(self) -> str | None: ...

    @property
    def refusal(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Heard(Generic[T]):
    """A value, or an abstention with its kind and what is wrong in words. `mendable`: asking again can help."""

    value: T | None = None
    abstained: Abstention | None = None
    problem: str = ""

    @property
    def mendable(self) -> bool:
        return self.abstained in (Abstention.UNPARSABLE, Abstention.TRUNCATED)


class _Unread(Exception):
    def __init__(self, kind: Abstention, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind


def read_expression(said: Said) -> Heard[Expression]:
    """A fine vote."""
    return _heard(said, lambda text: _vote(text, EXPRESSION_KEYS, EXPRESSION_WORDS))


def read_polarity(said: Said) -> Heard[Polarity]:
    """A coarse vote."""
    return _heard(said, lambda text: _vote(text, POLARITY_KEYS, POLARITY_WORDS))


def read_scores(said: Said, keys: Sequence[str]) -> Heard[dict[str, float]]:
    """A number of 0 to 10 for each key; the last object that has all of them counts, for examples are echoed first."""
    return _heard(said, lambda text: _scores(text, keys)[0])


def read_score(said: Said) -> Heard[tuple[float, str]]:
    """The number under "score", and the reason beside it."""

    def read(text: str) -> tuple[float, str]:
        scores, found = _scores(text, ("score",))
        return scores["score"], " ".join(str(found.get("reason") or "").split())

    return _heard(said, read)


def read_caption(said: Said, longest: int) -> Heard[str]:
    """A caption of at most so many characters, on one line; NO_FACE where the model says that there is none."""
    return _heard(said, lambda text: _prose(text, "caption", "face", longest))


def read_dense(said: Said, longest: int) -> Heard[str]:
    """A dense instruction; empty where the model says that nothing differs, NO_FACE where a face is missing."""
    return _heard(said, lambda text: _prose(text, "instruction", "faces", longest, "differs"))


def read_choice(said: Said, letters: str) -> Heard[int]:
    """Which of the lettered pictures is chosen, from 0."""
    words: dict[str, int] = {letter.lower(): place for place, letter in enumerate(letters)}
    words |= {f"picture {letter}": place for letter, place in words.items()}
    return _heard(said, lambda text: _vote(text, ("choice", "answer"), words))


def _heard(said: Said, read: Callable[[str], T]) -> Heard[T]:
    try:
        if (said.finish or "").lower() in _FILTERS:
            raise _Unread(Abstention.FILTERED, f"the provider's filter: {said.finish}")
        if said.refusal:
            raise _Unread(Abstention.REFUSED, said.refusal)
        text = without_thoughts(said.text or "")
        cut = said.finish == "length" or ((said.text or "").strip() and not text)
        if not text:
            raise _Unread(*((Abstention.TRUNCATED, _CUT) if cut else (Abstention.UNPARSABLE, "it is empty")))
        try:
            return Heard(read(text))
        except (Unfit, _Unread) as error:
            kind = error.kind if isinstance(error, _Unread) else Abstention.UNPARSABLE
            if cut and kind is Abstention.UNPARSABLE:
                raise _Unread(Abstention.TRUNCATED, _CUT) from None
            raise _Unread(kind, str(error)) from None
    except _Unread as error:
        return Heard(abstained=error.kind, problem=" ".join(str(error).split())[:200])


def _vote(text: str, keys: Sequence[str], words: Mapping[str, V]) -> V:
    """The one class that all objects name; without any object the one that the text names as its answer."""
    named = [found[key] for found in objects(text) for key in keys if key in found]
    named = [value for value in named if plain(value) not in PLACEHOLDERS]
    if not named:
        if is_refusal(text):
            raise _Unread(Abstention.REFUSED, text)
        named = [text] if plain(text) in {*words, *UNSURE} else _in_sentences(text, words)
        if not named:
            raise _Unread(Abstention.UNPARSABLE, "it has no JSON object of the form that was asked for")
    classes: set[V | str | None] = {_class(value, words) for value in named}
    if len(classes) > 1:
        raise _Unread(Abstention.UNPARSABLE, f"it contradicts itself: {', '.join(map(str, named))}")
    (found,) = classes
    if found is None:
        refused = isinstance(named[-1], str) and is_refusal(named[-1])
        kind = Abstention.REFUSED if refused else Abstention.UNPARSABLE
        raise _Unread(kind, f"{named[-1]!r} is none of the words to choose from")
    if isinstance(found, str) and found == CANNOT_TELL:
        raise _Unread(Abstention.CANNOT_TELL, "it cannot tell")
    return found  # type: ignore[return-value]


def _in_sentences(text: str, words: Mapping[str, V]) -> list[str]:
    """What "the expression is ..." says, if the text speaks of no other class."""
    lowered = text.lower()
    spoken = [word for word in words if re.search(rf"\b{word}\b" if word.isascii() else word, lowered)]
    if len({words[word] for word in spoken}) > 1:
        return []
    return [match[1] for match in _SENTENCE.finditer(lowered)]


def _class(value: Any, words: Mapping[str, V]) -> V | str | None:
    word = plain(value)
    return CANNOT_TELL if word in UNSURE else words.get(word)


def _scores(text: str, keys: Sequence[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """The scores, and the object they stand in; that is empty where they stand on lines of their own."""
    scores: dict[str, float] | None = None
    source: dict[str, Any] = {}
    every = list(objects(text))
    for found in every:
        inner = found.get("scores")
        values = found | inner if isinstance(inner, dict) else found
        numbers = {key: _number(values.get(key.lower())) for key in keys}
        if all(number is not None for number in numbers.values()):
            scores, source = numbers, found  # type: ignore[assignment]
    if scores is None and not every:
        if is_refusal(text):
            raise _Unread(Abstention.REFUSED, text)
        lines = {key: _in_lines(text, key) for key in keys}
        if all(len(set(numbers)) == 1 for numbers in lines.values()):
            scores = {key: numbers[0] for key, numbers in lines.items()}
    if scores is None:
        raise _Unread(Abstention.UNPARSABLE, f"it has no number for {' and '.join(keys)}")
    for key, number in scores.items():
        if not SCORE_LIMITS[0] <= number <= SCORE_LIMITS[1]:
            raise _Unread(Abstention.UNPARSABLE, f"{key} is {number:g}, and the scale is 0 to 10")
    return scores, source


def _in_lines(text: str, key: str) -> list[float]:
    pattern = rf"(?im)\b{re.escape(key)}\b[*\s]*(?:score)?[*\s]*[:=][*\s]*(-?\d+(?:\.\d+)?)(?:\s*/\s*10)?(?![\d/])"
    return [float(number) for number in re.findall(pattern, text)]


def _number(value: Any) -> float | None:
    if isinstance(value, list) and len(value) == 1:
        return _number(value[0])
    if isinstance(value, dict):
        return _number(value.get("score", value.get("value")))
    if isinstance(value, str):
        match = _SCORE.fullmatch(value.strip())
        return float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _one_object(text: str, key: str) -> dict[str, Any]:
    """The object that has the key, if all that have it agree."""
    having = [found for found in objects(text) if key in found]
    having = [found for found in having if plain(found[key]) not in PLACEHOLDERS]
    if not having:
        if is_refusal(text):
            raise _Unread(Abstention.REFUSED, text)
        raise _Unread(Abstention.UNPARSABLE, f'it has no JSON object with "{key}"')
    if any(found[key] != having[0][key] for found in having):
        raise _Unread(Abstention.UNPARSABLE, f'it gives "{key}" twice')
    return having[0]


def _prose(text: str, key: str, face: str, longest: int, differs: str = "") -> str:
    """The text under `key`, empty where the flag `differs` is false. Flags that are left out are true."""
    found = _one_object(text, key)
    flags = {flag: found.get(flag, True) for flag in (face, differs) if flag}
    wrong = [flag for flag, value in flags.items() if not isinstance(value, bool)]
    if wrong:
        raise _Unread(Abstention.UNPARSABLE, f'"{wrong[0]}" is neither true nor false')
    value = "" if found[key] is None else found[key]
    if not isinstance(value, str):
        raise _Unread(Abstention.UNPARSABLE, f'"{key}" holds no text')
    told = " ".join(value.split())
    if is_refusal(told):
        raise _Unread(Abstention.REFUSED, told)
    if (told == "") == all(flags.values()):
        raise _Unread(Abstention.UNPARSABLE, f'"{key}" and {" and ".join(flags)} contradict each other')
    if not flags[face]:
        raise _Unread(Abstention.NO_FACE, "it sees no face")
    if len(told) > longest:
        raise _Unread(Abstention.UNPARSABLE, f'"{key}" has {len(told)} characters, at most {longest} are wanted')
    return told
