"""What was asked, answered and paid: one SQLite file of answers by key and a row per attempt."""

import fcntl
import json
import os
import re
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, astuple, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tasks.engine.errors import FatalError, PermanentError, TransientError, WorkspaceError
from tasks.engine.fingerprint import canonical, fingerprint
from tasks.engine.store import disk

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, request TEXT NOT NULL, raw TEXT, kind TEXT, message TEXT,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, run TEXT NOT NULL, key TEXT NOT NULL, role TEXT NOT NULL,
    provider TEXT NOT NULL, model TEXT NOT NULL, attempt INTEGER NOT NULL, outcome TEXT NOT NULL, message TEXT,
    tokens_in INTEGER, tokens_out INTEGER, images INTEGER, cost REAL, price_date TEXT, latency_s REAL,
    cached INTEGER NOT NULL, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
"""
_TOTALS: Final = """
SELECT role, model, sum(NOT cached), sum(cached), sum(NOT cached AND outcome NOT IN ('answered', 'unknown')),
    sum(outcome = 'unknown'), sum(NOT cached AND outcome = 'answered' AND cost IS NULL), total(cost),
    coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), coalesce(sum(images), 0)
FROM ledger WHERE run = ? GROUP BY role, model ORDER BY role, model
"""
_SECRETS: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD")


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
        return fingerprint("call", asdict(self))


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


def clean(message: str) -> str:
    """One line of at most 300 characters, with the values of secret environment variables blotted out."""
    secrets = {value for name, value in os.environ.items() if name.upper().endswith(_SECRETS) and value.strip()}
    # The longest first: one secret may hold another. Before trimming, lest half a secret stays.
    for secret in sorted(secrets, key=len, reverse=True):
        message = message.replace(secret, "***")
    return " ".join(message.split())[:300]


def _names(request: str, images: Collection[str]) -> bool:
    """Whether a stored request names one of these pictures, wherever in it."""
    return any(found in images for found in re.findall("[0-9a-f]{64}", request))


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Turn an error of SQLite or the disk into one line that names the file."""
    try:
        with disk(path):
            yield
    except sqlite3.Error as error:
        hint = "check the disk; if the file is damaged, bring back a copy: without it all answers are paid again"
        raise WorkspaceError(f"cannot use the answer store {path}: {error}", hint) from None


class Ledger:
    """The SQLite file: answers by key, and a row per attempt. Thread-safe; opened, and made, by the first use.

    Raises:
        WorkspaceError: On every method, for a file that cannot be used or that another process writes.
    """

    def __init__(self, path: Path, run: str) -> None:
        self._path, self._run = path, run
        self._lock = threading.Lock()
        self._resources = ExitStack()
        self._db: sqlite3.Connection | None = None

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Hold the connection; commit, or roll back on an exception. `durable` also survives a power cut."""
        with self._lock, _usable(self._path):
            if self._db is None:
                self._db = self._open()
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with self._db:
                yield self._db

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            # Two writers would pay twice. Not SQLite's own lock, which would shut out readers too.
            lock = stack.enter_context(self._path.with_name(f"{self._path.name}.lock").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WorkspaceError(f"the answer store {self._path} is in use", "wait for the other run") from None
            db = stack.enter_context(closing(sqlite3.connect(self._path, check_same_thread=False)))
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(_SCHEMA)
            self._resources = stack.pop_all()
        return db

    def stored(self, key: str) -> tuple[str | None, str, str] | None:
        """Raw answer, failure kind and message of a settled request; an error has no raw answer."""
        with self._transaction(durable=False) as db:
            row: tuple[str | None, str, str] | None = db.execute(
                "SELECT raw, kind, message FROM answers WHERE key = ?", [key]
            ).fetchone()
        return row

    def begin(self, key: str, request: Request, attempt: int) -> int:
        """Write an intent; returns its id."""
        with self._transaction() as db:
            return self._insert(db, key, request, attempt, CallOutcome.UNKNOWN)

    def cached(self, key: str, request: Request, outcome: CallOutcome) -> None:
        """Note that a stored answer or error was used."""
        with self._transaction(durable=False) as db:
            row = self._insert(db, key, request, 0, outcome)
            db.execute("UPDATE ledger SET cached = 1, cost = 0 WHERE id = ?", [row])

    def _insert(self, db: sqlite3.Connection, key: str, request: Request, attempt: int, outcome: CallOutcome) -> int:
        values = [self._run, key, request.role, request.provider, request.model, attempt, outcome]
        columns = "run, key, role, provider, model, attempt, outcome, cached"
        return db.execute(f"INSERT INTO ledger ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, 0)", values).lastrowid or 0

    def answered(self, row: int, key: str, request: Request, reply: Reply, latency_s: float) -> None:
        """Store the raw answer and close its row, in one transaction."""
        with self._transaction() as db:
            db.execute(
                "UPDATE ledger SET outcome = ?, latency_s = ?, tokens_in = ?, tokens_out = ?, images = ?, cost = ?,"
                " price_date = ? WHERE id = ?",
                [CallOutcome.ANSWERED, latency_s, *astuple(reply)[1:], row],
            )
            self._keep(db, key, request, reply.raw, "", "")

    def failed(
        self,
        row: int,
        key: str,
        request: Request,
        error: TransientError | PermanentError | FatalError,
        latency_s: float,
    ) -> None:
        """Close a row with an error; a permanent one is also stored, as what the request came to."""
        outcome = CallOutcome.FATAL if isinstance(error, FatalError) else CallOutcome.TRANSIENT
        outcome = CallOutcome.PERMANENT if isinstance(error, PermanentError) else outcome
        message = clean(str(error))
        with self._transaction() as db:
            sql = "UPDATE ledger SET outcome = ?, latency_s = ?, message = ? WHERE id = ?"
            db.execute(sql, [outcome, latency_s, message, row])
            if isinstance(error, PermanentError):
                self._keep(db, key, request, None, error.kind, message)

    def _keep(self, db: sqlite3.Connection, key: str, request: Request, raw: str | None, *error: str) -> None:
        sql = "INSERT OR REPLACE INTO answers (key, request, raw, kind, message) VALUES (?, ?, ?, ?, ?)"
        db.execute(sql, [key, canonical(asdict(request)).decode(), raw, *error])

    def costs(self) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """Dollars: spent by this run, by role; and the dearest call of any run, by role and model."""
        with self._transaction(durable=False) as db:
            spent = db.execute("SELECT role, total(cost) FROM ledger WHERE run = ? GROUP BY role", [self._run])
            dearest = db.execute("SELECT role, model, max(cost) FROM ledger WHERE cost > 0 GROUP BY role, model")
            return dict(spent), {(role, model): cost for role, model, cost in dearest}

    def totals(self) -> list[Total]:
        """Sums of this run by role and model. Reads beside a writer, and makes no file."""
        if not self._path.exists():
            return []
        with _usable(self._path), closing(sqlite3.connect(self._path)) as reader:
            return [Total(*row) for row in reader.execute(_TOTALS, [self._run])]

    def forget(self, images: Collection[str]) -> list[str]:
        """Delete what was answered about these pictures, so that no page of the file holds it; the money stays.

        Returns:
            The providers that were sent one, once per answer.
        """
        if not images or not self._path.exists():
            return []
        with self._transaction() as db:
            db.execute("PRAGMA secure_delete = ON")
            requests = db.execute("SELECT key, request FROM answers").fetchall()
            found = {key: json.loads(request) for key, request in requests if _names(request, images)}
            for key in found:
                db.execute("DELETE FROM answers WHERE key = ?", [key])
                db.execute("UPDATE ledger SET message = NULL WHERE key = ?", [key])
        # Also when nothing was found: a run that was killed here has yet to do it.
        with self._lock, _usable(self._path):
            assert self._db is not None, "it was used a moment ago"
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return sorted(request["provider"] for request in found.values())

    def count(self, images: Collection[str]) -> int:
        """How many answers are about these pictures. Reads beside a writer, and makes no file."""
        if not self._path.exists():
            return 0
        with _usable(self._path), closing(sqlite3.connect(self._path)) as reader:
            requests = reader.execute("SELECT request FROM answers")
            return sum(_names(request, images) for (request,) in requests)

    def close(self) -> None:
        """Free the file; the next use opens it again."""
        with self._lock:
            self._db = None
            self._resources.close()
