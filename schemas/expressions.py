"""The seven expressions, their three polarities, and the spellings other people use for them."""

from enum import StrEnum
from typing import Final


class Expression(StrEnum):
    """The seven basic expressions. The order here is the column order of every probability vector."""

    NEUTRAL = "neutral"
    HAPPY = "happy"
    SAD = "sad"
    SURPRISE = "surprise"
    FEAR = "fear"
    DISGUST = "disgust"
    ANGER = "anger"


class Polarity(StrEnum):
    """The three classes a coarse voter can tell apart reliably."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"


EXPRESSIONS: Final = tuple(Expression)

# FED-Bench, section on candidate verification: surprise counts as negative.
POLARITY: Final[dict[Expression, Polarity]] = dict.fromkeys(EXPRESSIONS, Polarity.NEGATIVE) | {
    Expression.HAPPY: Polarity.POSITIVE,
    Expression.NEUTRAL: Polarity.NEUTRAL,
}

_SPELLINGS: Final[dict[str, Expression]] = {
    "happiness": Expression.HAPPY,
    "sadness": Expression.SAD,
    "surprised": Expression.SURPRISE,
    "fearful": Expression.FEAR,
    "afraid": Expression.FEAR,
    "disgusted": Expression.DISGUST,
    "angry": Expression.ANGER,
} | {str(expression): expression for expression in EXPRESSIONS}


def others(expression: Expression) -> tuple[Expression, ...]:
    """The six targets of a source that shows `expression`."""
    return tuple(other for other in EXPRESSIONS if other is not expression)


def parse_expression(text: str) -> Expression | None:
    """The expression a label names ("Angry", "happiness", " fear "), or None. Never maps by integer code."""
    return _SPELLINGS.get(text.strip().lower())
