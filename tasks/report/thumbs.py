"""Thumbnails beside a report: named by the digest of their picture, so a second report finds them there."""

import posixpath
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import cv2

from tasks.engine.images import ImageStore
from tasks.engine.store import Store

LONGEST: Final = 320  # pixels; shown at up to about 200, so that dense screens stay sharp
QUALITY: Final = 84
THREADS: Final = 4  # decoding the PNG is the dear part, and frees the interpreter's lock


class Thumbs:
    """The `thumbs` folder of one report.

    Args:
        store: The workspace.
        images: Its pictures.
        folder: The report's folder below the workspace.
    """

    def __init__(self, store: Store, images: ImageStore, folder: str) -> None:
        self._store = store
        self._images = images
        self._folder = folder

    def link(self, digest: str) -> str:
        """A thumbnail, relative to the report."""
        return f"thumbs/{digest}-{LONGEST}.jpg"

    def full(self, digest: str) -> str:
        """The picture itself in the workspace, relative to the report."""
        return posixpath.relpath(self._images.path(digest), self._folder)

    def make(self, digests: Iterable[str]) -> None:
        """Write the thumbnails that are not there yet.

        Raises:
            WorkspaceError: A picture is gone or damaged.
        """
        due = [one for one in dict.fromkeys(digests) if not self._store.exists(f"{self._folder}/{self.link(one)}")]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(self._make, due))

    def _make(self, digest: str) -> None:
        pixels = self._images.get(digest).pixels
        height, width = pixels.shape[:2]
        scale = LONGEST / max(height, width)
        if scale < 1:
            size = max(1, round(width * scale)), max(1, round(height * scale))
            pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
        _, data = cv2.imencode(".jpg", pixels[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        self._store.write(f"{self._folder}/{self.link(digest)}", data.tobytes(), durable=False)
