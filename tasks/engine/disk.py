"""Errors of the operating system in one line."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.engine.errors import WorkspaceError

_DISK_WORDS = {
    errno.ENOSPC: ("the disk is full", "free some space and run again"),
    errno.EDQUOT: ("the disk quota is used up", "free some space and run again"),
    errno.EROFS: ("the disk is read-only", "choose a writable --workspace"),
    errno.EACCES: ("no permission", "choose a writable --workspace"),
    errno.EPERM: ("no permission", "choose a writable --workspace"),
    errno.ENOTDIR: ("a part of the path is a file", "choose another --workspace"),
    errno.EEXIST: ("there is a file of that name", "choose another --workspace"),
}


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn an operating system error into one line that names the path and the way out."""
    try:
        yield
    except OSError as error:
        what, hint = _DISK_WORDS.get(error.errno or 0, (error.strerror or str(error), "check the disk"))
        raise WorkspaceError(f"cannot use {path}: {what}", hint) from None
