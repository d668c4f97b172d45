"""What must hold for the pictures in a row: hashes, names, pixels and nothing else."""

import struct
from collections.abc import Generator, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.published import ImageCell, TripletRow
from schemas.records import Key
from tasks.dataset.rules import Fault, Row, key_of
from tasks.engine.decode import MAX_PIXELS, decode_png
from tasks.engine.errors import UnreadableImage
from tasks.engine.fingerprint import sha256
from tasks.leakage.hashes import pixel_sha256

# Column → what its picture is called in the logical name.
ROLES: Final = {"source": "source", "ground_truth": "ground_truth", "image": "candidate"}
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PIXELS_ONLY: Final = frozenset({b"IHDR", b"IDAT", b"IEND"})


def picture_name(key: Key, column: str) -> str:
    """The logical name of the picture in a column of the row with this key; a source's is that of its own key."""
    return f"{key.source() if column == 'source' else key}/{ROLES[column]}.png".replace(":", "/")


def picture_faults(row: Row, columns: tuple[str, ...]) -> Iterator[Fault]:
    """A row's pictures in these columns: their hashes, their names, and that they are plain pixels."""
    pixels: dict[str, NDArray[np.uint8]] = {}
    for column in columns:
        cell: ImageCell | None = getattr(row, column, None)
        if cell is not None:
            decoded = yield from cell_faults(row.id, key_of(row), column, cell)
            if sha256(cell.bytes) != getattr(row, f"{column}_sha256"):
                yield Fault(row.id, f"{column} hash", f"the picture is not the one of {column}_sha256")
            if decoded is not None:
                pixels[column] = decoded
    if not isinstance(row, TripletRow):
        return
    if "source" in pixels and pixel_sha256(pixels["source"]) != row.source_pixel_sha256:
        yield Fault(row.id, "source pixels", "they are not those of source_pixel_sha256")
    if len(pixels) == 2:
        if pixels["source"].shape != pixels["ground_truth"].shape:
            yield Fault(row.id, "size", "source and ground truth differ in size")
        elif (pixels["source"] == pixels["ground_truth"]).all():
            yield Fault(row.id, "ground_truth", "it is the source")


def cell_faults(id_: str, key: Key, column: str, cell: ImageCell) -> Generator[Fault, None, NDArray[np.uint8] | None]:
    """One picture: its logical name and its chunks. Returns its (H, W, 3) uint8 pixels, None if it has none."""
    if cell.path != picture_name(key, column):
        yield Fault(id_, f"{column} name", f"it should be {picture_name(key, column)}")
    try:
        _only_pixels(cell.bytes)
        return decode_png(cell.bytes)
    except Exception as error:  # noqa: BLE001 - whatever a decoder says of foreign bytes is the finding
        yield Fault(id_, f"{column} decodes", str(error))
        return None


def _only_pixels(data: bytes) -> None:
    """Refuse a PNG that holds more than pixels (where it was taken, a thumbnail), or too many of them."""
    if data[:8] != _SIGNATURE:
        raise UnreadableImage("not_an_image", "it is no PNG")
    place = 8
    while place + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        if kind not in _PIXELS_ONLY:
            raise UnreadableImage("metadata", f"it has a chunk {kind!r}")
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[place + 8 : place + 16])
            if width * height > MAX_PIXELS:
                raise UnreadableImage("too_large", f"{width} × {height} is more than {MAX_PIXELS} pixels")
        place += 12 + length
    if place != len(data):
        raise UnreadableImage("truncated", "its chunks and its length differ")
