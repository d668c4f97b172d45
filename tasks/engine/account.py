"""What a run's calls came to, for people: sums by role and model, how long they took, and what a bill may differ by."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

from tasks.engine.answer_file import usable
from tasks.engine.ledger import Total, totals

_LATENCIES: Final = """
SELECT role, model, latency_s FROM ledger
WHERE run = ? AND NOT cached AND outcome = 'answered' ORDER BY role, model, latency_s
"""
_FACTS: Final = "SELECT DISTINCT role, model, provider, price_date FROM ledger WHERE run = ? AND NOT cached"
REPORTED: Final = "reported"
# What the answers that a run used since a row cost, whichever run bought them.
_BOUGHT: Final = """
WITH used AS (SELECT DISTINCT key FROM ledger WHERE run = ? AND id > ? AND outcome = 'answered')
SELECT role, model, count(DISTINCT key), sum(run = ? AND id > ?), sum(cost IS NULL), total(cost),
    total(CASE WHEN run = ? AND id > ? THEN cost END)
FROM ledger JOIN used USING (key) WHERE outcome = 'answered' AND NOT cached GROUP BY role, model ORDER BY role, model
"""


@dataclass(frozen=True, slots=True)
class Bought:
    """The answers of one role and model that a run used, and what they cost when they were bought.

    Attributes:
        role, model: Whose.
        answers: How many different questions; one that was asked twice for its form is two.
        new: How many were bought by this run, since the row.
        unpriced: Purchases of unknown price; they are in no sum.
        dollars, new_dollars: Sums of the known costs, of all and of the new ones.
    """

    role: str
    model: str
    answers: int
    new: int
    unpriced: int
    dollars: float
    new_dollars: float


@dataclass(frozen=True, slots=True)
class Account:
    """One role and model of a run.

    Attributes:
        total: The sums.
        providers: Who was asked; none where everything was stored.
        priced: Days of the prices used, `reported` where the provider named the cost itself.
        p50_s, p95_s: Seconds an answer took, its time in our queue not included; None without a new answer.
    """

    total: Total
    providers: tuple[str, ...]
    priced: tuple[str, ...]
    p50_s: float | None
    p95_s: float | None


def accounts(path: Path, run: str) -> list[Account]:
    """By role and model; empty where nothing was ever asked. Reads beside a process that calls.

    Args:
        path: The answer store.
        run: The run's name.

    Raises:
        WorkspaceError: The file cannot be read.
    """
    sums = totals(path, run)
    if not sums:
        return []
    latencies: dict[tuple[str, str], list[float]] = {}
    facts: dict[tuple[str, str], set[tuple[str, str | None]]] = {}
    with usable(path), closing(sqlite3.connect(path)) as reader:
        for role, model, latency in reader.execute(_LATENCIES, [run]):
            latencies.setdefault((role, model), []).append(latency)
        for role, model, provider, day in reader.execute(_FACTS, [run]):
            facts.setdefault((role, model), set()).add((provider, day))
    return [
        Account(
            total=total,
            providers=tuple(sorted({provider for provider, _ in facts.get((total.role, total.model), ())})),
            priced=tuple(sorted({day for _, day in facts.get((total.role, total.model), ()) if day})),
            p50_s=_quantile(latencies.get((total.role, total.model), ()), 0.5),
            p95_s=_quantile(latencies.get((total.role, total.model), ()), 0.95),
        )
        for total in sums
    ]


def bought(path: Path, run: str, after: int) -> list[Bought]:
    """What a run used behind a row of the ledger, by role and model; stored answers at what they cost once.

    Args:
        path: The answer store; it need not be there.
        run: The run's name.
        after: The ledger's last row before.

    Raises:
        WorkspaceError: The file cannot be read.
    """
    if not path.exists():
        return []
    with usable(path), closing(sqlite3.connect(path)) as reader:
        return [Bought(*row) for row in reader.execute(_BOUGHT, [run, after] * 3)]


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that so large a share does not exceed."""
    return ordered[ceil(share * len(ordered)) - 1] if ordered else None


def notes(held: Sequence[Account]) -> list[str]:
    """Why a provider's bill may say something else than the ledger, in words; empty if nothing is open."""
    unknown = sum(account.total.unknown for account in held)
    failed = sum(account.total.failed for account in held)
    unpriced = sum(account.total.unpriced for account in held)
    days = sorted({day for account in held for day in account.priced if day != REPORTED})
    told = []
    if unknown:
        told.append(f"{unknown} calls were sent and their answer never seen (a kill or crash): they may be on the bill")
    if failed:
        told.append(f"{failed} attempts failed and count as free: most providers bill none, some bill time-outs")
    if unpriced:
        told.append(f"{unpriced} answers have no known price and are in no sum: give their routes a `price`")
    if days:
        told.append(f"costs are tokens times the prices of {' and '.join(days)}: compare with the provider's page")
    return told
