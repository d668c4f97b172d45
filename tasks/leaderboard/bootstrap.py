"""The bootstrap over sources: what a mean, a difference and a rank are worth. Pure: arrays in, arrays out."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 2000
# Of people, ours: percentiles of fewer are far too narrow, and no claim is made on them.
LEAST: Final = 10
# Two-sided 5 %, power 80 %: 1.960 + 0.842 standard errors.
_POWER: Final = 2.8016
_DIGITS: Final = 6

Floats = NDArray[np.float64]


def draws(sources: int, seed: int, resamples: int = RESAMPLES) -> Floats:
    """How often each source is drawn in each resample: float64 (resamples, sources), whole numbers, rows sum to n.

    Args:
        sources: How many there are, ≥ 1.
        seed: The same gives the same draws.
        resamples: Rows.
    """
    shares = np.full(sources, 1 / sources)
    return np.random.default_rng(seed).multinomial(sources, shares, size=resamples).astype(np.float64)


def resampled(drawn: Floats, sums: Floats, counts: Floats) -> Floats:
    """The mean in every resample, float64 (resamples,) or (resamples, editors); NaN where nothing was drawn.

    A source's rows are drawn together, so the mean is a ratio of two sums.

    Args:
        drawn: As `draws` gives it.
        sums, counts: Per source (and editor): the sum of its rows' values, and how many rows.
    """
    total = drawn @ counts
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, (drawn @ sums) / total, np.nan)


def interval(means: Floats) -> tuple[float, float] | None:
    """The 95 % percentile interval of resampled means, to six digits; None where none could be computed."""
    known = means[~np.isnan(means)]
    if not known.size:
        return None
    low, high = np.percentile(known, [2.5, 97.5])
    return round(float(low), _DIGITS), round(float(high), _DIGITS)


@dataclass(frozen=True, slots=True)
class Difference:
    """One editor's mean minus another's, over the rows that both have.

    Attributes:
        value: The difference; None where they share no row.
        low, high: 95 % interval; None where there are fewer than `LEAST` shared sources.
        detectable: The least difference that so many sources would show in 4 of 5 such comparisons (two-sided 5 %):
            2.80 standard errors.
        sources, n: Shared sources (people) and rows.
    """

    value: float | None
    low: float | None
    high: float | None
    detectable: float | None
    sources: int
    n: int

    @property
    def verdict(self) -> str:
        """Whether the first is better: in words."""
        if self.low is None or self.high is None:
            return "too few people"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "indistinguishable"


def paired(drawn: Floats, differences: Floats, counts: Floats) -> Difference:
    """The paired bootstrap of a mean difference.

    Args:
        drawn: As `draws` gives it.
        differences: Per source, the sum over shared rows of one's value minus the other's.
        counts: Per source, how many rows both have.
    """
    rows, sources = int(counts.sum()), int((counts > 0).sum())
    if not rows:
        return Difference(None, None, None, None, 0, 0)
    value = round(float(differences.sum()) / rows, _DIGITS)
    if sources < LEAST:
        return Difference(value, None, None, None, sources, rows)
    means = resampled(drawn, differences, counts)
    low, high = interval(means) or (None, None)
    detectable = round(_POWER * float(np.nanstd(means, ddof=1)), _DIGITS)
    return Difference(value, low, high, detectable, sources, rows)


def rank_ranges(means: Floats) -> list[tuple[int, int] | None]:
    """Where 95 % of the resamples rank each editor; None for one that has no mean in some.

    Args:
        means: (resamples, editors); higher is better. Equal means share the better rank.
    """
    found: list[tuple[int, int] | None] = []
    for column in means.T:
        if np.isnan(column).any():
            found.append(None)
            continue
        ranks = 1 + (means > column[:, None]).sum(axis=1)
        low, high = np.percentile(ranks, [2.5, 97.5], method="nearest")
        found.append((int(low), int(high)))
    return found


def kendall(one: list[float | None], other: list[float | None]) -> float | None:
    """Kendall's tau-b of two scorings of the same editors, −1..1; None with fewer than two in both, or all tied.

    (concordant − discordant) / √(pairs untied in one · pairs untied in the other), Kendall (1945).
    """
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if len(both) < 2:
        return None
    a, b = np.array(both).T
    upper = np.triu_indices(len(both), 1)
    signs_a, signs_b = (np.sign(values[:, None] - values[None, :])[upper] for values in (a, b))
    untied = float(np.count_nonzero(signs_a)) * float(np.count_nonzero(signs_b))
    return None if not untied else round(float((signs_a * signs_b).sum()) / untied**0.5, _DIGITS)


def ranks(values: list[float | None]) -> list[int | None]:
    """Ranks from 1, higher is better, equal ones share the better rank; None stays None."""
    known = [value for value in values if value is not None]
    return [None if value is None else 1 + sum(other > value for other in known) for value in values]
