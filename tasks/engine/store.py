"""The workspace on disk: immutable Parquet parts, and small JSON files whose appearance is the commit."""

import json
import os
import shutil
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, TypeAdapter, ValidationError

from schemas.records import Key, Record
from tasks.engine import sync
from tasks.engine.disk import disk
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.folder_lock import alone
from tasks.engine.mirror import HERE, Mirror
from tasks.engine.places import gate, mirror_at

__all__ = ["Store", "arrow_schema", "arrow_type", "disk"]

R = TypeVar("R", bound=Record)
V = TypeVar("V")

_PLAIN: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}


def arrow_type(annotation: Any) -> pa.DataType:
    """The Arrow type of a record's annotation; records become structs, tuples lists, enums strings."""
    origin, args = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return arrow_type(args[0])
    if origin in (Union, types.UnionType):
        return arrow_type(next(arg for arg in args if arg is not type(None)))
    if origin is tuple:
        return pa.list_(arrow_type(args[0]))
    if annotation is Key:
        return pa.struct([(name, pa.int64() if name == "attempt" else pa.string()) for name in Key._fields])
    if issubclass(annotation, StrEnum):
        return pa.string()
    if issubclass(annotation, BaseModel):
        return pa.struct(list(arrow_schema(annotation)))
    return _PLAIN[annotation]


@cache
def arrow_schema(record: type[BaseModel]) -> pa.Schema:
    """The one Arrow schema of a record type: declared by its annotations, never inferred from data."""
    return pa.schema([pa.field(name, arrow_type(field.annotation)) for name, field in record.model_fields.items()])


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class Store:
    """Files below one root, written whole or not at all.

    The root of a workspace in a bucket is the folder of its copies (`places.place`): then what is named here is read
    from and written to the bucket, whatever lies in the folder.

    Raises:
        WorkspaceError: On every method, for a full, read-only or failing disk, or a bucket that cannot be used.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._mirror = mirror_at(root)
        with disk(root):
            root.mkdir(parents=True, exist_ok=True)

    @property
    def where(self) -> str:
        """The workspace's address, by which any process opens it with `places.place`."""
        return self._mirror.bucket.url if self._mirror else str(self.root)

    def path(self, name: str) -> Path:
        """Where a file lies; in a bucket, its copy, if it was fetched."""
        return self.root / name

    def local(self, name: str) -> Path:
        """Where a file lies, fetched if a bucket has it."""
        if far := self._far(name):
            far.read(name)
        return self.path(name)

    def shown(self, name: str) -> str:
        """A file's place as its reader knows it: a path, or the address in the bucket."""
        return f"{self._mirror.bucket.url}/{name}" if self._mirror else str(self.path(name))

    def presigned(self, name: str, seconds: int) -> str | None:
        """An address from which a browser gets a file for so long, without credentials; None where no bucket has it.

        It ends sooner where the credentials are of a session that does.
        """
        return self._mirror.bucket.presigned(name, seconds) if self._mirror else None

    def _far(self, name: str) -> Mirror | None:
        return None if self._mirror is None or HERE.match(name) else self._mirror

    def exists(self, name: str) -> bool:
        far = self._far(name)
        return far.size(name) is not None if far else self.path(name).exists()

    def size(self, name: str) -> int | None:
        """Bytes of a file, or None where there is none."""
        if far := self._far(name):
            return far.size(name)
        with disk(self.path(name)):
            try:
                return self.path(name).stat().st_size
            except FileNotFoundError:
                return None

    def sizes(self, folder: str) -> dict[str, int]:
        """Bytes of every file below a folder, by its name there, sorted."""
        if far := self._far(folder):
            return {name.removeprefix(f"{folder}/"): one.size for name, one in sorted(far.below(folder).items())}
        with disk(self.path(folder)):
            files = sorted(path for path in self.path(folder).rglob("*") if path.is_file())
            return {path.relative_to(self.path(folder)).as_posix(): path.stat().st_size for path in files}

    def names(self, pattern: str) -> list[str]:
        """The files whose name fits a pattern like "runs/*/config.json", sorted."""
        if far := self._far(pattern):
            return far.names(pattern)
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))

    def fetch(self) -> None:
        """Fetch all that a bucket has, pictures and rows, for whoever reads everything by path."""
        if self._mirror:
            sync.fetch(self._mirror, "")

    def push(self, folder: str) -> None:
        """Bring into the bucket, if there is one, what was written by path below a folder; its manifest last."""
        if self._mirror:
            sync.push(self._mirror, folder)

    def others_write(self, whether: bool) -> None:
        """Whether workers elsewhere write stages meanwhile."""
        if self._mirror:
            self._mirror.others_write = whether

    def refresh(self, folder: str) -> None:
        """Look anew at what lies below a first folder, where other processes have written."""
        if self._mirror:
            self._mirror.refresh(folder)

    def remove(self, name: str) -> None:
        """Delete a file; one that is not there is no mistake."""
        if far := self._far(name):
            far.remove(name)
            return
        with disk(self.path(name)):
            self.path(name).unlink(missing_ok=True)

    def read(self, name: str) -> bytes | None:
        """A file's bytes, or None where there is none."""
        if far := self._far(name):
            return far.read(name)
        with disk(self.path(name)):
            try:
                return self.path(name).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Publish a file atomically: a reader sees the old one, the new one, or none.

        Args:
            name: Path below the root.
            data: The bytes.
            durable: Also survive a power cut (costs a flush). Pictures do without: their name is their hash.
        """
        if far := self._far(name):
            far.write(name, data)
            return
        path = self.path(name)
        temporary = self.root / "tmp" / f"{os.uname().nodename}-{os.getpid()}-{threading.get_ident()}"
        with disk(path):
            temporary.parent.mkdir(exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("wb") as file:
                    file.write(data)
                    if durable:
                        file.flush()
                        os.fsync(file.fileno())
                temporary.replace(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise

    def read_json(self, name: str) -> Any | None:
        data = self.read(name)
        if data is None:
            return None
        try:
            return json.loads(data)
        except ValueError:
            raise WorkspaceError(f"{self.shown(name)} is damaged", "delete it; the next run makes it anew") from None

    def read_as(self, name: str, kind: type[V]) -> V | None:
        """A JSON file as a record or a list of them, or None where there is none.

        Raises:
            WorkspaceError: It is damaged, or another version of fedbench wrote it.
        """
        value = self.read_json(name)
        try:
            read: V | None = None if value is None else _reader(cast(Any, kind)).validate_python(value)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise WorkspaceError(
                f"{self.shown(name)} is of another version: {where or 'it'}: {first['msg']}",
                "use a --workspace of its own, or delete the file and build again",
            ) from None
        return read

    def write_json(self, name: str, value: Any) -> None:
        self.write(name, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")

    def write_part(self, folder: str, record: type[R], rows: Sequence[R]) -> str:
        """Write rows as one immutable Parquet file named by its digest; returns the name."""
        return self.write_table(
            folder, pa.Table.from_pylist([row.model_dump() for row in rows], schema=arrow_schema(record))
        )

    def write_table(self, folder: str, table: pa.Table) -> str:
        """Write a table as one immutable part; returns the name."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", use_dictionary=False)
        data = sink.getvalue().to_pybytes()
        name = f"part-{sha256(data)[:32]}.parquet"
        if not self.exists(f"{folder}/{name}"):
            self.write(f"{folder}/{name}", data)
        return name

    def read_part(self, folder: str, name: str, record: type[R]) -> list[R]:
        """Rows of one part.

        Raises:
            WorkspaceError: The part is gone or damaged, or another version of fedbench wrote it.
        """
        if far := self._far(f"{folder}/{name}"):
            far.read(f"{folder}/{name}")
        try:
            with pq.ParquetFile(self.path(f"{folder}/{name}"), memory_map=False) as file:
                # A column that is not there would be read as nulls, and one too many not at all.
                if not file.schema_arrow.equals(arrow_schema(record)):
                    raise pa.ArrowInvalid("another version of fedbench wrote it")
                return [record.model_validate(row) for row in file.read(use_threads=False).to_pylist()]
        except (OSError, pa.ArrowException, ValidationError) as error:
            what = "another version of fedbench wrote it" if isinstance(error, ValidationError) else str(error)
            raise WorkspaceError(
                f"cannot read {self.shown(f'{folder}/{name}')}: {what.splitlines()[0]}",
                f"delete the folder {self.shown(folder)}; the next run makes it anew",
            ) from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the workspace; the kernel frees it when the process ends, however it ends. A bucket's lease lapses.

        Raises:
            WorkspaceError: Another process holds it.
        """
        # The folder of copies holds what the bucket holds, and nothing else.
        path = self.root.parent / "lock" if self._mirror else self.path("lock")
        with ExitStack() as stack:
            with gate(self.root) if self._mirror else nullcontext():
                stack.enter_context(alone(path, self.where))
            # What a killed writer left half-written; only the lock's holder may remove it.
            shutil.rmtree(self.path("tmp"), ignore_errors=True)
            if self._mirror:
                stack.enter_context(sync.held(self._mirror))
            yield
