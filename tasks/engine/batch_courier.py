"""Sends batches, looks how they are, and settles what comes back."""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from schemas.routes import CallSettings
from tasks.engine.batch_book import Book
from tasks.engine.batch_file import Batch, BatchState, Member, Settled
from tasks.engine.batch_service import Seen, Service
from tasks.engine.errors import FatalError, PermanentError, ProviderError, StoppedError, TransientError
from tasks.engine.ledger import Reply, clean
from tasks.engine.store import disk

T = TypeVar("T")
# Answers that are stored in one transaction.
_TOGETHER: Final = 200
# Seconds a provider has to end what was cancelled.
GRACE_S: Final = 1800.0
_AGAIN: Final = "run again later: stored answers are kept, and a batch that was sent is not sent again"


class Courier:
    """One at a time.

    Args:
        book: Who waits.
        settings: How often is tried, and how long waited.
        sleep: Waits so many seconds, or less if a stop comes.
        stop: Keeps a fatal error of a service, so that nothing more is sent to anybody, and gives it in words.
    """

    def __init__(
        self,
        book: Book,
        settings: CallSettings,
        sleep: Callable[[float], object],
        stop: Callable[[str, FatalError], StoppedError],
    ) -> None:
        # Who sets nothing still learns on stderr what a process waits for.
        self.tell: Callable[[str], None] = logging.getLogger("fedbench.batches").warning
        self.book, self._settings, self._sleep, self._stop = book, settings, sleep, stop

    # -- sending ------------------------------------------------------------------------------------------------

    def send(self, service: Service, path: Path, members: Sequence[Member]) -> None:
        """Write a batch down, send it, write its id down. The file is deleted, whatever comes of it.

        Raises:
            StoppedError: The provider did not take it, or it is not known whether it did.
        """
        book, size = self.book, path.stat().st_size
        batch = Batch(
            path.stem, book.rows.run, service.name, None, BatchState.SENDING, len(members), time.time(), "being sent"
        )
        book.rows.begin(batch, members)
        book.keep(batch)
        try:
            try:
                file = self._tried(partial(service.upload, path))
            except ProviderError as error:
                raise self._refused(batch, error) from None
            id_ = self._created(batch, service, file)
        finally:
            path.unlink()
        self._sent(batch, id_)
        self.tell(f"{service.name}: batch {batch.name} is sent, {len(members):,} requests, {size / 1e6:.1f} MB")

    def find(self, batch: Batch, service: Service) -> None:
        """A batch whose sender ended before it knew its id: is it there?"""
        try:
            id_ = self._tried(partial(service.find, batch.name))
        except PermanentError:  # a provider that does not list them
            id_ = None
        except ProviderError as error:
            raise self._stopped(batch, error) from None
        if id_:
            self._sent(batch, id_)
            return
        self.tell(f"{batch.service}: batch {batch.name} is not found; its {batch.requests:,} calls stay unknown")
        self.book.end(batch, BatchState.LOST, "not found at the provider")

    def _sent(self, batch: Batch, id_: str) -> None:
        self.book.rows.sent(batch.name, id_)
        self.book.keep(replace(batch, id=id_, state=BatchState.SENT))

    def _created(self, batch: Batch, service: Service, file: str) -> str:
        """The id of a batch that is begun once, even where the word that it was gets lost."""
        tried = 0
        while True:
            try:
                return service.create(file, batch.name)
            except TransientError as error:
                tried += 1
                self._back_off(tried, error)
                unknown = f"{batch.service}: {clean(str(error))}; whether batch {batch.name} began is not known"
                try:
                    found = service.find(batch.name)
                except ProviderError:
                    raise StoppedError(unknown, "run again: it is looked for by its name") from None
                if found:
                    return found
                if tried >= self._settings.attempts:
                    raise StoppedError(unknown, "run again: it is looked for by its name") from None
            except ProviderError as error:
                self._delete(service, (file,))
                raise self._refused(batch, error) from None

    def _refused(self, batch: Batch, error: ProviderError) -> StoppedError:
        """Close a batch that never began: nothing of it is billed, and a later run sends its requests anew."""
        words = clean(str(error))
        fatal = FatalError(f"batch {batch.name} is not taken: {words}", getattr(error, "hint", "") or _NO_BATCHES)
        self.book.settle(batch, [(member, fatal) for member in self.book.rows.members(batch.name).values()])
        self.book.end(batch, BatchState.REFUSED, words)
        return self._stop(batch.service, fatal)

    def _stopped(self, batch: Batch, error: ProviderError) -> StoppedError:
        hint = error.hint if isinstance(error, FatalError) else _AGAIN
        return self._stop(batch.service, FatalError(f"batch {batch.name}: {clean(str(error))}", hint))

    def _tried(self, call: Callable[[], T]) -> T:
        """What a call gives; tried again while that may help."""
        for tried in range(1, self._settings.attempts):
            try:
                return call()
            except TransientError as error:
                self._back_off(tried, error)
        return call()

    def _back_off(self, tried: int, error: TransientError) -> None:
        wait = min(self._settings.max_backoff_s, self._settings.backoff_s * 2.0 ** (tried - 1))
        self._sleep(max(wait, error.retry_after or 0.0))

    # -- looking ------------------------------------------------------------------------------------------------

    def collect(self, batch: Batch, service: Service, folder: Path) -> str:
        """Settle a batch if it has ended; else how it is, in words.

        Raises:
            StoppedError: It never began, cannot be reached, is gone, or does not end.
        """
        assert batch.id is not None, "it was sent"
        late = time.time() - batch.sent - self._settings.batches.deadline_h * 3600
        try:
            seen = self._tried(partial(service.look, batch.id))
            if late > 0 and not (seen.ended or seen.failed or seen.gone):
                with suppress(PermanentError):  # it has ended meanwhile: the next look tells
                    self._tried(partial(service.cancel, batch.id))
        except ProviderError as error:
            raise self._stopped(batch, error) from None
        if seen.gone:
            return self._gone(batch, late)
        if seen.failed:
            self._delete(service, seen.files)
            raise self._refused(batch, FatalError(f"it failed: {seen.message or seen.word}"))
        if seen.ended:
            self._settle(batch, service, seen, folder)
            return ""
        words = progress(batch, seen, time.time())
        if late > GRACE_S:
            words = f"{batch.service}: batch {batch.name} was cancelled and has not ended: {seen.word}"
            raise StoppedError(words, _AGAIN)
        self.book.rows.tell(batch.name, f"{seen.word}, {seen.answered:,} of {seen.total or batch.requests:,} answered")
        return words

    def _gone(self, batch: Batch, late: float) -> str:
        if late <= 0:
            words = f"{batch.service} does not know batch {batch.name} (its id: {batch.id})"
            hint = "is it the account that sent it? When calls.batches.deadline_h is over, its requests are sent anew"
            raise StoppedError(words, hint)
        self.book.end(batch, BatchState.LOST, "the provider does not know it")
        return ""

    # -- settling -----------------------------------------------------------------------------------------------

    def _settle(self, batch: Batch, service: Service, seen: Seen, folder: Path) -> None:
        members, known = self.book.rows.members(batch.name), self.book.rows.keys(batch.name)
        path = folder / f"{batch.name}-results.jsonl"
        counts: Counter[str] = Counter()
        fatal: FatalError | None = None
        settled: list[Settled] = []
        try:
            with disk(folder):
                folder.mkdir(parents=True, exist_ok=True)
                self._tried(partial(service.fetch, seen, path))
            for key, line in _lines(path):
                member = members.pop(key, None)
                if member is None:
                    counts["not asked for"] += key not in known
                    continue
                outcome = _outcome(service, member, line)
                fatal = outcome if isinstance(outcome, FatalError) else fatal
                counts["answered" if isinstance(outcome, Reply) else "with an error"] += 1
                settled.append((member, outcome))
                if len(settled) == _TOGETHER:
                    self.book.settle(batch, settled)
                    settled = []
        except PermanentError as error:  # its answers are deleted: paid, and never seen
            self.tell(f"{batch.service}: the answers of batch {batch.name} are gone: {clean(str(error))}")
            self.book.end(batch, BatchState.LOST, "its answers are gone")
            return
        except ProviderError as error:
            raise self._stopped(batch, error) from None
        finally:
            path.unlink(missing_ok=True)
        missing = TransientError(f"batch {batch.name} ended ({seen.word}) without an answer to it")
        self.book.settle(batch, [*settled, *((member, missing) for member in members.values())])
        counts["missing"] = len(members)
        told = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        self.book.end(batch, BatchState.DONE, f"{seen.word}: {told}")
        self.tell(f"{batch.service}: batch {batch.name} is {seen.word}: {told}")
        self._delete(service, seen.files)
        if fatal:
            raise self._stop(batch.service, fatal)

    def _delete(self, service: Service, files: Sequence[str]) -> None:
        """Files with faces do not stay at a provider longer than they must."""
        for file in files:
            try:
                self._tried(partial(service.delete, file))
            except ProviderError as error:
                self.tell(f"{service.name}: file {file} could not be deleted there: {clean(str(error))}")


_NO_BATCHES: Final = "unset `batch` of its routes to ask one by one, or run again later"


def _outcome(service: Service, member: Member, line: dict[str, Any]) -> Reply | ProviderError:
    try:
        return service.reply(member.request, line)
    except ProviderError as error:
        return error


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines of a file of results that can be read, by the key they answer. A cut one answers nothing."""
    with path.open("rb") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield str(line.get("custom_id")), line


def progress(batch: Batch, seen: Seen, now: float) -> str:
    """How far a batch is, and when it may be done, going on as it did so far."""
    done, total, age = seen.answered + seen.troubled, seen.total or batch.requests, max(0.0, now - batch.sent)
    words = f"{batch.service}: batch {batch.name}: {seen.word}, {done:,} of {total:,} after {_span(age)}"
    if seen.troubled:
        words += f", {seen.troubled:,} with an error"
    return f"{words}, about {_span(age * (total - done) / done)} left" if 0 < done < total else words


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
