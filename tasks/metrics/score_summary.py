"""Means of scores over many outputs, each with its n."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from schemas.score_config import ScoreCut
from schemas.scoring import ABLATIONS, DIMENSIONS, MODEL, Part, PartStatus, RuleParts, ScoreRow, State
from tasks.metrics.score import combined


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its n; None over nothing."""

    value: float | None
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Mean":
        """Over the values that are there."""
        known = [value for value in values if value is not None]
        return cls(math.fsum(known) / len(known) if known else None, len(known))


@dataclass(frozen=True, slots=True)
class Summary:
    """The means over rows of one editor and granularity, or of a slice of them.

    Attributes:
        owed, scored, failed, unscored: How many rows, and how they count; the first is the sum of the others.
        score: Over the scored ones: the mean of products.
        score_all: With failed ones as 0; unscored ones are in neither.
        parts: By name (id, bg, ..., fidelity, alignment, gain, and the raw ones below), over those that have one;
            no_face is the share of outputs that show none.
        median_ratio, ratio_of_sums: Of the chosen gain's distances, beside the mean ratio.
        product_of_means: Of the dimensions' means: a diagnostic, never a score.
        ablations: By name: the mean over the rows that it can be computed of.
        reasons: Why rows are not scored.
        noop_median: Of the ratios of the editor's own re-encoding; their mean is among the parts.
        truth_best, truth_mean: The best and the mean score over the ground truths of one source and target, failures
            as 0; n counts the sets, and equals the rows that count where every set has one.
    """

    owed: int
    scored: int
    failed: int
    unscored: int
    score: Mean
    score_all: Mean
    parts: dict[str, Mean]
    median_ratio: float | None
    ratio_of_sums: float | None
    product_of_means: float | None
    ablations: dict[str, Mean]
    reasons: dict[str, int]
    noop_median: float | None
    truth_best: Mean
    truth_mean: Mean


_RAW: Final[dict[str, Callable[[RuleParts], float | None]]] = {
    "identity": lambda rule: rule.identity,
    "background_rmse": lambda rule: rule.background_rmse,
    "background_own_rmse": lambda rule: rule.background_own_rmse,
    "registered_rmse": lambda rule: rule.registered_rmse,
    "au_direction": lambda rule: rule.au_direction,
    "no_face": lambda rule: float(rule.identity_status is PartStatus.NO_FACE),
}


def summary(rows: Sequence[ScoreRow], cut: ScoreCut, *, partial: bool) -> Summary:
    """The means over rows of one editor and one granularity.

    Args:
        rows: All of them, failed ones included.
        cut: The cut they were scored under.
        partial: Whether no judge was asked: the ablations that need one are then left out.
    """
    states = Counter(row.scored.state for row in rows)
    good = [row.scored for row in rows if row.scored.state is State.SCORED]
    score = Mean.of(one.score for one in good)
    counted = len(good) + states[State.FAILED]
    spreads = [f"{part}_spread" for part in (Part.PQ, Part.SC, Part.GTA)]
    names = [*map(str, Part), *DIMENSIONS, *spreads, "lpips_ratio", "au_ratio", "noop_ratio"]
    parts = {name: Mean.of(getattr(row.scored, name) for row in rows) for name in names}
    rules = [row.rule for row in rows if row.rule is not None]
    parts |= {name: Mean.of(read(rule) for rule in rules) for name, read in _RAW.items()}
    ratios = [one for row in rows if (one := getattr(row.scored, f"{cut.gain}_ratio")) is not None]
    means = [Mean.of(getattr(one, name) for one in good).value for name in DIMENSIONS]
    known = [mean for mean in means if mean is not None]
    return Summary(
        owed=len(rows),
        scored=len(good),
        failed=states[State.FAILED],
        unscored=states[State.UNSCORED],
        score=score,
        score_all=Mean((score.value or 0.0) * len(good) / counted if counted else None, counted),
        parts=parts,
        median_ratio=_median(ratios),
        ratio_of_sums=_ratio_of_sums(rules, cut),
        product_of_means=math.prod(known) if known else None,
        ablations={
            name: Mean.of(combined({part: getattr(row.scored, part) for part in Part}, removed) for row in rows)
            for name, removed in ABLATIONS.items()
            if not partial or removed >= MODEL
        },
        noop_median=_median(row.scored.noop_ratio for row in rows),
        truth_best=Mean.of(row.truth_best for row in _one_of_each(rows)),
        truth_mean=Mean.of(row.truth_mean for row in _one_of_each(rows)),
        reasons=dict(sorted(Counter(row.scored.reason for row in rows if row.scored.reason).items())),
    )


def _one_of_each(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """One row for every set of ground truths: all rows of a set say the same of it."""
    return list({(row.pool, row.source_id, row.target): row for row in rows}.values())


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _ratio_of_sums(rules: Sequence[RuleParts], cut: ScoreCut) -> float | None:
    """Σ d(source, output) / Σ d(source, ground truth): small divisors weigh little."""
    pairs = [
        (rule.lpips_output, rule.lpips_truth) if cut.gain == "lpips" else (rule.au_output, rule.au_truth)
        for rule in rules
    ]
    known = [(output, truth) for output, truth in pairs if output is not None and truth is not None]
    total = math.fsum(truth for _, truth in known)
    return math.fsum(output for output, _ in known) / total if total > 0 else None
