"""What tests of metrics share."""

from typing import Any

from tasks.study.comparers import Comparer


def better_of(comparer: Comparer, one: Any, other: Any) -> float:
    """How much better the first is, by the comparer's own direction."""
    return float(one - other) if comparer.better == "higher" else float(other - one)
