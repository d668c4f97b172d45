"""The local copies of what lies in a bucket, each with a note of the object it is a copy of."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tasks.engine.disk import disk

_DAY_S = 86_400.0


class Copies:
    """Files below `root`. Beside that lie the notes and what is on its way.

    Args:
        base: A folder of our own.
    """

    def __init__(self, base: Path) -> None:
        self.root = base / "workspace"
        self._notes, self._passing = base / "etags", base / "passing"
        with disk(base):
            for folder in (base, self.root, self._notes, self._passing):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        return self.root / name

    def read(self, name: str) -> bytes | None:
        """A copy's bytes; None where there is none."""
        with disk(self.path(name)):
            try:
                return self.path(name).read_bytes()
            except FileNotFoundError:
                return None

    def size(self, name: str) -> int | None:
        """Bytes of a copy; None where there is none."""
        with disk(self.path(name)):
            try:
                return self.path(name).stat().st_size
            except FileNotFoundError:
                return None

    def keep(self, name: str, data: bytes, etag: str | None) -> None:
        """Keep a copy, whole or not at all, of the object with this ETag; without one, it is known by its name."""
        path = self.path(name)
        passing = self._passing / f"{os.getpid()}-{threading.get_ident()}"
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                passing.write_bytes(data)
                passing.replace(path)
            except OSError:
                passing.unlink(missing_ok=True)
                raise
        if etag is not None:
            self.note(name, etag)

    def note(self, name: str, etag: str) -> None:
        """Note of which object a file is a copy."""
        note, path = self._notes / name, self.path(name)
        with disk(path):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(f"{etag} {_look(path)}")

    def etag(self, name: str) -> str | None:
        """Of the object whose copy a file is; None where there is none, or it was changed since."""
        try:
            etag, _, look = (self._notes / name).read_text().partition(" ")
            return etag if look == _look(self.path(name)) else None
        except (OSError, ValueError):
            return None

    def drop(self, name: str) -> None:
        """Delete a copy and its note."""
        with disk(self.path(name)):
            self.path(name).unlink(missing_ok=True)
            (self._notes / name).unlink(missing_ok=True)

    def names(self, folder: str = "") -> Iterator[str]:
        """The files below a folder."""
        return _files(self.path(folder), self.root)

    def noted(self, folder: str = "") -> Iterator[str]:
        """What there is, or was, a noted copy of below a folder."""
        return _files(self._notes / folder, self._notes)

    def forget_all(self) -> None:
        """Delete every copy, but not the locks that processes hold."""
        with disk(self.root):
            shutil.rmtree(self._notes, ignore_errors=True)
            for path in self.root.iterdir():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif not path.name.endswith("lock"):
                    path.unlink(missing_ok=True)

    def told(self, what: str, value: str) -> bool:
        """Write down what the copies are of; whether something else stood there."""
        note = self._notes.parent / what
        with disk(note):
            before = note.read_text() if note.exists() else value
            note.write_text(value)
        return before != value

    def sweep(self) -> None:
        """Delete what killed processes left on its way."""
        for path in self._passing.iterdir():
            try:
                if time.time() - path.stat().st_mtime > _DAY_S:
                    path.unlink()
            except FileNotFoundError:
                continue


def _look(path: Path) -> str:
    seen = path.stat()
    return f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ino}"


def _files(folder: Path, root: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield (Path(parent) / name).relative_to(root).as_posix()
