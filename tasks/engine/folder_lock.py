"""One process of this machine at a time: a lock that the kernel frees when its holder ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.engine.disk import disk
from tasks.engine.errors import WorkspaceError


@contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file.

    Args:
        path: The file.
        what: The workspace, for whoever is turned away.

    Raises:
        WorkspaceError: Another process holds it.
    """
    with disk(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(descriptor, 32).decode() or "unknown"
            raise WorkspaceError(
                f"the workspace {what} is in use by process {owner}", "wait for it, or use --workspace"
            ) from None
        with disk(path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold a lock file; wait while another process holds it."""
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
