"""Who waits for which batch, in memory and in the file of answers and ledger."""

import threading
from collections.abc import Sequence

from tasks.engine.batch_file import Batch, BatchRows, BatchState, Member, Settled
from tasks.engine.budget import Budget
from tasks.engine.errors import PermanentError
from tasks.engine.ledger import Reply, Request, clean


class Book:
    """Thread-safe, but for what says that it wants `lock` held.

    Attributes:
        lock: Guards who waits.
        open: Batches that are not settled, by name; those of other runs and earlier processes among them.
        waiting: Keys that are collected or in a batch.
        missed: Keys that a batch left without an answer, and why.
        fresh: Keys that a batch of this process answered and nobody has used yet.
        final: Keys whose error is for good.
    """

    def __init__(self, rows: BatchRows, budget: Budget) -> None:
        self.rows, self._budget = rows, budget
        self.lock = threading.RLock()
        self.open: dict[str, Batch] = {}
        self.waiting: set[str] = set()
        self.missed: dict[str, str] = {}
        self.fresh: set[str] = set()
        self.final: set[str] = set()
        self._found: set[str] = set()  # batches that an earlier process sent

    def load(self) -> None:
        """Take up what earlier processes left open."""
        for batch in self.rows.open():
            self.open[batch.name] = batch
            self._found.add(batch.name)
            for key, member in self.rows.members(batch.name).items():
                self.waiting.add(key)
                if batch.run == self.rows.run:
                    self._budget.hold(member.request.role, member.forecast)

    def take(self, key: str, request: Request, estimate: float) -> Member | None:
        """Let a request wait, its money set aside; None where that depends on what is in flight. Wants `lock`.

        Raises:
            StoppedError: A budget cannot hold it.
        """
        forecast = self._budget.take(request, estimate)
        if forecast is None:
            return None
        self.waiting.add(key)
        return Member(key, request, forecast)

    def is_fresh(self, key: str) -> bool:
        """Whether this is the first use of what a batch brought: that is no stored answer used again.

        What an earlier process sent counts as stored: who looks only at the ledger's rows since then misses no use.
        """
        with self.lock:
            fresh = key in self.fresh
            self.fresh.discard(key)
            return fresh

    def drop(self, member: Member) -> None:
        """It waits no more; nothing was sent."""
        with self.lock:
            self.waiting.discard(member.key)
        self._budget.free(member.request.role, member.forecast)

    def keep(self, batch: Batch) -> None:
        """Note how a batch is now."""
        with self.lock:
            self.open[batch.name] = batch

    def settle(self, batch: Batch, settled: Sequence[Settled]) -> None:
        """Store what came of requests, and let those who wait know."""
        self.rows.settle(batch.name, settled)
        mine, sent_here = batch.run == self.rows.run, batch.name not in self._found
        for member, outcome in settled:
            if mine:
                self._budget.free(member.request.role, member.forecast)
            with self.lock:
                self.waiting.discard(member.key)
                if not isinstance(outcome, Reply | PermanentError):
                    self.missed[member.key] = clean(str(outcome))
                elif sent_here:
                    self.fresh.add(member.key)
                if isinstance(outcome, PermanentError):
                    self.final.add(member.key)
            if mine and isinstance(outcome, Reply):
                self._budget.paid(member.request, outcome.cost)

    def end(self, batch: Batch, state: BatchState, words: str) -> None:
        """Nothing more comes of a batch: what is not settled is unknown, and asked again."""
        for member in self.rows.members(batch.name).values():
            with self.lock:
                self.waiting.discard(member.key)
            if batch.run == self.rows.run:
                self._budget.free(member.request.role, member.forecast)
        self.rows.end(batch.name, state, words)
        with self.lock:
            self.open.pop(batch.name)
