"""Checks a published data set by recomputing what its rows say, not by comparing checksums alone."""

import hashlib
import json
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import ValidationError

from schemas.config import BuildConfig
from schemas.outcomes import Status
from schemas.published import SCHEMA_VERSION, ImageCell, Manifest, RejectedRow, TripletRow
from tasks.dataset.cross_rules import run_faults
from tasks.dataset.parquet import BYTES_PER_GROUP, ROWS_PER_GROUP, published_schema
from tasks.dataset.rules import Fault, Row, after, column_faults, key_of, row_faults
from tasks.dataset.write import render_card
from tasks.engine.decode import MAX_PIXELS, decode_png
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.screen import pixel_sha256

__all__ = ["Fault", "verify"]

# Column → what its picture is called in the logical name.
PICTURES: Final = {"source": "source", "ground_truth": "ground_truth", "image": "candidate"}
TEXTS: Final = ("README.md", "manifest.json", "checksums.sha256")
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PIXELS_ONLY: Final = frozenset({b"IHDR", b"IDAT", b"IEND"})


def verify(folder: Path) -> list[Fault]:
    """Every fault of a data set; empty if it is whole.

    Hashes prove that nothing changed since they were made; whoever makes them anew is found out only where one
    column follows from others. Nothing vouches for captions, dense instructions, votes' raw texts and the pixels of
    ground truths but the hashes.

    Raises:
        ConfigError: The folder is no data set of this schema version.
    """
    manifest, config = _manifest(folder)
    faults = list(_files(folder, manifest))
    rows: dict[str, list[Row]] = {}
    for name in sorted(manifest.files):
        if _part_of(name) and (folder / name).is_file():
            try:
                rows[name] = list(_table(folder, name, faults))
            except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
                faults.append(Fault(name, "readable", str(error).partition("\n")[0]))
    faults += _counts(rows, manifest)
    every = [row for in_file in rows.values() for row in in_file]
    sound = []
    for row in every:
        wrong = list(column_faults(row))
        faults += wrong or row_faults(row, config)
        if not wrong:
            sound.append(row)
    faults += run_faults(sound, config)
    if len(sound) == len(every):
        faults += _funnel(sound, manifest)
    return faults


def _manifest(folder: Path) -> tuple[Manifest, BuildConfig]:
    path = folder / "manifest.json"
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} is no published data set: it has no manifest.json", "see `fedbench status`"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "publish it anew") from None
    version = values.get("schema_version") if isinstance(values, dict) else None
    if version != SCHEMA_VERSION:
        raise ConfigError(
            f"{folder} has schema version {json.dumps(version)[:40]}, this fedbench reads {SCHEMA_VERSION}",
            "update one of them",
        )
    try:
        manifest = Manifest.model_validate(values)
        return manifest, BuildConfig.model_validate(manifest.config | {"name": manifest.name})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        raise ConfigError(f"{path}: {where}: {first['msg']}", "publish it anew") from None


def _part_of(name: str) -> str:
    """Which table a file belongs to: "data", "rejected", or "" for a name that no data set has."""
    found = re.fullmatch(r"(data|rejected)/(?:train|test)-\d{5}-of-\d{5}\.parquet", name)
    return found[1] if found else ""


def _files(folder: Path, manifest: Manifest) -> Iterator[Fault]:
    """The files must be those of the manifest and of checksums.sha256, and the card what the manifest gives."""
    listed = {*manifest.files, *TEXTS}
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    # The hub and git keep notes of their own beside a data set.
    present = {name for name in present if not name.startswith(".git")}
    for name in sorted(listed - present):
        yield Fault(name, "present", "the file is missing")
    for name in sorted(present - listed):
        yield Fault(name, "listed", "the manifest does not know this file")
    for part in ("data", "rejected"):
        names = sorted(name for name in manifest.files if _part_of(name) == part)
        wanted = [f"{part}/{manifest.split}-{place:05d}-of-{len(names):05d}.parquet" for place in range(len(names))]
        for name, right in zip(names, wanted, strict=True):
            if name != right:
                yield Fault(name, "name", f"it should be {right}")
    yield from (Fault(name, "name", "no data set has it") for name in sorted(manifest.files) if not _part_of(name))
    yield from _contents(folder, sorted(present & listed), manifest)


def _contents(folder: Path, names: Sequence[str], manifest: Manifest) -> Iterator[Fault]:
    texts: dict[str, bytes] = {}
    found: dict[str, str] = {}
    for name in names:
        try:
            if not (folder / name).is_file():
                raise OSError("it is no plain file")
            with (folder / name).open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
            if name in TEXTS:
                texts[name] = (folder / name).read_bytes()
        except OSError as error:
            yield Fault(name, "readable", error.strerror or str(error))
    if "README.md" in texts and texts["README.md"] != _card(manifest):
        yield Fault("README.md", "card", "it is not what the manifest renders to")
    if "checksums.sha256" in texts:
        lines = texts["checksums.sha256"].decode(errors="replace").splitlines()
        said = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        for name in sorted({*found, *said} - {"checksums.sha256"}):
            if said.get(name) != found.get(name):
                yield Fault(name, "checksum", "checksums.sha256 and the file differ")


def _card(manifest: Manifest) -> bytes | None:
    try:
        return render_card(manifest.model_dump(mode="json")).encode()
    except jinja2.TemplateError:  # its config is valid, but not as this program writes one
        return None


def _table(folder: Path, name: str, faults: list[Fault]) -> Iterator[Row]:
    """The rows of one file without their pictures, which are checked and let go."""
    kind = TripletRow if _part_of(name) == "data" else RejectedRow
    file = pq.ParquetFile(folder / name)
    schema = published_schema(kind)
    if file.schema_arrow != schema or file.schema_arrow.metadata != schema.metadata:
        faults.append(Fault(name, "schema", "columns, types or the huggingface metadata differ"))
        return
    number = 0
    for group in range(file.num_row_groups):
        facts = file.metadata.row_group(group)
        if facts.num_rows > ROWS_PER_GROUP or facts.total_byte_size > 2 * BYTES_PER_GROUP:
            faults.append(Fault(name, "row group", f"{facts.num_rows} rows, {facts.total_byte_size} bytes"))
            return
        if facts.num_rows and not facts.column(0).has_offset_index:
            faults.append(Fault(name, "page index", "there is none"))
        for value in file.read_row_group(group).to_pylist():
            number += 1
            try:
                row: Row = kind.model_validate(value)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"])
                faults.append(Fault(f"{name} row {number}", "column", f"{where}: {first['msg']}"))
                continue
            faults += _pictures(row)
            empty = ImageCell(bytes=b"", path="")
            yield row.model_copy(update={column: empty for column in PICTURES if getattr(row, column, None)})


def _pictures(row: Row) -> Iterator[Fault]:
    """A row's pictures: their hashes, their names, and that they are plain pixels."""
    pixels: dict[str, NDArray[Any]] = {}
    for column, role in PICTURES.items():
        cell: ImageCell | None = getattr(row, column, None)
        if cell is None:
            continue
        if sha256(cell.bytes) != getattr(row, f"{column}_sha256"):
            yield Fault(row.id, f"{column} hash", f"the picture is not the one of {column}_sha256")
        name = f"{key_of(row).source() if column == 'source' else key_of(row)}/{role}.png".replace(":", "/")
        if cell.path != name:
            yield Fault(row.id, f"{column} name", f"it should be {name}")
        try:
            _only_pixels(cell.bytes)
            pixels[column] = decode_png(cell.bytes)
        except Exception as error:  # noqa: BLE001 - whatever a decoder says of foreign bytes is the finding
            yield Fault(row.id, f"{column} decodes", str(error))
    if isinstance(row, TripletRow) and len(pixels) == 2:
        if pixel_sha256(pixels["source"]) != row.source_pixel_sha256:
            yield Fault(row.id, "source pixels", "they are not those of source_pixel_sha256")
        if pixels["source"].shape != pixels["ground_truth"].shape:
            yield Fault(row.id, "size", "source and ground truth differ in size")
        elif (pixels["source"] == pixels["ground_truth"]).all():
            yield Fault(row.id, "ground_truth", "it is the source")


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


def _counts(rows: dict[str, list[Row]], manifest: Manifest) -> Iterator[Fault]:
    """Rows per file, and all rows together, must be the manifest's."""
    for name, count in manifest.files.items():
        if name in rows and len(rows[name]) != count:
            yield Fault(name, "count", f"{len(rows[name])} rows, the manifest says {count}")
    if fingerprint(sorted(row.row_sha256 for in_file in rows.values() for row in in_file)) != manifest.rows_sha256:
        yield Fault("manifest.json", "rows", "the rows are not those it was made from")


def _funnel(rows: Sequence[Row], manifest: Manifest) -> Iterator[Fault]:
    """Sources, triplets, cells and funnel, counted again from where every row ended."""
    sources = {key_of(row).source() for row in rows}
    triplets = [row for row in rows if isinstance(row, TripletRow)]
    if (len(sources), len(triplets)) != (manifest.sources, manifest.triplets):
        yield Fault("manifest.json", "count", f"{len(sources)} sources and {len(triplets)} triplets are there")
    cells = Counter((row.source_expression, row.target_expression) for row in triplets)
    if sorted((*cell, count) for cell, count in cells.items()) != [
        (cell.source, cell.target, cell.triplets) for cell in manifest.cells
    ]:
        yield Fault("manifest.json", "count", "triplets by source and target expression differ")
    for said in manifest.funnel:
        here = [
            row
            for row in rows
            if isinstance(row, RejectedRow) and row.stage == said.stage and row.status != Status.KEPT
        ]
        through = [row for row in rows if row.target and after(row, said.stage)]
        kept = len(sources) - len(here) if said.stage == "screen" else len(through)
        counts = Counter(row.status for row in here)
        counted = {
            "stage": said.stage,
            "owed": kept + len(here),
            **{str(status): counts.get(status, 0) for status in Status},
            "kept": kept,
            "reasons": dict(sorted(Counter(row.reason for row in here if row.reason).items())),
        }
        if counted != said.model_dump():
            yield Fault("manifest.json", "funnel", f"{said.stage}: the rows give {counted}")
