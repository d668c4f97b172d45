"""The SQLite file behind the ledger: one writing process, many threads, one flush for what came at once."""

import fcntl
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from tasks.engine.answer_version import check_version
from tasks.engine.errors import WorkspaceError
from tasks.engine.store import disk

T = TypeVar("T")
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, request TEXT NOT NULL, raw TEXT, kind TEXT, message TEXT,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, run TEXT NOT NULL, key TEXT NOT NULL, role TEXT NOT NULL,
    provider TEXT NOT NULL, model TEXT NOT NULL, attempt INTEGER NOT NULL, outcome TEXT NOT NULL, message TEXT,
    tokens_in INTEGER, tokens_out INTEGER, images INTEGER, cost REAL, price_date TEXT, latency_s REAL,
    cached INTEGER NOT NULL, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, batch TEXT);
CREATE TABLE IF NOT EXISTS batches (name TEXT PRIMARY KEY, run TEXT NOT NULL, service TEXT NOT NULL, id TEXT,
    state TEXT NOT NULL, requests INTEGER NOT NULL, sent REAL NOT NULL, told TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS batched (key TEXT NOT NULL, batch TEXT NOT NULL, row INTEGER NOT NULL, request TEXT NOT NULL,
    forecast REAL NOT NULL, PRIMARY KEY (key, batch));
"""


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

    def __init__(self, work: Callable[[sqlite3.Connection], T], durable: bool) -> None:
        self.work, self.durable = work, durable
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

    def do(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Do work on the file; done, it survives a kill, and if `durable` a power cut, too.

        Who comes while another commits waits, and the next of them commits the work of all: one flush for many.
        """
        todo: _Todo[T] = _Todo(work, durable)
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
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Free the file; the next use opens it again."""
        with self._lock:
            self._db = None
            self._resources.close()

    def _commit(self, batch: Sequence[_Todo[Any]]) -> None:
        try:
            with usable(self.path):
                db = self._opened()
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

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = self._open()
        return self._db

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            # Two writers would pay twice. Not SQLite's own lock, which would shut out readers too.
            lock = stack.enter_context(self.path.with_name(f"{self.path.name}.lock").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WorkspaceError(f"the answer store {self.path} is in use", "wait for the other run") from None
            db = stack.enter_context(closing(sqlite3.connect(self.path, check_same_thread=False)))
            check_version(db, self.path)
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(_SCHEMA)
            # Files from before there were batches.
            if "batch" not in {name for _, name, *_ in db.execute("PRAGMA table_info(ledger)")}:
                db.execute("ALTER TABLE ledger ADD COLUMN batch TEXT")
            self._resources = stack.pop_all()
        return db
