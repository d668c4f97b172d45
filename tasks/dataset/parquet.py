"""Parquet as the Hugging Face hub likes it: image structs, small row groups, page index, names with a total."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from schemas.published import PICTURES, ImageCell
from tasks.engine.store import arrow_schema, arrow_type, disk

ROWS_PER_GROUP: Final = 100
BYTES_PER_GROUP: Final = 100 * 2**20
BYTES_PER_FILE: Final = 128 * 2**20
_IMAGE: Final = arrow_type(ImageCell)
_VALUES: Final = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "float64", pa.bool_(): "bool"}


def features(kind: pa.DataType) -> dict[str, Any]:
    """The Hugging Face feature of an Arrow type, as `datasets` writes it into the schema's metadata."""
    if kind == _IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return {"feature": features(kind.value_type), "_type": "List"}
    if pa.types.is_struct(kind):
        return {field.name: features(field.type) for field in kind}
    return {"dtype": _VALUES[kind], "_type": "Value"}


def left_out(row: type[BaseModel], pictures: Collection[str]) -> frozenset[str]:
    """The columns of a row type that a data set with only these pictures lacks."""
    return frozenset(column for column in PICTURES if column in row.model_fields and column not in pictures)


def published_schema(row: type[BaseModel], without: Collection[str] = ()) -> pa.Schema:
    """A row type's Arrow schema with the `huggingface` metadata, without which pictures load as plain structs.

    Args:
        row: The row type.
        without: Columns to leave out.
    """
    schema = pa.schema([field for field in arrow_schema(row) if field.name not in without])
    info = {"info": {"features": {field.name: features(field.type) for field in schema}}}
    return schema.with_metadata({"huggingface": json.dumps(info)})


def _compression(schema: pa.Schema) -> dict[str, str]:
    """zstd for text and numbers, nothing for picture bytes, which it cannot shrink."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    leaves = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    paths = [leaves.column(place).path for place in range(len(leaves))]
    return {path: "none" if path.endswith(".bytes") else "zstd" for path in paths}


class RowWriter:
    """Writes rows of one type into as many files as they need; memory holds one file.

    Files are made in memory and written by Python: Arrow aborts the process where a full disk stops its own write.

    Args:
        folder: Where the files go; made if it is not there.
        row: The row type.
        without: Columns that are not written.
    """

    def __init__(self, folder: Path, row: type[BaseModel], without: Collection[str] = ()) -> None:
        self._folder = folder
        self._without = set(without)
        self._schema = published_schema(row, without)
        self._compression = _compression(self._schema)
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._file_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._sink = pa.BufferOutputStream()
        self._files: list[tuple[Path, int]] = []
        with disk(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def add(self, row: BaseModel) -> None:
        """Append a row."""
        plain = row.model_dump(exclude=self._without)
        size = sum(len(value["bytes"]) for value in plain.values() if isinstance(value, dict) and "bytes" in value)
        if self._rows and (len(self._rows) >= ROWS_PER_GROUP or self._bytes + size > BYTES_PER_GROUP):
            self._flush()
        self._rows.append(plain)
        self._bytes += size

    def _flush(self) -> None:
        if self._writer is None or self._file_bytes + self._bytes > BYTES_PER_FILE:
            self._close_file()
            self._sink = pa.BufferOutputStream()
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                compression=self._compression,
                use_dictionary=False,
                write_page_index=True,
                use_content_defined_chunking=True,
            )
            self._files.append((self._folder / f"open-{len(self._files):05d}.parquet", 0))
            self._file_bytes = 0
        if self._rows:  # `datasets` cannot read a row group of no rows
            table = pa.Table.from_pylist(self._rows, schema=self._schema)
            self._writer.write_table(table, row_group_size=ROWS_PER_GROUP)
        path, rows = self._files[-1]
        self._files[-1] = (path, rows + len(self._rows))
        self._file_bytes += self._bytes
        self._rows, self._bytes = [], 0

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            path, _ = self._files[-1]
            with disk(path):
                path.write_bytes(memoryview(self._sink.getvalue()))

    def close(self, split: str) -> dict[str, int]:
        """Finish, and name the files `<split>-00000-of-0000N.parquet`; an empty split has one, for its columns.

        Returns:
            File name → rows.
        """
        with disk(self._folder):
            if self._rows or not self._files:
                self._flush()
            self._close_file()
            named = {}
            for place, (path, rows) in enumerate(self._files):
                name = f"{split}-{place:05d}-of-{len(self._files):05d}.parquet"
                path.rename(self._folder / name)
                named[name] = rows
        return named


def read_rows(path: Path, row: type[BaseModel]) -> Iterator[Any]:
    """The rows of one published file, row group by row group."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        for value in file.read_row_group(group).to_pylist():
            yield row.model_validate(value)
