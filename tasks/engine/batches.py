"""Requests that are asked in batches: collected while jobs run, sent together, settled one by one.

A request that waits for a batch raises `Postponed`; when its batch is settled the job runs again and finds the answer
stored. A batch and all its requests are written down before it is sent, so a later process polls it and sends nothing.
"""

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from schemas.outcomes import FailureKind
from schemas.routes import CallSettings
from tasks.engine.batch_courier import Courier
from tasks.engine.batch_file import Batch, BatchState, Member
from tasks.engine.batch_service import Offer, Service
from tasks.engine.errors import BatchesWaiting, ItemFailed, StoppedError
from tasks.engine.ledger import Request
from tasks.engine.store import disk

# Seconds between two words about a batch: it may take a day.
_TELL_S: Final = 300.0


@dataclass
class _Paper:
    """A file of requests that is being written."""

    service: Service
    path: Path
    file: BinaryIO
    members: list[Member] = field(default_factory=list)
    size: int = 0


class Batches:
    """Thread-safe.

    Args:
        folder: For files on their way. They hold faces, and are deleted once they are sent or read.
        courier: Who sends and settles.
        settings: How.
        sleep: Waits so many seconds, or less if a stop comes.
        check_stop: Raises where nothing is to be sent any more.
    """

    def __init__(
        self,
        folder: Path,
        courier: Courier,
        settings: CallSettings,
        sleep: Callable[[float], object],
        check_stop: Callable[[], None],
    ) -> None:
        self._folder, self._courier, self._settings = folder, courier, settings.batches
        self._book = courier.book
        self._sleep, self._check_stop = sleep, check_stop
        self._finishing = threading.Lock()
        # One line at a time: a picture that is being encoded takes several times its size.
        self._encoding = threading.Lock()
        # Guarded by the book's lock.
        self._loaded = self._due = False
        self._services: dict[str, Service] = {}
        self._papers: list[_Paper] = []

    def postpones(self, key: str, request: Request, offer: Offer | None) -> bool:
        """Whether a request without a stored answer waits for a batch: one that has it, or one that now takes it.

        Raises:
            ItemFailed: `PROVIDER`, retryable: a batch left it without an answer, and it is not to be asked singly.
            StoppedError: A budget cannot hold it.
        """
        book = self._book
        with book.lock:
            self._load()
            if offer:
                self._services.setdefault(offer.service.name, offer.service)
            if key in book.waiting:
                self._due = True
                return True
            if offer is None or not offer.wanted:
                return False
            if key in book.missed:
                if self._settings.missing == "fail":
                    raise ItemFailed(FailureKind.PROVIDER, book.missed[key], retryable=True)
                return False
            self._check_stop()
            self._due = True
            member = book.take(key, request, offer.estimate)
        if member is None:  # it may fit when the batches in flight are paid
            return True
        try:
            with self._encoding:
                self._write(offer.service, offer.line(), member)
        except BaseException:
            book.drop(member)
            raise
        return True

    def finish(self) -> bool:
        """Send what is collected and wait till all is settled; False where nothing was postponed.

        Raises:
            BatchesWaiting: It is not, and `batches.wait` says that nobody waits.
            StoppedError: A provider takes no batches, answers fatally or cannot be reached.
        """
        with self._finishing:
            with self._book.lock:
                due, self._due = self._due, False
                papers, self._papers = self._papers, []
            if not due:
                return False
            began = self._mine()
            for batch in began:
                if batch.state == BatchState.SENDING:
                    self._courier.find(batch, self._services[batch.service])
            for paper in papers:
                paper.file.close()
                self._check_stop()
                with disk(self._folder):
                    self._courier.send(paper.service, paper.path, paper.members)
            if not began and not papers:
                self._check_held()
            self._wait()
            return True

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            self._book.load()
            with disk(self._folder):
                for left in self._folder.glob("*.jsonl"):  # of a process that was killed
                    left.unlink()

    def _mine(self) -> list[Batch]:
        """Open batches of services that are asked here."""
        with self._book.lock:
            return [batch for batch in self._book.open.values() if batch.service in self._services]

    def _write(self, service: Service, line: bytes, member: Member) -> None:
        """Add a line to its service's file; a full one is closed."""
        with self._book.lock, disk(self._folder):
            for paper in self._papers:
                fits = len(paper.members) < self._settings.max_requests
                if (
                    paper.service.name == service.name
                    and fits
                    and paper.size + len(line) <= self._settings.max_mb * 1e6
                ):
                    break
            else:
                self._folder.mkdir(parents=True, exist_ok=True)
                path = self._folder / f"fb-{secrets.token_hex(8)}.jsonl"
                paper = _Paper(service, path, path.open("wb"))
                self._papers.append(paper)
            paper.file.write(line)
            paper.size += len(line)
            paper.members.append(member)

    def _check_held(self) -> None:
        """Nothing was sent, nothing is in flight, yet something waits: is the budget held by batches of others?"""
        with self._book.lock:
            others = sorted({batch.service for batch in self._book.open.values()})
        if others:
            raise StoppedError(
                f"the budget is held by batches in flight at {', '.join(others)}, whom nobody asks here",
                "raise it, or ask them as before till their batches are answered",
            )

    def _wait(self) -> None:
        """Look at the batches in turn till all are settled."""
        told: dict[str, float] = {}
        while True:
            for batch in self._mine():
                self._check_stop()
                words = self._courier.collect(batch, self._services[batch.service], self._folder)
                if words and time.monotonic() >= told.get(batch.name, 0.0):
                    told[batch.name] = time.monotonic() + _TELL_S
                    self._courier.tell(words)
            waiting = self._mine()
            if not waiting:
                return
            if not self._settings.wait:
                requests = sum(batch.requests for batch in waiting)
                raise BatchesWaiting(
                    f"{len(waiting)} batches with {requests:,} requests are in flight",
                    "run the same command again to collect them; `fedbench calls` shows them",
                )
            self._sleep(self._settings.poll_s)
