"""What providers say, as it may be kept: no key in it, and only numbers that can be true."""

import math
from collections.abc import Mapping
from typing import Any, Final

_SHORTEST_KEY: Final = 8
# More than any model takes or gives; a larger number is no count.
_MOST_TOKENS: Final = 10**9


def without_key(said: Any, key: str | None) -> Any:
    """The same text, or plain values with texts anywhere in them, the key blotted out."""
    # Local servers are given "none" or "EMPTY", which are words, and no secrets.
    if not key or len(key) < _SHORTEST_KEY:
        return said
    if isinstance(said, str):
        return said.replace(key, "***")
    if isinstance(said, dict):
        return {without_key(name, key): without_key(value, key) for name, value in said.items()}
    return [without_key(value, key) for value in said] if isinstance(said, list) else said


def tokens_in(usage: Mapping[str, Any], *names: str, least: int = 1) -> int | None:
    """The first of these counts that is there; None where it is none, such as the 0 that litellm puts for silence."""
    value = next((usage[name] for name in names if name in usage), None)
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_TOKENS else None


def dollars_in(usage: Mapping[str, Any]) -> float | None:
    """What the provider says a call cost; None where that is no number of dollars: a budget must not grow by it."""
    value = usage.get("cost")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value >= 0 and math.isfinite(value) else None
