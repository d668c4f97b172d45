"""The SQLite file behind the ledger: one writing process, many threads, one flush for what came at once."""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from tasks.engine.answer_tables import make_tables
from tasks.engine.answer_version import check_version
from tasks.engine.disk import disk
from tasks.engine.errors import ContractError, WorkspaceError
from tasks.engine.folder_lock import if_free
from tasks.engine.journal import Journal, Recorder, catch_up, prepare
from tasks.engine.places import mirror_at

T = TypeVar("T")
_worker = threading.Event()  # set in processes that may not write the file
_NOTES: Final = 1000  # that wait at most, in a bucket


def leave_to_coordinator() -> None:
    """Make this process a worker: from now on it opens no answer file. What asks outside is not for it."""
    _worker.set()


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Turn an error of SQLite or the disk into one line that names the file."""
    try:
        with disk(path):
            yield
    except sqlite3.Error as error:
        hint = "check the disk; if the file is damaged, bring back a copy: without it all answers are paid again"
        raise WorkspaceError(f"cannot use the answer store {path}: {error}", hint) from None


class _Todo(Generic[T]):
    """Work for the file, and what came of it; guarded by the file's lock."""

    def __init__(self, work: Callable[[sqlite3.Connection], T], durable: bool, aside: bool) -> None:
        self.work, self.durable, self.aside = work, durable, aside
        self.done = False
        self.result: T | None = None
        self.error: BaseException | None = None


class AnswerFile:
    """The file. Thread-safe; opened, and made, by the first use.

    Raises:
        WorkspaceError: On every method, for a file that cannot be used or that another process writes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._todo: deque[_Todo[Any]] = deque()
        self._resources = ExitStack()
        self._db: sqlite3.Connection | None = None
        self._mirror = mirror_at(path.parent)
        self._journal: Journal | None = None

    def do(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True, aside: bool = False) -> T:
        """Do work on the file; done, it survives a kill, and if `durable` a power cut, too.

        Who comes while another commits waits, and the next of them commits the work of all: one flush for many.
        In a bucket, the commit is there when this returns, unless the work is a note `aside`: that goes with the next.
        """
        todo: _Todo[T] = _Todo(work, durable, aside)
        self._todo.append(todo)
        with self._lock:
            if not todo.done:
                self._commit([self._todo.popleft() for _ in range(len(self._todo))])
        if todo.error is not None:
            raise todo.error
        return cast(T, todo.result)

    def shrink(self) -> None:
        """Rewrite the file without what was deleted from it."""
        with self._lock, usable(self.path):
            db = self._opened()
            self._settle(db)
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if self._journal and isinstance(db, Recorder):
                self._journal.compact(db, now=True)

    def settle(self) -> None:
        """Commit the notes that wait."""
        with self._lock, usable(self.path):
            if self._db is not None:
                self._settle(self._db)

    def close(self) -> None:
        """Free the file; the next use opens it again."""
        with self._lock:
            try:
                if self._db is not None:
                    self._settle(self._db)
            finally:
                self._drop()

    def _commit(self, batch: Sequence[_Todo[Any]]) -> None:
        try:
            with usable(self.path):
                db = self._opened()
                if isinstance(db, Recorder):
                    self._record(db, batch)
                    return
                db.execute(f"PRAGMA synchronous = {'FULL' if any(each.durable for each in batch) else 'NORMAL'}")
                with db:
                    for each in batch:
                        each.result = each.work(db)
        except BaseException as error:  # noqa: BLE001 - raised again by everybody whose work it was
            for each in batch:
                each.error = error
        finally:
            for each in batch:
                each.done = True

    def _record(self, db: Recorder, batch: Sequence[_Todo[Any]]) -> None:
        """Work on a file that has a journal. Between commits a transaction stays open, with the notes that wait."""
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        before = len(db.statements)
        db.execute("SAVEPOINT work")
        try:
            for each in batch:
                each.result = each.work(db)
        except BaseException:
            db.execute("ROLLBACK TO work")
            del db.statements[before:]
            raise
        db.execute("RELEASE work")
        asked = any(not each.aside for each in batch) and len(db.statements) > before
        if asked or len(db.statements) > _NOTES:
            self._settle(db)

    def _settle(self, db: sqlite3.Connection) -> None:
        if self._journal and isinstance(db, Recorder):
            try:
                self._journal.commit(db)
            except BaseException:
                self._drop()  # what was put may be there or not: whoever opens it next sees
                raise
            self._journal.compact(db)

    def _drop(self) -> None:
        self._db = self._journal = None
        self._resources.close()

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = self._open()
        return self._db

    def _open(self) -> sqlite3.Connection:
        if _worker.is_set():
            raise ContractError(
                "an adapter asked outside in a worker, where no answer can be kept", "it has to say that it is `remote`"
            )
        if self._mirror:
            if not self._mirror.listed:
                raise WorkspaceError(f"{self._mirror.bucket.url}: a worker may ask nothing", "the coordinator asks")
            self._mirror.check()
        with ExitStack() as stack:
            # Two writers would pay twice. Not SQLite's own lock, which would shut out readers too.
            if not stack.enter_context(if_free(self.path.with_name(f"{self.path.name}.lock"))):
                raise WorkspaceError(f"the answer store {self.path} is in use", "wait for the other run")
            if self._mirror:
                catch_up(self._mirror, locked=True)
            kind = Recorder if self._mirror else sqlite3.Connection
            db = stack.enter_context(closing(sqlite3.connect(self.path, check_same_thread=False, factory=kind)))
            check_version(db, self.path)
            db.execute("PRAGMA journal_mode = WAL")
            make_tables(db)
            if self._mirror:
                db.execute("PRAGMA synchronous = NORMAL")
                prepare(db, 0)
                self._journal = Journal(self._mirror, self.path)
                self._mirror.before_commit.append(self.settle)
                stack.callback(self._mirror.before_commit.remove, self.settle)
            self._resources = stack.pop_all()
        return db
