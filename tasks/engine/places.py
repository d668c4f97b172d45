"""Where a workspace lies: a folder, or a bucket that is worked on through a folder of copies."""

import fcntl
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from tasks.engine import sync
from tasks.engine.bucket import SCHEME, Bucket
from tasks.engine.copies import Copies
from tasks.engine.disk import disk
from tasks.engine.errors import FedbenchError, WorkspaceError
from tasks.engine.folder_lock import in_turn
from tasks.engine.mirror import Mirror

CACHE: Final = "FEDBENCH_CACHE"
_MARK: Final = "fedbench-bucket.json"
_STALE_S: Final = 5.0
_S3: Final = re.compile(r"s3:/+(?=[^/])")  # a `Path` of an address has lost a slash

_lock = threading.RLock()
_by_url: dict[str, Mirror] = {}
_by_root: dict[Path, Mirror] = {}
_own_leases = ExitStack()


def in_bucket(text: str | Path) -> bool:
    """Whether an address is a bucket's."""
    return bool(_S3.match(str(text)))


def place(text: str | Path, *, look: bool = True, everything: bool = False) -> Path:
    """The folder of a workspace. That of a bucket is one of copies, in `FEDBENCH_CACHE` (else ~/.cache/fedbench).

    Args:
        text: A folder, or s3://BUCKET/PREFIX.
        look: Whether to take the bucket's state now; a worker does without.
        everything: Also fetch every picture and row.

    Raises:
        ConfigError: The address is wrong, or the extra `s3` is not installed.
        WorkspaceError: The bucket cannot be used.
    """
    if not in_bucket(text):
        return Path(text).resolve()
    mirror = _mirror(_S3.sub(SCHEME, str(text)))
    if look and mirror.lease is None:
        with _alone(mirror.copies.root) as alone:
            sync.pull(mirror, everything=everything, alone=alone)
    return mirror.copies.root


def look_again(root: Path) -> None:
    """Take a bucket's state anew where it was taken a while ago, as by a process that waits for people.

    Raises:
        WorkspaceError: The bucket cannot be used.
    """
    mirror = mirror_at(root)
    if mirror and mirror.listed and mirror.lease is None and time.monotonic() - mirror.looked > _STALE_S:
        place(mirror.bucket.url)


def mirror_at(root: Path) -> Mirror | None:
    """The bucket whose folder this is; None for one that is a workspace itself."""
    with _lock:
        if root in _by_root:
            return _by_root[root]
        mark = root.parent / _MARK
        if not mark.is_file():
            return None
        return _mirror(json.loads(mark.read_text())["url"])


def holder(path: Path) -> tuple[Mirror, str] | None:
    """The bucket a path belongs to, and the path's name there; None where it is in none's folder."""
    for root in (path, *path.parents):
        mirror = mirror_at(root)
        if mirror:
            name = path.relative_to(root).as_posix()
            return mirror, "" if name == "." else name
    return None


def shown(path: Path | str) -> str:
    """A path as its reader knows it: in a bucket, its address there."""
    found = holder(Path(path))
    return str(path) if found is None else f"{found[0].bucket.url}/{found[1]}".rstrip("/")


def shown_uri(path: Path) -> str:
    """The same for a browser."""
    told = shown(path)
    return told if in_bucket(told) else path.as_uri()


def fetched(path: Path) -> Path:
    """The path, with all below it there."""
    found = holder(path)
    if found:
        sync.fetch(*found)
    return path


@contextmanager
def settled() -> Iterator[None]:
    """At the end of what is done within, everything is in the buckets, and what was held for single writes is free.

    Raises:
        WorkspaceError: The store failed.
    """
    try:
        yield
    except FedbenchError:
        with suppress(WorkspaceError):  # the first error is the one to tell of
            _settle()
        raise
    except Exception:  # a verb's exit code
        _settle()
        raise
    _settle()


def _settle() -> None:
    for mirror in list(_by_root.values()):
        if mirror.listed:
            with _alone(mirror.copies.root) as alone:
                if alone:
                    sync.push(mirror)
    _own_leases.close()


def _mirror(url: str) -> Mirror:
    with _lock:
        bucket = Bucket(url)
        if bucket.url not in _by_url:
            name = f"{bucket.name}-{hashlib.sha256(f'{bucket.endpoint} {bucket.url}'.encode()).hexdigest()[:16]}"
            base = _cache() / "s3" / name
            copies = Copies(base)
            with disk(base):
                (base / _MARK).write_text(json.dumps({"url": bucket.url}))
            mirror = Mirror(bucket, copies)
            mirror.take_lease = lambda: _own_leases.enter_context(sync.held(mirror, tidy=False))
            _by_url[bucket.url] = _by_root[copies.root] = mirror
        return _by_url[bucket.url]


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get(CACHE) or Path(home) / "fedbench").expanduser().resolve()


@contextmanager
def _alone(root: Path) -> Iterator[bool]:
    """Keep this machine's other processes from beginning to write a folder; whether none does already."""
    with gate(root), (root.parent / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            alone = False
        else:
            alone = True
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield alone


@contextmanager
def gate(root: Path) -> Iterator[None]:
    """Wait until nobody on this machine takes in a bucket's state."""
    with in_turn(root.parent / "gate"):
        yield
