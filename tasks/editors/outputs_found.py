"""Which output is whose: pictures of a folder by their names, of a table by its columns."""

import json
import os
import string
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

from schemas.expressions import EXPRESSIONS
from schemas.records import Key
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.sources.folder import EXTENSIONS, escape, read_inside, unescape

FIELDS: Final = frozenset({"pool", "source_id", "source_stem", "target", "attempt"})


class NotOne(Exception):
    """A key has no output, or `several`; says which names were looked for or found."""

    def __init__(self, message: str, *, several: bool) -> None:
        super().__init__(message)
        self.several = several


class Found(Protocol):
    """The outputs that are there, by their names.

    Attributes:
        names: Of every output, in order: a path below the root, or a table's row.
        doubled: Names of one output, where there are several for it.
    """

    names: list[str]
    doubled: list[list[str]]

    def one(self, key: Key) -> str:
        """The name of a key's output.

        Raises:
            NotOne: There is none, or there are several.
        """
        ...

    def files(self) -> list[Path]:
        """Every file that decides what the outputs are."""
        ...

    def read(self, name: str) -> bytes:
        """The bytes of an output.

        Raises:
            UnreadableImage: They are not there, or not to be read.
        """
        ...


def found_in(root: str, pattern: str) -> Found:
    """The outputs of a folder, or of a table.

    Raises:
        ConfigError: There is no such thing, it holds nothing, or pattern or columns are wrong.
    """
    path = Path(root)
    if not root or not _exists(path):
        what = f"'{root}' does not exist" if root else "nothing says where the outputs are"
        raise ConfigError(f"editor 'outputs': {what}", "set `root` to their folder, or to a .jsonl or .parquet table")
    found: Found = InFolder(path, pattern) if path.is_dir() else InTable(path)
    if not found.names:
        raise ConfigError(f"editor 'outputs': no picture in {root}", f"expected {' '.join(sorted(EXTENSIONS))}")
    return found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no disk takes
        return False


def contents_of(root: str) -> str:
    """Digest of the names and bytes of all outputs, wherever they lie; empty where they cannot be listed.

    All are read once in a process, and again when the size or the time of one has changed.
    """
    try:
        found = found_in(root, "{source_id}/{target}")
    except ConfigError:
        return ""
    return _contents(root, tuple(map(_stamp, found.files())))


@lru_cache(maxsize=16)
def _contents(root: str, stamps: tuple[str, ...]) -> str:  # noqa: ARG001 - they say when the digest is another
    found = found_in(root, "{source_id}/{target}")
    with ThreadPoolExecutor(4) as threads:
        digests = threads.map(lambda name: _digest(found, name), found.names)
        return fingerprint([list(pair) for pair in zip(found.names, digests, strict=True)])


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except (OSError, ValueError):
        return "not there"
    return f"{status.st_size} {status.st_mtime_ns}"


def _digest(found: Found, name: str) -> str:
    try:
        return sha256(found.read(name))
    except UnreadableImage as error:
        return error.reason


class InFolder:
    """Pictures of a folder. A key's name is compared as it is, and else without case and Unicode's spellings."""

    def __init__(self, root: Path, pattern: str) -> None:
        try:
            used = {field for _, field, _, _ in string.Formatter().parse(pattern) if field is not None}
            _name(pattern, Key("p", "s", "t"))
        except (ValueError, LookupError, AttributeError, MemoryError):  # a brace never closed, a format of its own
            used = set()
        if not used <= FIELDS or "target" not in used or not used & {"source_id", "source_stem"}:
            raise ConfigError(
                f"editor 'outputs': the pattern '{pattern}' does not tell outputs apart",
                "use {target}, {source_id} or {source_stem}, and perhaps {pool} and {attempt}",
            )
        self._root, self._pattern = root, pattern
        self.names = sorted(_pictures(root))
        self._exact: dict[str, list[str]] = defaultdict(list)
        self._alike: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            stem = str(PurePosixPath(name).with_suffix(""))
            self._exact[stem].append(name)
            self._alike[_folded(stem)].append(name)
        self.doubled = [names for names in self._exact.values() if len(names) > 1]

    def one(self, key: Key) -> str:
        wanted = self.wanted(key)
        names = self._exact.get(wanted) or self._alike.get(_folded(wanted), [])
        if len(names) != 1:
            what = f"several outputs for {key}: {_list(names)}" if names else f"no output for {key}: no {wanted}.*"
            raise NotOne(what, several=bool(names))
        return names[0]

    def wanted(self, key: Key) -> str:
        """The name that the pattern gives a key's output, without an extension."""
        return _name(self._pattern, key)

    def files(self) -> list[Path]:
        return [self._root / unescape(name) for name in self.names]

    def read(self, name: str) -> bytes:
        return read_inside(self._root, unescape(name))


def _name(pattern: str, key: Key) -> str:
    id_ = key.source_id
    stem = str(PurePosixPath(id_).with_suffix("")) if PurePosixPath(id_).suffix.lower() in EXTENSIONS else id_
    fields = {"pool": key.pool, "source_id": id_, "source_stem": stem, "target": key.target, "attempt": key.attempt}
    return str(PurePosixPath(pattern.format(**fields)))


class InTable:
    """Rows of a JSONL or Parquet file; of the latter one row group is held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._paths: dict[str, str] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._rows: dict[str, list[str]] = defaultdict(list)
        self._group = lru_cache(maxsize=1)(self._read_group)
        rows = list(self._listed())
        self._attempts = any("attempt" in cells for _, cells, _ in rows)
        for name, cells, place in rows:
            self._rows[_row_key(path, name, cells)].append(name)
            if place:
                self._places[name] = place
            else:
                self._paths[name] = str(cells.get("path") or "")
        self.names = [name for names in self._rows.values() for name in names]
        self.doubled = [[f"{key} ({_list(names)})"] for key, names in self._rows.items() if len(names) > 1]

    def one(self, key: Key) -> str:
        attempt = key.attempt if self._attempts else 0
        source = unicodedata.normalize("NFC", f"{key.pool}/{key.source_id}")
        names = self._rows.get(f"{source}:{key.target}#{attempt}", [])
        if len(names) != 1:
            what = f"several outputs for {key}: {_list(names)}" if names else f"no output for {key}: no row of it"
            raise NotOne(f"{what} in {self._path.name}", several=bool(names))
        return names[0]

    def files(self) -> list[Path]:
        return [self._path, *(self._path.parent / path for path in self._paths.values())]

    def read(self, name: str) -> bytes:
        if name not in self._places:
            return read_inside(self._path.parent, self._paths[name])
        group, row = self._places[name]
        held = self._group(group)[row]
        data = held.get("bytes") if isinstance(held, dict) else held
        if not isinstance(data, bytes):
            raise UnreadableImage("empty", f"{name} has no bytes in `image`")
        return data

    def _listed(self) -> Iterator[tuple[str, dict[str, Any], tuple[int, int] | None]]:
        """Name, cells, and where its `image` lies, of every row."""
        try:
            if self._path.suffix.lower() == ".jsonl":
                # Not splitlines: a name may hold a separator of Unicode's.
                for number, line in enumerate(self._path.read_text(encoding="utf-8-sig").split("\n"), 1):
                    if line.strip():
                        cells = json.loads(line)
                        if not isinstance(cells, dict):
                            raise ValueError(f"row {number} is no JSON object")
                        json.dumps(cells, ensure_ascii=False).encode()  # half of a surrogate pair is no name
                        yield f"row {number}", cells, None
                return
            import pyarrow.parquet as pq

            file, number = pq.ParquetFile(self._path), 0
            columns = [name for name in file.schema_arrow.names if name != "image"]
            pictured = len(columns) < len(file.schema_arrow.names)
            for group in range(file.num_row_groups):
                for row, cells in enumerate(file.read_row_group(group, columns=columns).to_pylist()):
                    number += 1
                    yield f"row {number}", cells, (group, row) if pictured else None
        except (
            OSError,
            ValueError,
            RecursionError,
        ) as error:  # a ValueError: wrong UTF-8 or JSON, ArrowInvalid
            what = str(error).partition("\n")[0]
            raise ConfigError(f"editor 'outputs': {self._path}: {what}", "a .jsonl or .parquet file, whole") from None

    def _read_group(self, group: int) -> list[Any]:
        import pyarrow.parquet as pq

        return list(pq.ParquetFile(self._path).read_row_group(group, columns=["image"]).column("image").to_pylist())


def _row_key(path: Path, name: str, cells: dict[str, Any]) -> str:
    """A row's key: pool/source_id:target#attempt."""
    text, attempt = str(cells.get("key") or ""), str(cells.get("attempt") or 0)
    if text:
        source, _, rest = text.rpartition(":")
        target = rest.partition("@")[0]
    else:
        source, target = f"{cells.get('pool')}/{cells.get('source_id')}", str(cells.get("target") or "")
    if not source or target not in EXPRESSIONS or not attempt.isdigit():
        raise ConfigError(
            f"editor 'outputs': {path}, {name}: no key that names a source and a target",
            "columns: key (pool/source_id:target), or pool, source_id and target",
        )
    return f"{unicodedata.normalize('NFC', source)}:{target}#{attempt}"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _list(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _pictures(root: Path) -> Iterator[str]:
    """Every file with a picture's extension below a folder, hidden ones aside; linked folders are not followed."""

    def refuse(error: OSError) -> None:
        raise ConfigError(f"cannot list '{error.filename}': {error.strerror}", "mend its permissions") from error

    for folder, folders, files in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = PurePosixPath(Path(folder).relative_to(root).as_posix())
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in EXTENSIONS:
                yield escape(str(below / name))
