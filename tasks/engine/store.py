"""The workspace on disk: immutable Parquet parts, and small JSON files whose appearance is the commit."""

import errno
import fcntl
import json
import os
import shutil
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, TypeAdapter, ValidationError

from schemas.records import Key, Record
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256

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

    Raises:
        WorkspaceError: On every method, for a full, read-only or failing disk.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        with disk(root):
            root.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        return self.root / name

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def size(self, name: str) -> int | None:
        """Bytes of a file, or None where there is none."""
        with disk(self.path(name)):
            try:
                return self.path(name).stat().st_size
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        """Delete a file; one that is not there is no mistake."""
        with disk(self.path(name)):
            self.path(name).unlink(missing_ok=True)

    def read(self, name: str) -> bytes | None:
        """A file's bytes, or None where there is none."""
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
        path = self.path(name)
        temporary = self.root / "tmp" / f"{os.getpid()}-{threading.get_ident()}"
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
            raise WorkspaceError(f"{self.path(name)} is damaged", "delete it; the next run makes it anew") from None

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
                f"{self.path(name)} is of another version: {where or 'it'}: {first['msg']}",
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
        path = self.path(f"{folder}/{name}")
        try:
            with pq.ParquetFile(path, memory_map=False) as file:
                # A column that is not there would be read as nulls, and one too many not at all.
                if not file.schema_arrow.equals(arrow_schema(record)):
                    raise pa.ArrowInvalid("another version of fedbench wrote it")
                return [record.model_validate(row) for row in file.read(use_threads=False).to_pylist()]
        except (OSError, pa.ArrowException, ValidationError) as error:
            what = "another version of fedbench wrote it" if isinstance(error, ValidationError) else str(error)
            raise WorkspaceError(
                f"cannot read {path}: {what.splitlines()[0]}",
                f"delete the folder {path.parent}; the next run makes it anew",
            ) from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the workspace; the kernel frees it when the process ends, however it ends.

        Raises:
            WorkspaceError: Another process holds it.
        """
        path = self.path("lock")
        with disk(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.read(descriptor, 32).decode() or "unknown"
                raise WorkspaceError(
                    f"the workspace {self.root} is in use by process {owner}", "wait for it, or use --workspace"
                ) from None
            with disk(path):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
            # What a killed writer left half-written; only the lock's holder may remove it.
            shutil.rmtree(self.path("tmp"), ignore_errors=True)
            yield
        finally:
            os.close(descriptor)


_DISK_WORDS = {
    errno.ENOSPC: ("the disk is full", "free some space and run again"),
    errno.EDQUOT: ("the disk quota is used up", "free some space and run again"),
    errno.EROFS: ("the disk is read-only", "choose a writable --workspace"),
    errno.EACCES: ("no permission", "choose a writable --workspace"),
    errno.EPERM: ("no permission", "choose a writable --workspace"),
    errno.ENOTDIR: ("a part of the path is a file", "choose another --workspace"),
    errno.EEXIST: ("there is a file of that name", "choose another --workspace"),
}


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn an operating system error into one line that names the path and the way out."""
    try:
        yield
    except OSError as error:
        what, hint = _DISK_WORDS.get(error.errno or 0, (error.strerror or str(error), "check the disk"))
        raise WorkspaceError(f"cannot use {path}: {what}", hint) from None
