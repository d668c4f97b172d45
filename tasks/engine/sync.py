"""Between a workspace's folder and its bucket: what is fetched on opening, and what was written by path.

A folder with a `manifest.json` counts by it: in the bucket the old one is deleted first and the new one put last, so
that nobody reads a mixture, and a kill leaves no data set rather than half of one.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import Final

from tasks.engine.bucket import Listed
from tasks.engine.errors import FedbenchError, WorkspaceError
from tasks.engine.journal import catch_up
from tasks.engine.lease import NAME as LEASE
from tasks.engine.lease import Lease
from tasks.engine.mirror import ASIDE, FIXED, HERE, MANY, Mirror, at_once

COMMIT: Final = "manifest.json"
WITHDRAWN: Final = "withdrawn.json"
# Fetched when it is read: the rows of stages and data sets.
_ON_DEMAND: Final = re.compile(r"stages/.*\.parquet$|(datasets|releases)/.*/(data|rejected|pack)/|reports/")


def pull(mirror: Mirror, *, everything: bool = False, alone: bool = True) -> None:
    """List the bucket, drop copies that are not what lies there (a killed run's too), and fetch what is read by path.

    Args:
        mirror: The workspace.
        everything: Also every picture and every row.
        alone: Whether no other process of this machine writes the folder; else only the listing is taken.

    Raises:
        WorkspaceError: The bucket cannot be read.
    """
    tops, here = mirror.bucket.folders()
    many = frozenset() if everything else MANY
    wanted = [top for top in tops if top not in many]
    listings = dict(zip(wanted, at_once(lambda top: mirror.bucket.listing(top, ASIDE), wanted), strict=True)) | {
        "": here
    }
    if alone and WITHDRAWN in here and mirror.copies.etag(WITHDRAWN) != here[WITHDRAWN].etag:
        mirror.copies.forget_all()  # somebody was withdrawn elsewhere: no picture of theirs may stay here
    mirror.learn(listings, set(tops) & many)
    mirror.seen = here[LEASE].etag if LEASE in here else None
    mirror.looked = time.monotonic()
    if alone:
        _settle_copies(mirror, listings, everything=everything)


def _settle_copies(mirror: Mirror, listings: dict[str, dict[str, Listed]], *, everything: bool) -> None:
    _fetch(mirror, {name: one for each in listings.values() for name, one in each.items()}, everything=everything)
    for name in list(mirror.copies.names()):
        listing = listings.get(name.partition("/")[0] if "/" in name else "")
        if not HERE.match(name) and listing is not None and name not in listing:
            mirror.copies.drop(name)
    for name in list(mirror.copies.noted()):
        if not mirror.copies.path(name).exists():
            mirror.copies.drop(name)  # whoever cleared the cache meant the copies alone
    mirror.copies.sweep()
    catch_up(mirror)


def fetch(mirror: Mirror, folder: str) -> None:
    """Fetch all below a folder, or all there is: what was left for when it is read."""
    _fetch(mirror, mirror.below(folder) if folder else mirror.bucket.listing(), everything=True)


def _fetch(mirror: Mirror, listing: dict[str, Listed], *, everything: bool) -> None:
    due = []
    for name, one in listing.items():
        if HERE.match(name) or name.startswith("journal/"):
            continue
        there = mirror.copies.size(name) == one.size if FIXED.match(name) else mirror.copies.etag(name) == one.etag
        if not there and (everything or not _ON_DEMAND.match(name)):
            due.append(name)
        elif not there:
            mirror.copies.drop(name)
    at_once(mirror.fetch, due)


def push(mirror: Mirror, folder: str = "") -> None:
    """Bring into the bucket what was written, replaced or deleted by path below a folder.

    Raises:
        WorkspaceError: The store failed, or the lease is lost.
    """
    mirror.settle()
    copies = mirror.copies
    changed = [name for name in copies.names(folder) if not _is_there(mirror, name)]
    gone = [name for name in copies.noted(folder) if not HERE.match(name) and not copies.path(name).exists()]
    if not changed and not gone:
        return
    mirror.check()
    replaced = sorted({str(PurePosixPath(name).parent) for name in [*changed, *gone] if name.endswith(f"/{COMMIT}")})
    commits = [f"{inner}/{COMMIT}" for inner in replaced]
    there = {name for inner in replaced for name in mirror.below(inner)}
    old = {name for name in there if not copies.path(name).exists()}
    for name in there & set(commits):
        mirror.forget(name, keep=True)
    at_once(mirror.uploaded, [name for name in changed if name not in commits])
    at_once(mirror.forget, sorted({*gone, *old} - set(commits)))
    mirror.check()
    for name in commits:
        if copies.path(name).exists():
            mirror.uploaded(name)


@contextmanager
def held(mirror: Mirror, *, tidy: bool = True) -> Iterator[None]:
    """Hold the workspace: nobody else writes it. Everything is as it lies in the bucket; at the end, it is so again.

    Args:
        mirror: The workspace.
        tidy: Whether files that do not lie in the bucket are a killed run's; else this process wrote them by path.

    Raises:
        WorkspaceError: Another run holds it, or the store failed.
    """
    with mirror.holding:
        if mirror.lease is not None:  # further in: who came first gives it back
            yield
            return
        lease = Lease(mirror.bucket)
        lease.take()
        try:
            if mirror.copies.told("of", lease.workspace):
                mirror.copies.forget_all()  # another bucket of the same name: what copies are of lies nowhere
                mirror.seen = ""
            if not mirror.listed or mirror.seen != lease.found:
                pull(mirror, alone=tidy)
            mirror.lease = lease
            try:
                yield
            except FedbenchError:
                with suppress(WorkspaceError):  # the first error is the one to tell of
                    push(mirror)
                raise
            push(mirror)
        finally:
            mirror.lease = None
            mirror.seen = lease.give_back() or ""


def _is_there(mirror: Mirror, name: str) -> bool:
    """Whether a file is what lies in the bucket, or has no business there."""
    return bool(HERE.match(name)) or bool(FIXED.match(name)) or mirror.copies.etag(name) is not None
