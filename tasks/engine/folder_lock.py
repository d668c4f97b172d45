"""One process of this machine at a time: locks that the kernel frees when their holder ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.engine.disk import disk
from tasks.engine.errors import WorkspaceError


@contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file, and write into it who does.

    Args:
        path: The file.
        what: The workspace, for whoever is turned away.

    Raises:
        WorkspaceError: Another process holds it.
    """
    with _opened(path) as descriptor:
        if not _taken(descriptor):
            owner = os.read(descriptor, 32).decode() or "unknown"
            raise WorkspaceError(
                f"the workspace {what} is in use by process {owner}", "wait for it, or use --workspace"
            )
        with disk(path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield


@contextmanager
def if_free(path: Path) -> Iterator[bool]:
    """Hold a lock file if nobody does; whether it is held now."""
    with _opened(path) as descriptor:
        yield _taken(descriptor)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold a lock file; wait while somebody else holds it."""
    with _opened(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
