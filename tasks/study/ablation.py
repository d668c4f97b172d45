"""The ablation of FED-Score: what each dimension is worth, in agreement with people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.scoring import ABLATIONS, FED_SCORE
from tasks.leaderboard.bootstrap import Difference, draws, paired
from tasks.study.agreement import Agreement, agreements, credits, decided, names
from tasks.study.pairs import Pair


@dataclass(frozen=True)
class Ablated:
    """FED-Score, or what is left of it.

    Attributes:
        config: "full", "w/o REG", ... as `ABLATIONS` has them.
        agreement: With the majority.
        change: Its agreement minus the full score's, over the pairs that both have a number for; None for the full one.
    """

    config: str
    agreement: Agreement
    change: Difference | None


def metric_of(config: str) -> str:
    """What the metric of an ablation is called."""
    return FED_SCORE if config == "full" else f"{FED_SCORE} {config}"


def ablations(pairs: Sequence[Pair], *, seed: int = 0) -> dict[str, list[Ablated]]:
    """By question, the full score and its ablations in their order; empty where no pair has a FED-Score.

    Args:
        pairs: All pairs, with their metrics.
        seed: Of the bootstrap over sources.
    """
    if not any(FED_SCORE in pair.values for pair in pairs):
        return {}
    found = {(one.question, one.metric): one for one in agreements(pairs, {}, seed=seed)}
    return {
        question: [
            Ablated(
                config,
                found[question, metric_of(config)],
                None if config == "full" else _change(pairs, question, metric_of(config), seed),
            )
            for config in ABLATIONS
        ]
        for question in names(pairs)
    }


def _change(pairs: Sequence[Pair], question: str, metric: str, seed: int) -> Difference:
    full, less = (credits(pairs, question, name, "higher") for name in (FED_SCORE, metric))
    by_source: dict[str, list[float]] = {}
    for pair, one, other in zip(decided(pairs, question), full, less, strict=True):
        if one is not None and other is not None:
            by_source.setdefault(pair.source, []).append(other - one)
    held = [by_source[name] for name in sorted(by_source)]
    if not held:
        return Difference(None, None, None, None, 0, 0)
    sums, counts = np.array([[sum(one), len(one)] for one in held], np.float64).T
    return paired(draws(len(held), seed), sums, counts)
