"""What was asked, answered and paid: one SQLite file of answers by key and a row per attempt."""

import json
import re
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tasks.engine.answer_file import AnswerFile, usable
from tasks.engine.answer_tables import now
from tasks.engine.blotting import blotted
from tasks.engine.errors import FatalError, PermanentError, ProviderError
from tasks.engine.fingerprint import canonical, fingerprint

_TOTALS: Final = """
SELECT role, model, sum(NOT cached), sum(cached), sum(NOT cached AND outcome NOT IN ('answered', 'unknown')),
    sum(outcome = 'unknown'), sum(NOT cached AND outcome = 'answered' AND cost IS NULL), total(cost),
    coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), coalesce(sum(images), 0)
FROM ledger WHERE run = ? GROUP BY role, model ORDER BY role, model
"""
_SPENT: Final = """
SELECT role, model, count(DISTINCT key), sum(NOT cached), sum(NOT cached AND cost IS NULL), total(cost)
FROM ledger WHERE run = ? AND id > ? AND outcome = 'answered' GROUP BY role, model ORDER BY role, model
"""


class CallOutcome(StrEnum):
    """What became of one attempt. `UNKNOWN`: sent, and no answer seen (in flight now, or at a kill or a crash)."""

    UNKNOWN = "unknown"
    ANSWERED = "answered"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    FATAL = "fatal"


@dataclass(frozen=True, slots=True)
class Request:
    """All that decides an answer. Stored as it is, so it never holds a secret: the adapter's `send` adds those.

    `params` holds plain values, `images` digests in the order they are shown; `repeat` tells equal questions apart.
    """

    role: str
    provider: str
    model: str
    params: Mapping[str, Any] = field(default_factory=dict)
    prompt_sha256: str = ""
    images: tuple[str, ...] = ()
    repeat: int = 0

    def key(self) -> str:
        """Hexadecimal sha256 over every field."""
        return fingerprint("call", self.plain())

    def plain(self) -> dict[str, Any]:
        """Every field by its name. `dataclasses.asdict` copies the params, which took most of a call's bookkeeping."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider answered, unparsed. `cost` in dollars, None where no price is known; `price_date` is the price's.

    `images` counts the pictures charged for.
    """

    raw: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    images: int = 0
    cost: float | None = None
    price_date: str | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over ledger rows of one role and model.

    `calls` counts attempts sent, `failed` and `unknown` ones (see `CallOutcome`) among them; `cached` requests were
    asked and not sent. `cost` sums the known costs in dollars; `unpriced` counts answers without one.
    """

    role: str
    model: str
    calls: int
    cached: int
    failed: int
    unknown: int
    unpriced: int
    cost: float
    tokens_in: int
    tokens_out: int
    images: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What a stretch of the ledger says of the answers of one role and model.

    `answers` counts questions answered, whether sent or taken from the store; `sent` those that were sent, `unpriced`
    of them without a price; `dollars` is their known cost.
    """

    role: str
    model: str
    answers: int
    sent: int
    unpriced: int
    dollars: float

    @property
    def price(self) -> float | None:
        """Dollars per answer; None where no answer of known price says it, or one has none."""
        return None if self.unpriced or not self.sent else self.dollars / self.sent


def clean(message: str) -> str:
    """One line of at most 300 characters, with the values of secret environment variables blotted out."""
    # Before trimming, lest half a secret stays.
    return " ".join(blotted(message).split())[:300]


def _names(request: str, images: Collection[str]) -> bool:
    """Whether a stored request names one of these pictures, wherever in it."""
    return any(found in images for found in re.findall("[0-9a-f]{64}", request))


class Ledger:
    """Answers by key, and a row per attempt. Thread-safe; the file is opened, and made, by the first use.

    Raises:
        WorkspaceError: On every method, for a file that cannot be used or that another process writes.
    """

    def __init__(self, path: Path, run: str) -> None:
        self._run, self.file = run, AnswerFile(path)

    def stored(self, key: str) -> tuple[str | None, str, str] | None:
        """Raw answer, failure kind and message of a settled request; an error has no raw answer."""
        sql = "SELECT raw, kind, message FROM answers WHERE key = ?"
        row: tuple[str | None, str, str] | None = self.file.do(
            lambda db: db.execute(sql, [key]).fetchone(), durable=False
        )
        return row

    def begin(self, key: str, request: Request, attempt: int) -> int:
        """Write an intent; returns its id. It survives a kill; after a power cut, nothing is known of the call."""
        return self.file.do(lambda db: insert(db, self._run, key, request, attempt=attempt), durable=False)

    def cached(self, key: str, request: Request, outcome: CallOutcome) -> None:
        """Note that a stored answer or error was used."""

        def note(db: sqlite3.Connection) -> None:
            row = insert(db, self._run, key, request, attempt=0)
            db.execute("UPDATE ledger SET outcome = ?, cached = 1, cost = 0 WHERE id = ?", [outcome, row])

        self.file.do(note, durable=False, aside=True)

    def answered(self, row: int, key: str, request: Request, reply: Reply, latency_s: float) -> None:
        """Store the raw answer and close its row, in one transaction."""
        self.file.do(lambda db: close_answered(db, row, key, request, reply, latency_s=latency_s))

    def failed(self, row: int, key: str, request: Request, error: ProviderError, latency_s: float) -> None:
        """Close a row with an error; a permanent one is also stored, as what the request came to."""
        self.file.do(lambda db: close_failed(db, row, key, request, error, latency_s=latency_s))

    def costs(self) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """Dollars: spent by this run, by role; and the dearest call of any run, by role and model."""

        def sums(db: sqlite3.Connection) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
            spent = db.execute("SELECT role, total(cost) FROM ledger WHERE run = ? GROUP BY role", [self._run])
            dearest = db.execute("SELECT role, model, max(cost) FROM ledger WHERE cost > 0 GROUP BY role, model")
            return dict(spent), {(role, model): cost for role, model, cost in dearest}

        return self.file.do(sums, durable=False)

    def totals(self) -> list[Total]:
        """Sums of this run by role and model."""
        return [Total(*row) for row in self._read(_TOTALS, self._run)]

    def forget(self, images: Collection[str]) -> list[str]:
        """Delete what was answered about these pictures, so that no page of the file holds it; the money stays.

        Returns:
            The providers that were sent one, once per answer.
        """
        if not images or not self.file.path.exists():
            return []

        def delete(db: sqlite3.Connection) -> list[str]:
            db.execute("PRAGMA secure_delete = ON")
            requests = db.execute("SELECT key, request FROM answers").fetchall()
            found = {key: json.loads(request) for key, request in requests if _names(request, images)}
            for key in found:
                db.execute("DELETE FROM answers WHERE key = ?", [key])
                db.execute("UPDATE ledger SET message = NULL WHERE key = ?", [key])
            # What a batch still answers about them finds nobody who asked.
            waiting = db.execute("SELECT key, request FROM batched").fetchall()
            lost = {key: json.loads(request) for key, request in waiting if _names(request, images)}
            for key in lost:
                db.execute("DELETE FROM batched WHERE key = ?", [key])
            found |= lost
            return sorted(request["provider"] for request in found.values())

        providers = self.file.do(delete)
        # Also when nothing was found: a run that was killed here has yet to do it.
        self.file.shrink()
        return providers

    def count(self, images: Collection[str]) -> int:
        """How many answers are about these pictures. Reads beside a writer, and makes no file."""
        if not self.file.path.exists():
            return 0
        with usable(self.file.path), closing(sqlite3.connect(self.file.path)) as reader:
            requests = reader.execute("SELECT request FROM answers")
            return sum(_names(request, images) for (request,) in requests)

    def blobs(self) -> set[str]:
        """Every sha256 that answers name: more than their blobs, never less. Makes no file."""
        rows = _read(self.file.path, "SELECT raw FROM answers WHERE raw IS NOT NULL")
        return {digest for (raw,) in rows for digest in re.findall("[0-9a-f]{64}", raw)}

    def spent(self, after: int = 0) -> list[Spent]:
        """This run's answers by role and model, behind the row `after`. Reads beside a writer, and makes no file."""
        return [Spent(*row) for row in self._read(_SPENT, self._run, after)]

    def last(self) -> int:
        """The last row's id, 0 without one. Makes no file."""
        return max((id_ for (id_,) in self._read("SELECT coalesce(max(id), 0) FROM ledger")), default=0)

    def close(self) -> None:
        """Free the file; the next use opens it again."""
        self.file.close()

    def _read(self, sql: str, *values: str | int) -> list[Any]:
        self.file.settle()
        return _read(self.file.path, sql, *values)


def insert(
    db: sqlite3.Connection, run: str, key: str, request: Request, *, attempt: int, batch: str | None = None
) -> int:
    """A row for an attempt that is about to be sent; returns its id."""
    values = [run, key, request.role, request.provider, request.model, attempt, CallOutcome.UNKNOWN, batch, now()]
    columns = "run, key, role, provider, model, attempt, outcome, batch, at, cached"
    return db.execute(f"INSERT INTO ledger ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)", values).lastrowid or 0


def close_answered(
    db: sqlite3.Connection, row: int, key: str, request: Request, reply: Reply, *, latency_s: float | None
) -> None:
    """Store the raw answer and close its row."""
    sql = (
        "UPDATE ledger SET outcome = ?, latency_s = ?, tokens_in = ?, tokens_out = ?, images = ?, cost = ?,"
        " price_date = ? WHERE id = ?"
    )
    db.execute(sql, [CallOutcome.ANSWERED, latency_s, *astuple(reply)[1:], row])
    _keep(db, key, request, reply.raw, "", "")


def close_failed(
    db: sqlite3.Connection, row: int, key: str, request: Request, error: ProviderError, *, latency_s: float | None
) -> None:
    """Close a row with an error; a permanent one is also stored, as what the request came to."""
    outcome = CallOutcome.FATAL if isinstance(error, FatalError) else CallOutcome.TRANSIENT
    outcome = CallOutcome.PERMANENT if isinstance(error, PermanentError) else outcome
    message = clean(str(error))
    db.execute(
        "UPDATE ledger SET outcome = ?, latency_s = ?, message = ? WHERE id = ?", [outcome, latency_s, message, row]
    )
    if isinstance(error, PermanentError):
        _keep(db, key, request, None, error.kind, message)


def _keep(db: sqlite3.Connection, key: str, request: Request, raw: str | None, *error: str) -> None:
    sql = "INSERT OR REPLACE INTO answers (key, request, raw, kind, message, at) VALUES (?, ?, ?, ?, ?, ?)"
    db.execute(sql, [key, canonical(request.plain()).decode(), raw, *error, now()])


def _read(path: Path, sql: str, *values: str | int) -> list[Any]:
    """The rows of a query beside a writer; none where there is no file."""
    if not path.exists():
        return []
    with usable(path), closing(sqlite3.connect(path)) as reader:
        return reader.execute(sql, values).fetchall()
