"""Opens published folders: their manifest, and their rows one row group at a time."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from schemas.config import BuildConfig
from schemas.packs import PackManifest
from schemas.published import SCHEMA_VERSION, ImageCell, Manifest, RejectedRow, TripletRow
from tasks.engine.errors import ConfigError

KINDS: Final[dict[str, type[BaseModel]]] = {"data": TripletRow, "rejected": RejectedRow}
# In the place of a picture that is not here, or was looked at and let go.
EMPTY: Final = ImageCell(bytes=b"", path="")


def read_manifest(folder: Path) -> Manifest | PackManifest:
    """The manifest of a data set or of a pack.

    Raises:
        ConfigError: The folder is neither, or of another schema version.
    """
    path = folder / "manifest.json"
    try:
        values = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
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
        return (PackManifest if "kind" in values else Manifest).model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_fault(error)}", "publish it anew") from None


def first_fault(error: ValidationError) -> str:
    """Where and what, of the first mistake."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])[:100]}: {first['msg']}"


def data_set(folder: Path) -> Manifest:
    """The manifest of a data set.

    Raises:
        ConfigError: It is none, or a pack.
    """
    manifest = read_manifest(folder)
    if isinstance(manifest, PackManifest):
        raise ConfigError(f"{folder} is a pack of pictures, not a data set", "give the data set's folder")
    return manifest


def config_of(folder: Path, manifest: Manifest) -> BuildConfig:
    """The config a data set was built with, but for what changed no row and where things lay.

    Raises:
        ConfigError: It is no config.
    """
    try:
        return BuildConfig.model_validate(manifest.config | {"name": manifest.name})
    except ValidationError as error:
        raise ConfigError(f"{folder / 'manifest.json'}: {first_fault(error)}", "publish it anew") from None


def tables(files: Collection[str], part: str) -> list[str]:
    """The Parquet files of one table, in order."""
    return sorted(name for name in files if name.startswith(f"{part}/"))


def plain_rows(folder: Path, names: Sequence[str], columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of these files as plain values; holds one row group.

    Raises:
        ConfigError: A file cannot be read.
    """
    for name in names:
        try:
            file = pq.ParquetFile(folder / name)
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group, columns=columns).to_pylist()
        except (pa.ArrowException, OSError) as error:
            what = str(error).partition("\n")[0]
            raise ConfigError(f"cannot read {folder / name}: {what}", "run `fedbench verify` on the folder") from None


def typed_rows(folder: Path, manifest: Manifest, part: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The rows of "data" or "rejected"; an empty cell stands for a picture that is not there or not among `columns`.

    Raises:
        ConfigError: A file cannot be read, or a row is not of its type.
    """
    for value in plain_rows(folder, tables(manifest.files, part), columns):
        try:
            yield KINDS[part].model_validate(filled(value, part))
        except ValidationError as error:
            raise ConfigError(f"{folder}: {first_fault(error)}", "run `fedbench verify` on the folder") from None


def filled(value: dict[str, Any], part: str) -> dict[str, Any]:
    """A row's values with empty cells for the pictures that it has by hash alone."""
    if part == "data":
        return {"source": EMPTY, "ground_truth": EMPTY} | value
    return {"image": EMPTY if value.get("image_sha256") else None} | value


class Finder:
    """Rows of a table by a key, from whatever row group they lie in; holds one row group.

    Args:
        folder: The data set or pack.
        names: The table's files.
        key: The column to find by; of equal values the first row counts.
        columns: What a row found has.
    """

    def __init__(self, folder: Path, names: Sequence[str], key: str, columns: Sequence[str]) -> None:
        self._folder = folder
        self._columns = list(columns)
        self._places: dict[Any, tuple[str, int, int]] = {}
        self._held: tuple[tuple[str, int], list[dict[str, Any]]] | None = None
        for name in names:
            try:
                file = pq.ParquetFile(folder / name)
                for group in range(file.num_row_groups):
                    for row, value in enumerate(file.read_row_group(group, columns=[key]).to_pylist()):
                        self._places.setdefault(value[key], (name, group, row))
            except (pa.ArrowException, OSError, KeyError) as error:
                what = str(error).partition("\n")[0]
                raise ConfigError(f"cannot read {folder / name}: {what}", "run `fedbench verify` on it") from None

    def get(self, key: Any) -> dict[str, Any] | None:
        """A row, or None if there is none.

        Raises:
            ConfigError: The file cannot be read.
        """
        place = self._places.get(key)
        if place is None:
            return None
        name, group, row = place
        if self._held is None or self._held[0] != (name, group):
            self._held = None
            try:
                table = pq.ParquetFile(self._folder / name).read_row_group(group, columns=self._columns)
            except (pa.ArrowException, OSError) as error:
                what = str(error).partition("\n")[0]
                raise ConfigError(f"cannot read {self._folder / name}: {what}", "fetch the file anew") from None
            self._held = ((name, group), table.to_pylist())
        return self._held[1][row]
