"""Pictures: each lies once in the workspace, named by the sha256 of its PNG; every edit is remembered at once."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from tasks.engine.decode import decode_png, encode_png
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.store import Store

CACHE_BYTES: Final = 128 * 2**20


@dataclass(frozen=True, eq=False, slots=True)
class Picture:
    """A stored picture.

    Attributes:
        digest: sha256 of the stored PNG, hexadecimal.
        pixels: RGB (H, W, 3) uint8, read-only.
    """

    digest: str
    pixels: NDArray[np.uint8]


class ImageStore:
    """Content-addressed pictures, with the last 128 MiB of pixels kept decoded. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: OrderedDict[str, Picture] = OrderedDict()
        self._cached_bytes = 0
        self._lock = threading.Lock()

    @staticmethod
    def path(digest: str) -> str:
        """Where a picture lies below the workspace."""
        return f"images/{digest[:2]}/{digest}.png"

    def put(self, pixels: NDArray[np.uint8]) -> Picture:
        """Store RGB (H, W, 3) uint8 pixels; equal pixels are stored once."""
        data = encode_png(pixels)
        digest = sha256(data)
        # A torn file (power cut) has another size: it is written anew.
        if self._store.size(self.path(digest)) != len(data):
            self._store.write(self.path(digest), data, durable=False)
        pixels = pixels.copy()
        pixels.setflags(write=False)
        return self._keep(Picture(digest, pixels))

    def read(self, digest: str) -> bytes:
        """The stored PNG.

        Raises:
            WorkspaceError: The file is gone or its bytes are not those of its name.
        """
        data = self._store.read(self.path(digest))
        if data is None or sha256(data) != digest:
            what, hint = ("is gone", "delete") if data is None else ("is damaged", "delete it and")
            raise WorkspaceError(
                f"the picture {self._store.path(self.path(digest))} {what}",
                f"{hint} the folder {self._store.path('stages')}, and build again",
            )
        return data

    def get(self, digest: str) -> Picture:
        """A stored picture, decoded."""
        with self._lock:
            if digest in self._cache:
                self._cache.move_to_end(digest)
                return self._cache[digest]
        pixels = decode_png(self.read(digest))
        pixels.setflags(write=False)
        return self._keep(Picture(digest, pixels))

    def remember_edit(self, request: str, digest: str, raw_size: tuple[int, int], source: str, model: str = "") -> None:
        """Note that the edit with this request key came out as this picture, the moment it exists.

        Args:
            request: The request's key.
            digest: The stored picture.
            raw_size: (height, width) the editor gave, before it was brought to the source's.
            source: Digest of what was edited, by which the edits of a withdrawn source are found.
            model: Who made it, as its provider says; empty where nobody does.
        """
        note = f"{digest} {raw_size[0]} {raw_size[1]} {source} {quote(model)}".rstrip()
        self._store.write(f"edits/{request[:2]}/{request}", note.encode(), durable=False)

    def recall_edit(self, request: str) -> tuple[Picture, tuple[int, int], str] | None:
        """The picture an edit came out as, its raw size and its model, or None if it must be made (again)."""
        note = (self._store.read(f"edits/{request[:2]}/{request}") or b"").decode().split()
        try:
            digest, height, width, *rest = note
            return self.get(digest), (int(height), int(width)), unquote(rest[1]) if len(rest) > 1 else ""
        except (ValueError, WorkspaceError):
            # No note or no whole picture: a kill or a power cut came between. The edit is made again.
            return None

    def _keep(self, picture: Picture) -> Picture:
        with self._lock:
            if picture.digest not in self._cache:
                self._cache[picture.digest] = picture
                self._cached_bytes += picture.pixels.nbytes
                while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
                    self._cached_bytes -= self._cache.popitem(last=False)[1].pixels.nbytes
            return self._cache[picture.digest]
