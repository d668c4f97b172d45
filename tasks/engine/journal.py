"""The answer store in a bucket: what every commit did, as a numbered object, and now and then the whole file.

`journal/000000000012.json` holds the statements of the twelfth commit; `journal/000000000040.sqlite` is the file as it
was behind the fortieth. The file in the folder of copies says up to which of them it goes, and is never ahead.
"""

import json
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, Final

from tasks.engine.answer_tables import make_tables
from tasks.engine.answer_version import check_version
from tasks.engine.bucket import Conflict
from tasks.engine.errors import WorkspaceError
from tasks.engine.folder_lock import if_free
from tasks.engine.mirror import Mirror, at_once

FOLDER: Final = "journal"
FILE: Final = "answers.sqlite"
_CHUNK: Final = 256  # objects fetched at once
_LEAST: Final = 2**20  # bytes in the journal before the whole file is put again
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class Recorder(sqlite3.Connection):
    """A connection that writes down what changes the file."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.statements: list[tuple[str, list[Any]]] = []

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        done = super().execute(sql, parameters)
        if sql.lstrip()[:8].upper().startswith(_CHANGES):
            self.statements.append((sql, list(parameters)))
        return done


class Journal:
    """Writes the journal; one writer, who holds the workspace's lease and the file's lock.

    Args:
        mirror: The workspace.
        path: The file, which `catch_up` has brought to the journal's end.
    """

    def __init__(self, mirror: Mirror, path: Path) -> None:
        self._mirror, self._path = mirror, path
        self._held = {name: one.size for name, one in mirror.bucket.listing(FOLDER).items()}
        with closing(sqlite3.connect(path)) as db:
            self._n = _position(db) or 0

    def commit(self, db: Recorder) -> None:
        """Put what was written down since the last commit, then commit it to the file.

        Raises:
            WorkspaceError: It cannot be put, or somebody else writes. The file has to be opened anew then.
        """
        if not db.statements:
            db.commit()
            return
        body = json.dumps({"by": secrets.token_hex(8), "did": db.statements}, ensure_ascii=False).encode()
        name = f"{FOLDER}/{self._n + 1:012d}.json"
        try:
            self._mirror.check()
            try:
                self._mirror.bucket.put(name, body, absent=True)
            except Conflict:
                there = self._mirror.bucket.get(name)
                if there is None or there.data != body:  # else it was put, and sent again for want of an answer
                    words = f"another run writes the answers of {self._mirror.bucket.url}"
                    raise WorkspaceError(words, "run again when it has ended") from None
            sqlite3.Connection.execute(db, "UPDATE journal SET n = ?", [self._n + 1])
            db.commit()
        except BaseException:
            db.rollback()
            raise
        finally:
            db.statements = []
        self._n += 1
        self._held[name] = len(body)

    def compact(self, db: Recorder, *, now: bool = False) -> None:
        """Put the whole file, where the journal has grown to half of it or at once, and delete what it holds."""
        grown = sum(size for name, size in self._held.items() if name.endswith(".json"))
        if not self._n or (not now and grown < max(_LEAST, self._path.stat().st_size // 2)):
            return
        aside = self._path.with_name(f"{FILE}.snapshot")
        aside.unlink(missing_ok=True)
        with closing(sqlite3.connect(aside)) as copy:
            db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        name = f"{FOLDER}/{self._n:012d}.sqlite"
        self._mirror.check()
        put = self._mirror.bucket.put(name, aside)
        aside.unlink()
        at_once(lambda one: self._mirror.bucket.delete([one]), sorted(self._held.keys() - {name}))
        self._held = {name: put.size}


def catch_up(mirror: Mirror, *, locked: bool = False) -> None:
    """Bring the file to the journal's end, as far as nobody on this machine writes it.

    Args:
        mirror: The workspace.
        locked: Whether the caller holds the file's lock.

    Raises:
        WorkspaceError: The journal has a gap, or cannot be read.
    """
    path = mirror.copies.path(FILE)
    held = sorted(mirror.bucket.listing(FOLDER))
    if not held and not path.exists():
        return
    with nullcontext(True) if locked else if_free(path.with_name(f"{path.name}.lock")) as free:
        if free:
            _catch_up(mirror, path, held)


def _catch_up(mirror: Mirror, path: Path, held: Sequence[str]) -> None:
    entries = {_number(name) for name in held if name.endswith(".json")}
    snapshots = {_number(name) for name in held if name.endswith(".sqlite")}
    end = max(entries | snapshots, default=0)
    at = _position_of(path)
    if at is None or at > end or not entries.issuperset(range(at + 1, end + 1)):
        at = max(snapshots, default=0)
        for tail in ("", "-wal", "-shm"):
            path.with_name(path.name + tail).unlink(missing_ok=True)
        if not end:
            return
        if at:
            got = mirror.bucket.get(f"{FOLDER}/{at:012d}.sqlite")
            mirror.copies.keep(FILE, got.data if got else b"", None)
    with closing(sqlite3.connect(path)) as db:
        check_version(db, path)
        prepare(db, at)
        for first in range(at + 1, end + 1, _CHUNK):
            numbers = range(first, min(first + _CHUNK, end + 1))
            gots = at_once(mirror.bucket.get, [f"{FOLDER}/{n:012d}.json" for n in numbers])
            for n, got in zip(numbers, gots, strict=True):
                if got is None:
                    words = f"the answer store of {mirror.bucket.url} lacks {FOLDER}/{n:012d}.json"
                    raise WorkspaceError(words, "bring it back from a copy or an older version of the object")
                for sql, values in json.loads(got.data)["did"]:
                    db.execute(sql, values)
            db.execute("UPDATE journal SET n = ?", [numbers[-1]])
            db.commit()


def prepare(db: sqlite3.Connection, at: int) -> None:
    """Make the tables of a file that goes with a journal; one that does not say how far it goes goes to `at`."""
    make_tables(db)
    # Not the recorder's: this belongs to the file alone.
    sqlite3.Connection.execute(db, "CREATE TABLE IF NOT EXISTS journal (n INTEGER NOT NULL)")
    sqlite3.Connection.execute(db, "INSERT INTO journal SELECT ? WHERE NOT EXISTS (SELECT 1 FROM journal)", [at])
    db.commit()


def _position(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT max(n) FROM journal").fetchone()
    return None if row is None or row[0] is None else int(row[0])


def _position_of(path: Path) -> int | None:
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path)) as db:
            return _position(db)
    except sqlite3.Error:
        return None


def _number(name: str) -> int:
    return int(Path(name).stem)
