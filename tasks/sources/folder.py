"""A folder of photos as a pool: class folders give the labels, or a manifest gives labels and hints."""

import csv
import errno
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import BaseModel, Field

from schemas.expressions import EXPRESSIONS, Expression, parse_expression
from schemas.records import Key, Source
from tasks.engine.decode import decode
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.registry import Adapter
from tasks.sources import Loaded

EXTENSIONS: Final = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"})
# A 50-megapixel 16-bit RGB TIFF is 300 MB; what is larger is no photo.
MAX_BYTES: Final = 512 * 2**20
_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})")
_HINTS: Final = ("split", "clip", "movie", "identity")


class FolderPool(Adapter):
    """Photos under one root.

    Without a manifest every file with an image extension (any case) is a source, hidden ones aside; its label is
    the nearest parent folder whose name is an expression, or None. Linked folders are not followed. With a manifest
    exactly its rows are sources.

    A source's id is its path below the root, extension included and Unicode as found: `a.jpg` and `a.png`, and the
    two spellings of `é`, are different files. Bytes that are no UTF-8 are written `\\xff`, in the id and in `path`.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Where the photos are.

        Attributes:
            root: The folder.
            manifest: A CSV, JSONL or Parquet file with a column `path` (below the root) and optional `label`, `id`,
                `confidence` (0..1), `split`, `clip`, `movie`, `identity`, `licence`; others are ignored. Without
                the column `label`, class folders give the labels.
            pool: The pool's name in every key.
            licence: What the card says of photos whose row names no licence.
            recursive: Whether folders below the root are searched.
        """

        root: str = Field(min_length=1)
        manifest: str | None = None
        pool: str = "folder"
        licence: str = "unknown: the user's own"
        recursive: bool = True

    local = ("root", "manifest")
    redistributable = False  # nobody but the user knows
    params: Params

    def list(self) -> Iterable[Source]:
        """Every source, sorted by id. Opens no picture.

        Raises:
            ConfigError: The root is no folder, holds no image, or cannot be read; or the manifest is wrong, with its
                row and column.
        """
        root = Path(self.params.root)
        if not root.is_dir():
            what = "is not a folder" if root.exists() else "does not exist"
            raise ConfigError(f"pool '{self.params.pool}': root '{root}' {what}", "set `root` to the photos' folder")
        sources = list(self._from_manifest(self.params.manifest) if self.params.manifest else self._walk(root))
        if not sources:
            raise ConfigError(
                f"pool '{self.params.pool}': no image in {self.params.manifest or root}",
                f"expected {' '.join(sorted(EXTENSIONS))}; hidden files and linked folders are not searched",
            )
        return sorted(sources, key=lambda source: source.key)

    def load(self, source: Source) -> Loaded:
        """The pixels of one source.

        Raises:
            UnreadableImage: `missing`, `outside_root` (a link that leads out), `not_a_file`, `unreadable`,
                `too_large`, or a reason of `decode`.
        """
        data = read_inside(Path(self.params.root), unescape(source.path))
        return Loaded(decode(data), hashlib.sha256(data).hexdigest())

    def _walk(self, root: Path) -> Iterator[Source]:
        def refuse(error: OSError) -> None:
            raise ConfigError(f"cannot list '{error.filename}': {error.strerror}", "mend its permissions") from error

        for folder, folders, files in os.walk(root, onerror=refuse):
            # A folder named like an image is listed too: refused at load, it leaves a trace in the funnel.
            names = [*files, *folders]
            folders[:] = [name for name in folders if self.params.recursive and not name.startswith(".")]
            below = PurePosixPath(Path(folder).relative_to(root).as_posix())
            for name in names:
                if not name.startswith(".") and Path(name).suffix.lower() in EXTENSIONS:
                    path = below / name
                    yield self._source(path, escape(str(path)), label=_label_of(path))

    def _from_manifest(self, manifest: str) -> Iterator[Source]:
        paths: dict[str, str] = {}
        ids: dict[str, str] = {}
        for row, cells in _rows(Path(manifest)):
            path = _path(manifest, row, _text(cells.get("path")))
            source_id = _text(cells.get("id")) or escape(str(path))
            for column, value, seen in (("path", str(path), paths), ("id", source_id, ids)):
                if value in seen:
                    raise _wrong(manifest, row, column, f"'{value}' is in {seen[value]} already", "remove one of them")
                seen[value] = row
            yield self._source(
                path,
                source_id,
                label=_label(manifest, row, _text(cells["label"])) if "label" in cells else _label_of(path),
                label_confidence=_confidence(manifest, row, _text(cells.get("confidence"))),
                licence=_text(cells.get("licence")) or self.params.licence,
                **{hint: _text(cells.get(hint)) for hint in _HINTS},
            )

    def _source(self, path: PurePosixPath, source_id: str, **fields: Any) -> Source:
        known = {
            "key": Key(self.params.pool, source_id),
            "path": escape(str(path)),
            "stamp": _stamp(Path(self.params.root) / path),
            "licence": self.params.licence,
        }
        return Source(**known | fields)


def _stamp(file: Path) -> str:
    """Size and time of a file, of what it leads to if it is a link, so that a replaced one is seen; "" for none."""
    try:
        status = file.stat()
    except (OSError, ValueError):  # ValueError: a zero byte in a manifest's path
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"


def escape(name: str) -> str:
    r"""A file name as valid Unicode: a byte that is no UTF-8 becomes `\xff`. Undone by `unescape`."""
    try:
        name.encode()
        if not _ESCAPED.search(name):
            return name
    except UnicodeEncodeError:
        pass
    return os.fsencode(name.replace("\\", r"\x5c")).decode(errors="backslashreplace")


def unescape(name: str) -> str:
    """The file name that `escape` was given."""
    if not _ESCAPED.search(name):
        return name
    parts = _ESCAPED.split(name)  # text, digits, text, digits, ..., text
    raw = b"".join(bytes.fromhex(part) if index % 2 else os.fsencode(part) for index, part in enumerate(parts))
    return os.fsdecode(raw)


def read_inside(root: Path, relative: str) -> bytes:
    """The bytes of a regular file that lies below `root`, links resolved. Opens nothing else.

    Raises:
        UnreadableImage: See `FolderPool.load`.
    """
    path = root / relative
    try:
        # Asked before opening: opening a FIFO waits for its writer, and opening a device may do anything.
        real = path.resolve()
        if not real.is_relative_to(root.resolve()):
            raise UnreadableImage("outside_root", f"'{escape(relative)}' leads out of the root")
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableImage("not_a_file", f"'{escape(relative)}' is a {_kind(status.st_mode)}")
        if status.st_size > MAX_BYTES:
            raise UnreadableImage("too_large", f"'{escape(relative)}' has {status.st_size} bytes")
        return real.read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        # ValueError: a zero byte in a manifest's path. RuntimeError: how Python 3.11 says that a link leads to itself.
        gone = isinstance(error, ValueError) or getattr(error, "errno", 0) in {
            errno.ENOENT,
            errno.ENOTDIR,
            errno.ENAMETOOLONG,
        }
        # Not the error's own words: they name the whole path, and reasons are published.
        said = getattr(error, "strerror", None) or ("no possible name" if gone else "a link that leads to itself")
        raise UnreadableImage("missing" if gone else "unreadable", f"'{escape(relative)}': {said}") from error


def _kind(mode: int) -> str:
    return "folder" if stat.S_ISDIR(mode) else "pipe" if stat.S_ISFIFO(mode) else "device or socket"


def _label_of(path: PurePosixPath) -> Expression | None:
    found = (parse_expression(folder.name) for folder in path.parents)
    return next((label for label in found if label is not None), None)


def _rows(manifest: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("row 3", cells by column), the row counted as an editor shows it (a CSV's header is row 1)."""
    readers = {".csv": _csv_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
    reader = readers.get(manifest.suffix.lower())
    if reader is None:
        raise ConfigError(f"manifest '{manifest}': unknown kind", f"name it {', '.join(readers)}")
    try:
        yield from reader(manifest)
    except (OSError, ValueError, csv.Error) as error:  # wrong UTF-8 and ArrowInvalid are ValueErrors
        raise ConfigError(
            f"manifest '{manifest}': {error}", "check that the file exists, is UTF-8 and whole"
        ) from error


def _csv_rows(manifest: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with manifest.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if "path" not in (reader.fieldnames or ()):
            raise _wrong(str(manifest), "row 1", "path", "there is no such column", "name the columns in the first row")
        for cells in reader:
            row = f"row {reader.line_num}"
            if None in cells:
                raise _wrong(str(manifest), row, "after the last", "too many cells", "quote cells that hold a comma")
            yield row, cells


def _jsonl_rows(manifest: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with manifest.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                cells = json.loads(line)
                json.dumps(cells, ensure_ascii=False).encode()  # JSON can spell half a character, which no path has
            except ValueError as error:
                raise _wrong(str(manifest), f"row {number}", "all", str(error), "one JSON object a line") from error
            if not isinstance(cells, dict):
                raise _wrong(str(manifest), f"row {number}", "all", "not a JSON object", "one JSON object a line")
            yield f"row {number}", cells


def _parquet_rows(manifest: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow.parquet as pq

    for number, cells in enumerate(pq.read_table(manifest).to_pylist(), 1):
        yield f"row {number}", cells


def _path(manifest: str, row: str, text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if not text or path == PurePosixPath():
        raise _wrong(manifest, row, "path", "empty", "a path below the root, with / between folders")
    if path.is_absolute() or ".." in path.parts:
        raise _wrong(manifest, row, "path", f"'{text}' may leave the root", "a path below the root, without '..'")
    return path


def _label(manifest: str, row: str, text: str) -> Expression | None:
    label = parse_expression(text)
    if text and label is None:
        accepted = f"leave it empty or use one of: {', '.join(EXPRESSIONS)} (numbers are never guessed)"
        raise _wrong(manifest, row, "label", f"unknown expression '{text}'", accepted)
    return label


def _confidence(manifest: str, row: str, text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise _wrong(manifest, row, "confidence", f"'{text}' is no share", "a number from 0 to 1, or empty")
    return value


def _text(cell: object) -> str:
    missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
    return "" if missing else str(cell).strip()


def _wrong(manifest: str, row: str, column: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"manifest '{manifest}', {row}, column '{column}': {what}", hint)
