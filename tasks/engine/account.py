"""What a run's calls came to, for people: sums, how long they took, and what a bill may differ by."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any, Final

from tasks.engine.answer_file import usable
from tasks.engine.batch_file import OPEN, Batch
from tasks.engine.ledger import Total

_LATENCIES: Final = """
SELECT role, provider, model, latency_s FROM ledger
WHERE run = ? AND NOT cached AND outcome = 'answered' AND latency_s IS NOT NULL ORDER BY latency_s
"""
# By whom a request was turned down for good is with its answer; `tasks.engine.ledger` has the same sums by run.
_SUMS: Final = """
SELECT role, provider, model, sum(NOT cached), sum(cached),
    sum(NOT cached AND outcome NOT IN ('answered', 'unknown')), sum(outcome = 'unknown'),
    sum(NOT cached AND outcome = 'answered' AND cost IS NULL), total(cost),
    coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), coalesce(sum(images), 0),
    sum(NOT cached AND outcome = 'answered'),
    sum(NOT cached AND outcome = 'permanent' AND coalesce(answers.kind, '') = 'refused')
FROM ledger LEFT JOIN answers USING (key) WHERE run = ? GROUP BY role, provider, model ORDER BY role, provider, model
"""
_DAYS: Final = "SELECT DISTINCT role, provider, model, price_date FROM ledger WHERE run = ? AND NOT cached"
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
    """One role, provider and model of a run.

    Attributes:
        provider: Who was asked, or whose stored answers were taken.
        total: The sums; `failed` ones are all that brought no answer.
        answered: Calls that brought one, and `refused`, how many of the failed were turned down for good by policy.
            What a model refuses in its answer is an answer; the vote says so.
        dollars: What the answers cost; None where they were, and none has a known price.
        priced: Days of the prices used, `reported` where the provider named the cost itself.
        p50_s, p95_s: Seconds an answer took, its time in our queue not included; None without a new answer.
    """

    provider: str
    total: Total
    answered: int
    refused: int
    dollars: float | None
    priced: tuple[str, ...]
    p50_s: float | None
    p95_s: float | None

    @property
    def failed(self) -> int:
        """Calls that brought no answer, but for refusals: time-outs, overload, a wrong key, a bad request."""
        return self.total.failed - self.refused

    @property
    def troubles(self) -> dict[str, int]:
        """What a reader must know of the calls, by word; empty where all were answered and priced."""
        total = self.total
        counts = {"refused": self.refused, "failed": self.failed, "unknown": total.unknown, "unpriced": total.unpriced}
        return {name: count for name, count in counts.items() if count}

    def plain(self) -> dict[str, Any]:
        """For JSON. `dollars` is null where no price is known."""
        total = asdict(self.total)
        del total["cost"]
        told = {"answered": self.answered, "refused": self.refused, "failed": self.failed, "dollars": self.dollars}
        times = {"priced": self.priced, "p50_s": self.p50_s, "p95_s": self.p95_s}
        return {"role": total.pop("role"), "provider": self.provider} | total | told | times


def dollars_of(held: Sequence[Account]) -> float | None:
    """The sum of what is known; None where nothing is, although something was answered."""
    known = [account.dollars for account in held if account.dollars is not None]
    return sum(known) if known or not held else None


def runs_of(path: Path) -> list[str]:
    """The runs that a ledger knows.

    Raises:
        WorkspaceError: The file cannot be read.
    """
    if not path.exists():
        return []
    with usable(path), closing(sqlite3.connect(path)) as reader:
        return [run for (run,) in reader.execute("SELECT DISTINCT run FROM ledger ORDER BY run")]


def accounts(path: Path, run: str) -> list[Account]:
    """By role, provider and model; empty where nothing was ever asked. Reads beside a process that calls.

    Args:
        path: The answer store.
        run: The run's name.

    Raises:
        WorkspaceError: The file cannot be read.
    """
    if not path.exists():
        return []
    latencies: dict[tuple[str, ...], list[float]] = {}
    days: dict[tuple[str, ...], set[str]] = {}
    with usable(path), closing(sqlite3.connect(path)) as reader:
        sums = reader.execute(_SUMS, [run]).fetchall()
        for *name, latency in reader.execute(_LATENCIES, [run]):
            latencies.setdefault(tuple(name), []).append(latency)
        for *name, day in reader.execute(_DAYS, [run]):
            days.setdefault(tuple(name), set()).update([day] if day else [])
    return [_account(row, latencies, days) for row in sums]


def _account(
    row: Sequence[Any], latencies: Mapping[tuple[str, ...], list[float]], days: Mapping[tuple[str, ...], set[str]]
) -> Account:
    role, provider, model, *counts, answered, refused = row
    total, name = Total(role, model, *counts), (role, provider, model)
    return Account(
        provider=provider,
        total=total,
        answered=answered,
        refused=refused,
        dollars=None if total.unpriced and total.unpriced == answered else total.cost,
        priced=tuple(sorted(days.get(name, ()))),
        p50_s=_quantile(latencies.get(name, ()), 0.5),
        p95_s=_quantile(latencies.get(name, ()), 0.95),
    )


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


def notes(held: Sequence[Account], sent: Sequence[Batch] = ()) -> list[str]:
    """Why a provider's bill may say something else than the ledger, in words; empty if nothing is open.

    Args:
        held: The run's accounts.
        sent: The run's batches.
    """
    in_flight = sum(batch.requests for batch in sent if batch.state in OPEN)
    unknown = sum(account.total.unknown for account in held) - in_flight
    failed = sum(account.total.failed for account in held)
    unpriced = sum(account.total.unpriced for account in held)
    days = sorted({day for account in held for day in account.priced if day != REPORTED})
    told = []
    if in_flight:
        told.append(f"{in_flight} calls are in batches that providers have yet to answer: the next build collects them")
    if unknown > 0:
        told.append(f"{unknown} calls were sent and their answer never seen (a kill or crash): they may be on the bill")
    if failed:
        told.append(f"{failed} attempts failed and count as free: most providers bill none, some bill time-outs")
    if unpriced:
        told.append(f"{unpriced} answers have no known price and are in no sum: give their routes a `price`")
    if days:
        told.append(f"costs are tokens times the prices of {' and '.join(days)}: compare with the provider's page")
    return told
