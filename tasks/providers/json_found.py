"""JSON objects in what a model wrote, among prose, fences and boxes; never in its thoughts."""

import ast
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

# An answer is a few hundred characters; of a model that ran wild no more is looked at.
_LONGEST: Final = 20_000
_THOUGHTS: Final = re.compile(
    r"<(think|thinking|reasoning|analysis)>.*?</\1>|◁think▷.*?◁/think▷", re.DOTALL | re.IGNORECASE
)
_THOUGHT_ENDS: Final = re.compile(r"</(?:think|thinking|reasoning|analysis)>|◁/think▷", re.IGNORECASE)
_THOUGHT_BEGINS: Final = re.compile(r"<(?:think|thinking|reasoning|analysis)>|◁think▷", re.IGNORECASE)
_MARKS: Final = re.compile(r"<\|[a-z_]{1,30}\|>|</?answer>", re.IGNORECASE)
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")


class Unfit(Exception):
    """What was found cannot be an answer; says why."""


def without_thoughts(text: str) -> str:
    """The answer alone: thoughts, box and turn tokens removed; empty if a thought never ended."""
    text = unicodedata.normalize("NFKC", text[:_LONGEST]).replace("\ufeff", "").replace("\u200b", "")
    text = _THOUGHTS.sub(" ", text)
    # Some servers cut the opening tag off: all before the last closing one is thought.
    text = _THOUGHT_ENDS.split(text)[-1]
    if _THOUGHT_BEGINS.search(text):
        return ""
    return _MARKS.sub(" ", text).strip()


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Every whole JSON object of a text, outermost ones only, keys stripped and in lower case.

    Single quotes, trailing commas and line breaks in strings pass.

    Raises:
        Unfit: An object gives two values for one key, or is never closed: what came before it may be an example.
    """
    start = text.find("{")
    while start >= 0:
        end = _end(text, start)
        if end is None:
            raise Unfit("a JSON object is not closed")
        found = _read(text[start:end])
        if found is not None:
            yield found
        start = text.find("{", end)


def _end(text: str, start: int) -> int | None:
    """The place after the brace that closes the one at `start`; braces in double-quoted strings do not count."""
    depth, quoted, escaped = 0, False, False
    for place in range(start, len(text)):
        letter = text[place]
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter == "{") - (letter == "}")
            if depth == 0:
                return place + 1
    return None


def _read(fragment: str) -> dict[str, Any] | None:
    for attempt in (fragment, _TRAILING_COMMA.sub(r"\1", fragment)):
        try:
            value = json.loads(attempt, strict=False, object_pairs_hook=_plain)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    try:
        value = ast.literal_eval(fragment)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return _lowered(value) if isinstance(value, dict) else None


def _lowered(value: Any) -> Any:
    return _plain([(key, _lowered(inner)) for key, inner in value.items()]) if isinstance(value, dict) else value


def _plain(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = str(key).strip().lower()
        if name in found and found[name] != value:
            raise Unfit(f"it gives '{name}' twice")
        found[name] = value
    return found
