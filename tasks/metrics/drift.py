"""How far a judge has drifted: its new answers to old questions against the stored ones. Pure."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from schemas.judging import DriftPart
from schemas.scoring import Part
from tasks.metrics.steadiness import flipped

RESAMPLES: Final = 2000
LEAST: Final = 10  # people: percentiles of fewer are far too narrow (ours, as leaderboards have it)


class Pair(NamedTuple):
    """Two answers, 0..10, to one question about one output (`output` tells outputs apart) of one person."""

    subject: str
    output: str
    stored: float
    new: float


def drift_part(part: Part, pairs: Sequence[Pair]) -> DriftPart:
    """The mean of new − stored, output by output, and its 95 % interval by bootstrap over people (seeded).

    Args:
        part: What was asked.
        pairs: All of one judge; an output with both orders of its pictures has two.
    """
    held: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pair in pairs:
        held[pair.subject, pair.output].append(pair.new - pair.stored)
    means = {key: math.fsum(values) / len(values) for key, values in sorted(held.items())}
    low, high = _interval(means)
    return DriftPart(
        part=part,
        outputs=len(means),
        mean=round(math.fsum(means.values()) / len(means), 6) if means else None,
        low=low,
        high=high,
        answers=len(pairs),
        flips=sum(flipped(pair.stored, pair.new) for pair in pairs),
    )


def _interval(means: dict[tuple[str, str], float]) -> tuple[float | None, float | None]:
    people = sorted({subject for subject, _ in means})
    if len(people) < LEAST:
        return None, None
    sums, counts = np.zeros(len(people)), np.zeros(len(people))
    for (subject, _), value in means.items():
        sums[people.index(subject)] += value
        counts[people.index(subject)] += 1
    drawn = np.random.default_rng(0).multinomial(len(people), np.full(len(people), 1 / len(people)), size=RESAMPLES)
    low, high = np.percentile((drawn @ sums) / (drawn @ counts), [2.5, 97.5])
    return round(float(low), 6), round(float(high), 6)
