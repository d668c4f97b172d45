"""How often metrics prefer what the majority of people prefers. Pure: choices and numbers in, shares out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.boards.statistics import alpha
from tasks.leaderboard.bootstrap import LEAST, draws, interval, resampled
from tasks.study.pairs import Pair

Better = Literal["higher", "lower", "near one"]


@dataclass(frozen=True)
class Agreement:
    """One metric against one question.

    Attributes:
        metric, question: Which; `better`: which of two numbers it prefers.
        value: Share of the pairs where it prefers what most people do, 0..1, ties of the metric counted ½; None
            without a pair.
        low, high: 95 % interval, bootstrap over sources; None with fewer than 10 of them.
        n: Pairs with a majority and both numbers. `ties` of them has the metric.
        missing: Pairs with a majority, left out because the metric lacks a number.
        sources: How many the n pairs are of.
    """

    metric: str
    question: str
    better: Better
    value: float | None
    low: float | None
    high: float | None
    n: int
    ties: int
    missing: int
    sources: int

    @property
    def verdict(self) -> str:
        """Against a coin."""
        if self.low is None or self.high is None:
            return "few sources"
        return "above chance" if self.low > 0.5 else "below chance" if self.high < 0.5 else "unclear"


@dataclass(frozen=True)
class Question:
    """What people said to one question.

    Attributes:
        question: Which.
        pairs: How many were asked.
        no_majority: Those where no side has more than half.
        unanimous: Those where all chose the same side.
        alpha: Krippendorff's, nominal (a, b, same): no metric can be expected to agree with people better than they
            do with each other. None where nothing can be compared.
    """

    question: str
    pairs: int
    no_majority: int
    unanimous: int
    alpha: float | None


def majority(choices: Sequence[str]) -> str:
    """ "a" or "b" where more than half of all who were asked chose it, else "": no consensus.

    Args:
        choices: "a", "b", "same", or "" for no answer; all count as asked.
    """
    return next((side for side in ("a", "b") if 2 * list(choices).count(side) > len(choices)), "")


def credit(human: str, a: float, b: float, better: Better) -> float:
    """1 where the metric prefers the side that people do, 0 where it prefers the other, ½ where it has a tie.

    LPIPS's two-alternative score with the majority in place of the share of votes (Zhang et al. 2018).
    """
    one, other = (_merit(value, better) for value in (a, b))
    if one == other:
        return 0.5
    return float((one > other) == (human == "a"))


def _merit(value: float, better: Better) -> float:
    return value if better == "higher" else -value if better == "lower" else -abs(value - 1)


def questions(pairs: Sequence[Pair]) -> list[Question]:
    """What people said, by question."""
    found = []
    for name in names(pairs):
        asked = [pair.choices[name] for pair in pairs]
        open_ = sum(not majority(choices) for choices in asked)
        one = sum(len(set(choices)) == 1 and choices[0] in ("a", "b") for choices in asked)
        how = alpha([[word for word in choices if word] for choices in asked])
        found.append(Question(name, len(asked), open_, one, None if how is None else round(how, 6)))
    return found


def agreements(pairs: Sequence[Pair], better: Mapping[str, Better], *, seed: int = 0) -> list[Agreement]:
    """Every metric against every question, by question, the best first.

    Args:
        pairs: All pairs; those without a majority are left out of a question, and counted in `questions`.
        better: By metric, what is better; higher where it is not named.
        seed: Of the bootstrap.
    """
    metrics = list(dict.fromkeys(name for pair in pairs for name in pair.values))
    found = []
    for question in names(pairs):
        told = [_agreement(pairs, question, name, better.get(name, "higher"), seed) for name in metrics]
        found += sorted(told, key=lambda one: (1.0 if one.value is None else -one.value, one.metric))
    return found


def credits(pairs: Sequence[Pair], question: str, metric: str, better: Better) -> list[float | None]:
    """By pair with a majority, in order: the metric's credit; None where it lacks a number."""
    found: list[float | None] = []
    for pair in pairs:
        human = majority(pair.choices[question])
        if human:
            a, b = pair.values.get(metric, (None, None))
            found.append(None if a is None or b is None else credit(human, a, b, better))
    return found


def decided(pairs: Sequence[Pair], question: str) -> list[Pair]:
    """The pairs with a majority, in order."""
    return [pair for pair in pairs if majority(pair.choices[question])]


def _agreement(pairs: Sequence[Pair], question: str, metric: str, better: Better, seed: int) -> Agreement:
    told = credits(pairs, question, metric, better)
    by_source: dict[str, list[float]] = {}
    for pair, one in zip(decided(pairs, question), told, strict=True):
        if one is not None:
            by_source.setdefault(pair.source, []).append(one)
    counted = [one for one in told if one is not None]
    band = None
    if len(by_source) >= LEAST:
        held = [by_source[name] for name in sorted(by_source)]
        sums, counts = np.array([[sum(one), len(one)] for one in held], np.float64).T
        band = interval(resampled(draws(len(held), seed), sums, counts))
    return Agreement(
        metric=metric,
        question=question,
        better=better,
        value=sum(counted) / len(counted) if counted else None,
        low=band[0] if band else None,
        high=band[1] if band else None,
        n=len(counted),
        ties=counted.count(0.5),
        missing=len(told) - len(counted),
        sources=len(by_source),
    )


def names(pairs: Sequence[Pair]) -> list[str]:
    """The questions."""
    return list(pairs[0].choices) if pairs else []
