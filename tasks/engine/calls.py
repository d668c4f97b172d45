"""The one door for every paid or outside call: key → stored answer → limiter → budget → send → ledger.

It knows no provider: an adapter hands over a `send` function. Each attempt is a ledger row, written before sending as
`unknown` and overwritten by what became of it; a kill in between leaves it so, and the request is asked again.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import TypeVar

from schemas.outcomes import FailureKind
from schemas.routes import CallSettings, ProviderLimit
from tasks.engine.batch_book import Book
from tasks.engine.batch_courier import Courier
from tasks.engine.batch_file import BatchRows
from tasks.engine.batch_service import Offer
from tasks.engine.batches import Batches
from tasks.engine.blobs import Blobs
from tasks.engine.budget import Budget
from tasks.engine.errors import (
    ConfigError,
    FatalError,
    ItemFailed,
    NotSent,
    PermanentError,
    Postponed,
    StoppedError,
    TransientError,
)
from tasks.engine.ledger import CallOutcome, Ledger, Reply, Request, Spent, Total, clean
from tasks.engine.limiter import Limiter
from tasks.engine.pool import Pool, at_work

T = TypeVar("T")
Turn = Callable[[], AbstractContextManager[Callable[[int], None]]]


class _Later(Enum):
    LATER = auto()


class Calls:
    """Asks, remembers and accounts. Thread-safe; one object per file, in one coordinator process.

    Args:
        path: The SQLite file of answers and ledger; it appears with the first call.
        settings: Retries, budgets, how many at once.
        run: What budgets and totals are summed over. A resumed run keeps its name, so its spending is not forgotten.
        clock: Seconds, monotonic.
        sleep: Waits so many seconds; by default, less if a stop comes meanwhile.
        uniform: A number in 0..1 (jitter).

    Attributes:
        may_send: Whether a question without a stored answer may be sent.
        blobs: Pictures that answers name.
        postpones: Whether what waits for a batch raises `Postponed` even out of `gather`, so that a whole run's
            questions come together; whoever sets it calls `finish_batches`, and asks again.
    """

    def __init__(
        self,
        path: Path,
        settings: CallSettings,
        run: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self.may_send = True
        self.postpones = False
        self._halt = threading.Event()
        self._clock, self._sleep, self._uniform = clock, sleep or self._halt.wait, uniform
        self._ledger = Ledger(path, run)
        self.blobs = Blobs(path.parent)
        self._pool = Pool(settings.in_flight)
        self._budget = Budget(settings, self._ledger)
        self._book = Book(BatchRows(self._ledger.file, run), self._budget)
        self._courier = Courier(self._book, settings, self._sleep, self._stop_all)
        self._batches = Batches(path.parent / "batches", self._courier, settings, self._sleep, self._check_stop)
        self._lock = threading.Lock()  # guards all below
        self._asking: dict[str, Future[None]] = {}
        self._limiters: dict[str, Limiter] = {}
        self._stop: StoppedError | None = None

    def gather(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Run jobs that ask at once, at most `in_flight` of the whole process; their results, in order.

        A job runs in a thread of the pool: it must hold no model of its own (adapters are loaded once per thread),
        and a `gather` within it runs one by one. After an exception (`StoppedError`: a budget, a key) the jobs under
        way come to their end, the rest is not begun, and it is raised.
        """
        results = self._pool.gather([partial(_or_later, job) for job in jobs])
        while later := [place for place, result in enumerate(results) if isinstance(result, _Later)]:
            if self.postpones or at_work():
                raise Postponed(f"{len(later)} questions wait for batches")
            self._batches.finish()
            again = self._pool.gather([partial(_or_later, jobs[place]) for place in later])
            for place, result in zip(later, again, strict=True):
                results[place] = result
        return [result for result in results if not isinstance(result, _Later)]

    def finish_batches(self) -> bool:
        """Send the batches that are collected and wait till all are settled; False where no question waits for one.

        Raises:
            BatchesWaiting: They are not settled, and `batches.wait` says that nobody waits.
            StoppedError: A provider takes no batches, answers fatally or cannot be reached.
        """
        return self._batches.finish()

    def tell_of_batches(self, tell: Callable[[str], None]) -> None:
        """Have somebody told in words how batches go."""
        self._courier.tell = tell

    def ask(
        self,
        request: Request,
        send: Callable[[], Reply],
        *,
        limit: ProviderLimit | None = None,
        tokens: int = 0,
        estimate: float = 0.0,
        batch: Offer | None = None,
    ) -> str:
        """The raw answer to a request: the stored one, or a new one, sent once however many threads ask.

        Args:
            request: What is asked.
            send: Asks the provider once, in this thread; returns, or raises one of the three `ProviderError`s. Any
                other exception passes through and leaves the attempt `unknown`, for it may have been paid.
            limit: The provider's queue, the same for all that is asked of it.
            tokens: How many tokens it may take, in and out, for limits on tokens a minute.
            estimate: Dollars the call may cost; the dearest call of its role and model so far counts if higher.
                Without one, the calls sent before a model's first answer are forecast as free.
            batch: A way to ask it in a batch. Out of a `gather`, that is waited for here.

        Raises:
            Postponed: In a `gather`, or where all is postponed: it waits for a batch.
            ItemFailed: `REFUSED` or `PROVIDER` for good (stored), or `PROVIDER` after the last try (retryable).
            NotSent: It has no stored answer, and nothing may be sent.
            StoppedError: A budget would be passed, or a provider answered fatally: the request was not sent.
            ConfigError: The provider already has another limit.
            WorkspaceError: The answer store cannot be used, or another process writes it.
        """
        key = request.key()
        with self._lock:
            asked = self._asking.get(key)
            if asked is None:
                mine = self._asking[key] = Future()
        if asked is not None:
            asked.result()
            return self.ask(request, send, limit=limit, tokens=tokens, estimate=estimate, batch=batch)
        try:
            raw = self._replay(key, request)
            if raw is None:
                self._check_may_send(request)
                if self._batches.postpones(key, request, batch):
                    raise Postponed("a question waits for a batch")
                raw = self._send(key, request, send, self._turns(request.provider, limit, tokens), estimate)
        except BaseException as error:
            del self._asking[key]
            mine.set_exception(error)
            if isinstance(error, Postponed) and not self.postpones and not at_work():
                self._batches.finish()
                return self.ask(request, send, limit=limit, tokens=tokens, estimate=estimate, batch=batch)
            raise
        del self._asking[key]
        mine.set_result(None)
        return raw

    def recall(self, request: Request) -> str | None:
        """The stored answer, or None: nothing is sent, and a stored error is passed over."""
        key = request.key()
        stored = self._ledger.stored(key)
        if stored is None or stored[0] is None:
            return None
        if not self._book.is_fresh(key):
            self._ledger.cached(key, request, CallOutcome.ANSWERED)
        return stored[0]

    def totals(self) -> list[Total]:
        """The run's sums by role and model, earlier processes included. Also works beside a process that calls."""
        return self._ledger.totals()

    def spent(self, after: int = 0) -> list[Spent]:
        """The run's answers by role and model, behind a row of the ledger."""
        return self._ledger.spent(after)

    def last(self) -> int:
        """The ledger's last row."""
        return self._ledger.last()

    def close(self) -> None:
        """Free the file; a later call opens it again."""
        self._ledger.close()

    def _replay(self, key: str, request: Request) -> str | None:
        """The stored answer, or None where the request must be sent; raises the stored error."""
        stored = self._ledger.stored(key)
        if stored is None:
            return None
        raw, kind, message = stored
        fresh = self._book.is_fresh(key)
        if raw is not None:
            if not fresh:
                self._ledger.cached(key, request, CallOutcome.ANSWERED)
            return raw
        if self.settings.refresh and key not in self._book.final:
            return None
        if not fresh:
            self._ledger.cached(key, request, CallOutcome.PERMANENT)
        raise ItemFailed(FailureKind(kind), message)

    def _check_may_send(self, request: Request) -> None:
        if self.settings.replay_only or not self.may_send:
            raise NotSent(
                f"a {request.role} request to {request.provider} {request.model} has no stored answer",
                "calls.replay_only is set: unset it to ask, or bring the answers.sqlite that has it",
            )

    def _turns(self, provider: str, limit: ProviderLimit | None, tokens: int) -> Turn:
        """How to wait for a turn in the provider's queue."""
        limit = limit or ProviderLimit()
        with self._lock:
            limiter = self._limiters.setdefault(provider, Limiter(limit, self._clock, self._sleep))
        if limiter.limit != limit:
            raise ConfigError(
                f"two routes of provider '{provider}' have different limits", "give both the same `limit`"
            )
        return partial(limiter.turn, tokens)

    def _send(self, key: str, request: Request, send: Callable[[], Reply], turn: Turn, estimate: float) -> str:
        """Try until there is an answer or a final error."""
        attempt = 1
        while True:
            try:
                with turn() as correct, self._budget.reserve(request, estimate, self._check_stop):
                    reply = self._attempt(key, request, attempt, send)
                    if reply.tokens_in is not None and reply.tokens_out is not None:
                        correct(reply.tokens_in + reply.tokens_out)
                    return reply.raw
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

    def _attempt(self, key: str, request: Request, attempt: int, send: Callable[[], Reply]) -> Reply:
        """Send once: intent before, answer or error after."""
        row = self._ledger.begin(key, request, attempt)
        began = self._clock()
        try:
            reply = send()
        except (TransientError, PermanentError, FatalError) as error:
            if isinstance(error, FatalError):
                self._stop_all(request.provider, error)
            self._ledger.failed(row, key, request, error, self._clock() - began)
            if isinstance(error, PermanentError):
                self._book.final.add(key)
                raise ItemFailed(error.kind, clean(str(error))) from None
            if self._stop and isinstance(error, FatalError):
                raise self._stop from None
            raise
        self._ledger.answered(row, key, request, reply, self._clock() - began)
        self._budget.paid(request, reply.cost)
        return reply

    def _stop_all(self, who: str, error: FatalError) -> StoppedError:
        """Nothing more is sent by anybody."""
        self._stop = StoppedError(f"{who}: {clean(str(error))}", clean(error.hint))
        self._halt.set()
        return self._stop

    def _check_stop(self) -> None:
        if self._stop:
            raise self._stop


def _or_later(job: Callable[[], T]) -> T | _Later:
    try:
        return job()
    except Postponed:  # itself it would hold the job's pictures, by its traceback
        return _Later.LATER
