"""A workspace in a bucket, read and written through a local folder of copies.

What can never change under its name (pictures, parts: named by digest) is fetched once and kept. Everything else is as
the bucket has it: by a listing from when the workspace was opened or locked, or, in a worker, by asking each time. What
is written here lies in the bucket before it lies in the folder; what is written by path comes there by `sync.push`.
"""

import re
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import PurePosixPath
from typing import Final, TypeVar

from tasks.engine.bucket import THREADS, Bucket, Conflict, Got, Listed
from tasks.engine.copies import Copies
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.lease import Lease

T = TypeVar("T")
V = TypeVar("V")

# Never in the bucket: what is on its way, locks, secrets, what a server on this machine keeps; answers are journaled.
HERE: Final = re.compile(
    r"(tmp|batches|review/(studio|images))(/|$)|(review/)?lock$|answers\.sqlite|review/access\.json$|lease\.json$"
)
# Copies for annotators' browsers, three per task: no run lists them, `boards.bucket_pictures` alone.
ASIDE: Final = "review/images"
# Never another under its name.
FIXED: Final = re.compile(r"(images|answers|edits)/|(.*/)?part-[0-9a-f]{32}\.parquet$|.*/thumbs/")
# Known by its name alone; it is deleted by `remove`, never by path.
_NAMED: Final = re.compile(r"(images|answers|edits)/")
# Put by other threads while work goes on; whatever commits waits for them.
LATER: Final = re.compile(r"(images|edits)/|.*/thumbs/")
# Listed when something in it is first asked for: a listing holds 1,000 names, and there are more pictures than that.
MANY: Final = frozenset({"images", "edits", "answers", "reports", "journal"})
_DIGEST: Final = re.compile(
    r"answers/../([0-9a-f]{64})$|images/../([0-9a-f]{64})\.png$|.*part-([0-9a-f]{32})\.parquet$"
)


class Mirror:
    """The workspace. Safe to share between threads; several processes may have the same folder.

    Attributes:
        bucket: Where it lies.
        copies: The local folder.
        lease: The one that is held.
        others_write: Whether workers elsewhere write stages meanwhile; what a listing lacks there may be new.
        listed: Whether absence is known by listings; a worker asks each time, for others write beside it.
        before_commit: What is done before anything that commits is put.
        holding: Guards the taking of the lease.
        seen: ETag of the lease when the listings were taken, None where there was none.
        looked: When they were taken; seconds, monotonic.
    """

    def __init__(self, bucket: Bucket, copies: Copies) -> None:
        self.bucket, self.copies = bucket, copies
        self.lease: Lease | None = None
        self.listed = False
        self.others_write = False
        self.before_commit: list[Callable[[], None]] = []
        self.holding = threading.RLock()
        self.seen: str | None = ""
        self.looked = 0.0
        self.take_lease: Callable[[], None] = lambda: None
        self._index: dict[str, dict[str, Listed]] = {}
        self._unlisted: set[str] = set()
        self._lock = threading.RLock()
        self._threads: ThreadPoolExecutor | None = None
        self._room = threading.BoundedSemaphore(4 * THREADS)
        self._passing: dict[str, bytes] = {}
        self._coming: set[Future[None]] = set()
        self._missed: dict[str, bytes] = {}

    # -- what there is ------------------------------------------------------------------------------------------

    def learn(self, listings: dict[str, dict[str, Listed]], unlisted: Collection[str]) -> None:
        """Take listings, by first folder, as all there is, but for folders that are not listed yet.

        Args:
            listings: By first folder; "" has what lies in none.
            unlisted: The other folders.
        """
        with self._lock:
            self._index, self._unlisted, self.listed = dict(listings), set(unlisted), True

    def refresh(self, folder: str) -> None:
        """List a folder anew: workers have written there."""
        if self.listed:
            listing = self.bucket.listing(folder)
            with self._lock:
                self._index[folder] = listing

    def entry(self, name: str) -> Listed | None:
        """What the listing says of a name; the first asked of a folder fetches it."""
        with self._lock:
            top = _top(name)
            if top not in self._index:
                self._index[top] = self.bucket.listing(top) if top in self._unlisted else {}
            return self._index[top].get(name)

    def below(self, folder: str) -> dict[str, Listed]:
        """Everything below a folder, by name."""
        with self._lock:
            if not self.listed:
                return self.bucket.listing(folder)
            self.entry(f"{folder}/")
            return {name: one for name, one in self._index[_top(f"{folder}/")].items() if name.startswith(f"{folder}/")}

    def names(self, pattern: str) -> list[str]:
        """What fits a pattern like "runs/*/config.json", sorted."""
        depth = len(PurePosixPath(pattern).parts)
        listed = self.below(pattern.partition("/")[0])
        return sorted(n for n in listed if len(PurePosixPath(n).parts) == depth and PurePosixPath(n).match(pattern))

    def size(self, name: str) -> int | None:
        """Bytes of an object, or None where there is none. A worker knows only of its own copies of pictures."""
        if FIXED.match(name):
            size = self.copies.size(name)
            if size is not None or not self.listed:
                return size
            with self._lock:
                if name in self._passing:
                    return len(self._passing[name])
        elif not self.listed:
            data = self.read(name)
            return None if data is None else len(data)
        found = self.entry(name)
        if found is None and self._may_be_new(name):
            data = self.read(name)
            return None if data is None else len(data)
        return found.size if found else None

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes | None:
        """An object's bytes, or None where there is none."""
        if FIXED.match(name):
            return self._read_fixed(name)
        if self.listed:
            entry = self.entry(name)
            if entry is None:
                return self.fetch(name) if self._may_be_new(name) else None
            if self.copies.etag(name) == entry.etag:
                return self.copies.read(name)
            return self.fetch(name)
        known = self.copies.etag(name)
        try:
            return self._kept(name, self.bucket.get(name, unless=known))
        except Conflict:
            return self.copies.read(name)

    def fetch(self, name: str) -> bytes | None:
        """Get an object into the folder; its bytes."""
        return self._kept(name, self.bucket.get(name))

    def _read_fixed(self, name: str) -> bytes | None:
        with self._lock:
            if name in self._passing:
                return self._passing[name]
        data = self.copies.read(name)
        if data is not None and _is_whole(name, data):
            return data
        # Whoever asks for a part or a picture knows that there is one: a commit names it.
        if self.listed and name.startswith(("edits/", "reports/")) and self.entry(name) is None:
            return None
        return self.fetch(name)

    def _kept(self, name: str, got: Got | None) -> bytes | None:
        if got is None:
            self._note(name, None)
            self.copies.drop(name)
            return None
        self.copies.keep(name, got.data, None if _NAMED.match(name) else got.etag)
        self._note(name, Listed(got.etag, len(got.data)))
        return got.data

    def _may_be_new(self, name: str) -> bool:
        return self.others_write and name.startswith("stages/")

    # -- writing ------------------------------------------------------------------------------------------------

    def write(self, name: str, data: bytes) -> None:
        """Put an object, atomically. Pictures follow while work goes on; what commits is put when they are there.

        Raises:
            WorkspaceError: The store failed, now or with an earlier picture, or the lease is lost.
        """
        if LATER.match(name):
            self._room.acquire()
            with self._lock:
                self._passing[name] = data
                self._threads = self._threads or ThreadPoolExecutor(THREADS, "bucket")
                coming = self._threads.submit(self._put_later, name, data)
                self._coming.add(coming)
            return
        if not FIXED.match(name):
            self.settle()
            self.check()
        self.put(name, data)

    def put(self, name: str, data: bytes) -> None:
        """Put an object now, then keep the copy."""
        put = self.bucket.put(name, data)
        self.copies.keep(name, data, None if _NAMED.match(name) else put.etag)
        self._note(name, put)

    def settle(self) -> None:
        """Wait until everything that was written lies in the bucket.

        Raises:
            WorkspaceError: Something cannot be put.
        """
        with self._lock:
            waiting = list(self._coming)
        wait(waiting)
        for done in waiting:
            done.result()
        with self._lock:
            self._coming.difference_update(waiting)
            missed = list(self._missed.items())
        for name, data in missed:
            self.put(name, data)
            with self._lock:
                self._missed.pop(name, None)
        for work in list(self.before_commit):
            work()

    def check(self) -> None:
        """Stop where this process writes without a lease, or has lost it. Workers write under their coordinator's."""
        if self.lease is None and self.listed:
            self.take_lease()
        if self.lease is not None:
            self.lease.check()

    def remove(self, name: str) -> None:
        """Delete an object and its copy; one that is not there is no mistake."""
        self.settle()
        self.check()
        self.forget(name)

    def forget(self, name: str, *, keep: bool = False) -> None:
        """Delete an object now, and its copy unless that is to be kept."""
        self.bucket.delete([name])
        if not keep:
            self.copies.drop(name)
        self._note(name, None)

    def uploaded(self, name: str) -> None:
        """Put a file that was written by path."""
        put = self.bucket.put(name, self.copies.path(name))
        self.copies.note(name, put.etag)
        self._note(name, put)

    def _put_later(self, name: str, data: bytes) -> None:
        try:
            self.put(name, data)
        except WorkspaceError:
            with self._lock:
                self._missed[name] = data  # `settle` tries once more, and says so
        finally:
            with self._lock:
                if self._passing.get(name) is data:
                    del self._passing[name]
            self._room.release()

    def _note(self, name: str, entry: Listed | None) -> None:
        with self._lock:
            known = self._index.get(_top(name))
            if known is not None and entry is None:
                known.pop(name, None)
            elif known is not None and entry is not None:
                known[name] = entry


def at_once(work: Callable[[T], V], values: Sequence[T]) -> list[V]:
    """Do requests together; their results, in order."""
    if len(values) < 2:
        return [work(value) for value in values]
    with ThreadPoolExecutor(min(THREADS, len(values)), "bucket") as pool:
        return list(pool.map(work, values))


def _top(name: str) -> str:
    return name.partition("/")[0] if "/" in name else ""


def _is_whole(name: str, data: bytes) -> bool:
    """Whether a copy is what its name says; a power cut leaves torn ones."""
    found = _DIGEST.match(name)
    if not found:
        return True
    said = next(group for group in found.groups() if group)
    return sha256(data).startswith(said)
