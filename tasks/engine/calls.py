"""The one door for every paid or outside call: key → stored answer → limiter → budget → send → ledger.

It knows no provider: an adapter hands over a `send` function. Each attempt is a ledger row, written before sending as
`unknown` and overwritten by what became of it; a kill in between leaves it so, and the request is asked again.
"""

import fcntl
import math
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, astuple, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from schemas.outcomes import FailureKind
from tasks.engine.errors import FatalError, ItemFailed, PermanentError, StoppedError, TransientError, WorkspaceError
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
# Dollars. Sums of floats: a call that fits the budget to the cent must not fail on the last bit.
_EPSILON: Final = 1e-9


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

    def close(self) -> None:
        """Free the file; the next use opens it again."""
        with self._lock:
            self._db = None
            self._resources.close()


class ProviderLimit(BaseModel):
    """How fast one provider may be asked: calls at once (1 or more), and calls a minute (None: no limit)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    concurrency: int = Field(default=16, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)


class Limiter:
    """A provider's queue: so many calls at once, so many a minute. Who comes too early waits; nobody is turned away.

    `window`, the calls allowed at once, is halved when the provider is overloaded, and grows by one, up to the limit,
    after as many successes in a row as it is wide.
    """

    def __init__(self, limit: ProviderLimit, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self.window = limit.concurrency
        self._limit, self._clock, self._sleep = limit, clock, sleep
        self._interval = 60 / limit.requests_per_minute if limit.requests_per_minute else 0.0
        self._changed = threading.Condition()
        self._active = self._streak = self._epoch = 0
        self._next = self._paused_until = -math.inf

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn and hold it. A `TransientError` that passes through slows the whole provider down."""
        with self._changed:
            while self._active >= self.window:
                self._changed.wait()
            self._active += 1
            epoch, reached = self._epoch, self._clock()
            turn = max(reached, self._next)
            self._next = turn + self._interval
        try:
            # Another call may lengthen the pause while this one sleeps, hence the loop.
            while (due := max(turn, self._paused_until)) > reached:
                self._sleep(due - reached)
                reached = due
            yield
        except TransientError as error:
            with self._changed:
                self._streak = 0
                if error.retry_after is not None:
                    self._paused_until = max(self._paused_until, self._clock() + error.retry_after)
                # One overload answers every call in flight with 429: together they count once.
                if error.overload and epoch == self._epoch:
                    self.window = max(1, self.window // 2)
                    self._epoch += 1
            raise
        else:
            with self._changed:
                self._streak += 1
                if self._streak >= self.window:
                    self.window, self._streak = min(self._limit.concurrency, self.window + 1), 0
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()


class CallSettings(BaseModel):
    """How calls are made; nothing here changes an answer.

    Attributes:
        run: What budgets and totals are summed over. A resumed run keeps its name, so its spending is not forgotten.
        refresh: Ask again, once, what an earlier session was finally refused. Answers stay answers.
        attempts: Tries of one call, the first included (1 or more).
        backoff_s: Seconds before the second try; doubles with each, jittered to 50–100 %.
        max_backoff_s: Where the doubling ends, in seconds.
        limits: By provider; `ProviderLimit()` where absent.
        budget: Dollars for the run (None: no limit).
        role_budgets: Dollars by role, within `budget`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    run: str = ""
    refresh: bool = False
    attempts: int = Field(default=6, ge=1)
    backoff_s: float = Field(default=0.5, ge=0)
    max_backoff_s: float = Field(default=60, ge=0)
    limits: dict[str, ProviderLimit] = {}
    budget: float | None = Field(default=None, ge=0)
    role_budgets: dict[str, float] = {}


class Calls:
    """Asks, remembers and accounts. Thread-safe; one object per file, in one coordinator process.

    Args:
        path: The SQLite file of answers and ledger; it appears with the first call.
        settings: Limits, retries, budgets.
        clock: Seconds, monotonic.
        sleep: Waits so many seconds.
        uniform: A number in 0..1 (jitter).
    """

    def __init__(
        self,
        path: Path,
        settings: CallSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self._clock, self._sleep, self._uniform = clock, sleep, uniform
        self._ledger = Ledger(path, settings.run)
        # Guards all below; notified whenever a call comes back.
        self._changed = threading.Condition()
        self._asking: dict[str, Future[None]] = {}
        self._limiters: dict[str, Limiter] = {}
        self._stop: StoppedError | None = None
        self._final: set[str] = set()
        # Dollars: by role; forecasts of what is in flight, with their role; by role and model.
        self._spent: dict[str, float] | None = None
        self._in_flight: list[tuple[str, float]] = []
        self._dearest: dict[tuple[str, str], float] = {}

    def ask(self, request: Request, send: Callable[[], Reply], *, estimate: float = 0.0) -> str:
        """The raw answer to a request: the stored one, or a new one, sent once however many threads ask.

        Args:
            request: What is asked.
            send: Asks the provider once, in this thread; returns, or raises one of the three `ProviderError`s. Any
                other exception passes through and leaves the attempt `unknown`, for it may have been paid.
            estimate: Dollars the call may cost; the dearest call of its role and model so far counts if higher.
                Without one, the calls sent before a model's first answer are forecast as free.

        Raises:
            ItemFailed: `REFUSED` or `PROVIDER` for good (stored), or `PROVIDER` after the last try (retryable).
            StoppedError: A budget would be passed, or a provider answered fatally: the request was not sent.
            WorkspaceError: The answer store cannot be used, or another process writes it.
        """
        key = request.key()
        with self._changed:
            asked = self._asking.get(key)
            if asked is None:
                mine = self._asking[key] = Future()
        if asked is not None:
            asked.result()
            return self.ask(request, send, estimate=estimate)
        try:
            raw = self._replay(key, request)
            if raw is None:
                raw = self._send(key, request, send, estimate)
        except BaseException as error:
            del self._asking[key]
            mine.set_exception(error)
            raise
        del self._asking[key]
        mine.set_result(None)
        return raw

    def totals(self) -> list[Total]:
        """The run's sums by role and model, earlier sessions included. Also works beside a process that calls."""
        return self._ledger.totals()

    def close(self) -> None:
        """Free the file; a later call opens it again."""
        self._ledger.close()

    def _replay(self, key: str, request: Request) -> str | None:
        """The stored answer, or None where the request must be sent; raises the stored error."""
        stored = self._ledger.stored(key)
        if stored is None:
            return None
        raw, kind, message = stored
        if raw is not None:
            self._ledger.cached(key, request, CallOutcome.ANSWERED)
            return raw
        if self.settings.refresh and key not in self._final:
            return None
        self._ledger.cached(key, request, CallOutcome.PERMANENT)
        raise ItemFailed(FailureKind(kind), message)

    def _send(self, key: str, request: Request, send: Callable[[], Reply], estimate: float) -> str:
        """Try until there is an answer or a final error."""
        limit = self.settings.limits.get(request.provider, ProviderLimit())
        with self._changed:
            limiter = self._limiters.setdefault(request.provider, Limiter(limit, self._clock, self._sleep))
        attempt = 1
        while True:
            try:
                with limiter.turn(), self._reserve(request, estimate):
                    return self._attempt(key, request, attempt, send)
            except TransientError as error:
                if attempt >= self.settings.attempts:
                    message = f"{clean(str(error))} ({attempt} attempts)"
                    raise ItemFailed(FailureKind.PROVIDER, message, retryable=True) from None
                wait = min(self.settings.max_backoff_s, self.settings.backoff_s * 2.0 ** (attempt - 1))
                wait *= 0.5 + self._uniform() / 2
                # A longer `retry_after` is sat out in the limiter, by all calls to this provider.
                if wait > (error.retry_after or 0.0):
                    self._sleep(wait)
                attempt += 1

    def _attempt(self, key: str, request: Request, attempt: int, send: Callable[[], Reply]) -> str:
        """Send once: intent before, answer or error after."""
        row = self._ledger.begin(key, request, attempt)
        began = self._clock()
        try:
            reply = send()
        except (TransientError, PermanentError, FatalError) as error:
            if isinstance(error, FatalError):
                self._stop = StoppedError(f"{request.provider}: {clean(str(error))}", clean(error.hint))
            self._ledger.failed(row, key, request, error, self._clock() - began)
            if isinstance(error, FatalError):
                raise self._stop from None
            if isinstance(error, PermanentError):
                self._final.add(key)
                raise ItemFailed(error.kind, clean(str(error))) from None
            raise
        self._ledger.answered(row, key, request, reply, self._clock() - began)
        if reply.cost is not None:
            with self._changed:
                spent, model = self._costs(), (request.role, request.model)
                spent[request.role] = spent.get(request.role, 0.0) + reply.cost
                self._dearest[model] = max(reply.cost, self._dearest.get(model, 0.0))
        return reply.raw

    def _costs(self) -> dict[str, float]:
        """What the run has spent by role, read from the ledger once."""
        if self._spent is None:
            self._spent, self._dearest = self._ledger.costs()
        return self._spent

    @contextmanager
    def _reserve(self, request: Request, estimate: float) -> Iterator[None]:
        """Set the forecast aside while the call is in flight.

        Raises:
            StoppedError: A budget cannot hold it, or a provider answered fatally.
        """
        with self._changed:
            while True:
                if self._stop:
                    raise self._stop
                self._costs()
                forecast = max(estimate, self._dearest.get((request.role, request.model), 0.0))
                if self._fits(request.role, forecast):
                    break
                self._changed.wait()
            entry = (request.role, forecast)
            self._in_flight.append(entry)
        try:
            yield
        finally:
            with self._changed:
                self._in_flight.remove(entry)
                self._changed.notify_all()

    def _fits(self, role: str, forecast: float) -> bool:
        """Whether the budgets hold one more call; False where that depends on what is in flight."""
        spent = self._costs()
        run = ("budget", self.settings.budget, sum(spent.values()), sum(cost for _, cost in self._in_flight))
        in_flight = sum(cost for each, cost in self._in_flight if each == role)
        own = (f"role_budgets.{role}", self.settings.role_budgets.get(role), spent.get(role, 0.0), in_flight)
        fits = True
        for name, budget, paid, reserved in (run, own):
            if budget is None:
                continue
            room = budget - paid - forecast + _EPSILON
            if room < 0:
                unpriced = sum(total.unpriced for total in self.totals())
                raise StoppedError(
                    f"{name}: ${paid:.4f} of ${budget:.4f} is spent, and the next {role} call may cost ${forecast:.4f}"
                    f" ({unpriced} answers of unknown price are not counted)",
                    f"raise {name} and run again; stored answers are not paid twice",
                )
            fits &= room >= reserved
        return fits
