"""What providers answered in bytes: pictures as they came, each lies once, named by its sha256, beside the answers."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.store import Store

FOLDER: Final = "answers"


class Blobs:
    """Files below `answers/`. An answer names its blob, so the blob is on the disk before the answer says so.

    Args:
        root: The workspace; nothing is made in it before the first blob.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def _store(self) -> Store:
        return Store(self._root)

    @staticmethod
    def path(digest: str) -> str:
        """Where a blob lies below the workspace."""
        return f"{FOLDER}/{digest[:2]}/{digest}"

    def put(self, data: bytes) -> str:
        """Store bytes, so that they survive a power cut; their digest."""
        digest = sha256(data)
        if self._store.size(self.path(digest)) != len(data):
            self._store.write(self.path(digest), data)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes.

        Raises:
            WorkspaceError: They are gone, or not those of their name.
        """
        data = self._store.read(self.path(digest))
        if data is None or sha256(data) != digest:
            what = "is gone" if data is None else "is damaged"
            raise WorkspaceError(
                f"the answer's picture {self._store.path(self.path(digest))} {what}",
                f"it was paid for: bring the folder {FOLDER} back from a copy, as it belongs to {FOLDER}.sqlite",
            )
        return data

    def digests(self) -> Iterator[str]:
        """All that lie there."""
        for path in sorted(self._root.glob(f"{FOLDER}/*/*")):
            yield path.name

    def remove(self, digest: str) -> None:
        """Delete one; one that is not there is no mistake."""
        self._store.remove(self.path(digest))
