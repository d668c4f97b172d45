"""Withdrawn sources in folders that another version of fedbench published: their rows go, the rest is left as it is.

What such a folder says of its rows cannot be made anew here, but a withdrawal cannot wait for it. Its card says which
numbers are from before; `verify` of either version has something to say, until the edition is published again.
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.outcomes import Reason
from schemas.records import Key
from tasks.dataset.texts import checksums, file_sha256, finished_folder, json_bytes
from tasks.engine.errors import ConfigError
from tasks.engine.store import disk

_NOTE = "\n## Withdrawn\n\n{rows} rows of withdrawn sources were taken out; all numbers above are from before.\n"


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest as plain values, if it is one by the look of it."""
    try:
        values = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) and isinstance(values.get("files"), dict) else None


def sources_of(folder: Path) -> Iterator[tuple[Key, str]]:
    """(source, licence) of every row that is no tombstone.

    Raises:
        ConfigError: A table cannot be read, or does not say whose its rows are.
    """
    for path in _tables(folder):
        try:
            file = pq.ParquetFile(path)
            columns = [name for name in ("pool", "source_id", "licence", "reason") if name in file.schema_arrow.names]
            for group in range(file.num_row_groups):
                for row in file.read_row_group(group, columns=columns).to_pylist():
                    if row.get("reason") != Reason.WITHDRAWN:
                        yield Key(row["pool"], row["source_id"]), row.get("licence") or ""
        except (pa.ArrowException, OSError, KeyError) as error:
            what = str(error).partition("\n")[0]
            raise ConfigError(
                f"it cannot be cleaned: cannot read {path}: {what}", "delete it, or move it away"
            ) from None


def clean_other(folder: Path, keys: Collection[Key]) -> None:
    """Write the folder anew without these sources' rows."""
    values = manifest_of(folder)
    assert values is not None, "it was read a moment ago"
    with finished_folder(folder) as aside:
        counts, renamed, gone = {}, {}, 0
        for path in _tables(folder):
            name = path.relative_to(folder).as_posix()
            counts[name], lost = _without(path, aside / name, keys)
            gone += lost
            renamed[file_sha256(path)] = file_sha256(aside / name)
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.name != "checksums.sha256":
                data = path.read_bytes()
                for before, after in renamed.items():  # Croissant names the tables by their hashes
                    data = data.replace(before.encode(), after.encode())
                with disk(aside):
                    (aside / path.name).write_bytes(data)
        triplets = sum(count for name, count in counts.items() if name.startswith("data/"))
        made = (
            values | {"files": counts, "triplets": triplets} | ({"full_sha256": ""} if "full_sha256" in values else {})
        )
        with disk(aside):
            (aside / "manifest.json").write_bytes(json_bytes(made))
            if (aside / "README.md").exists():
                with (aside / "README.md").open("a", encoding="utf-8") as card:
                    card.write(_NOTE.format(rows=gone))
            (aside / "checksums.sha256").write_text(checksums(aside), encoding="utf-8")


def _tables(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.parquet"))


def _without(path: Path, target: Path, keys: Collection[Key]) -> tuple[int, int]:
    """Copy a table without the rows of these sources; how many stayed, and how many went."""
    file, stayed, gone = pq.ParquetFile(path), 0, 0
    with disk(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(target, file.schema_arrow, compression="zstd") as writer:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                named = zip(table["pool"].to_pylist(), table["source_id"].to_pylist(), strict=True)
                kept = table.filter(pa.array([Key(pool, source) not in keys for pool, source in named], pa.bool_()))
                stayed, gone = stayed + len(kept), gone + len(table) - len(kept)
                if len(kept):
                    writer.write_table(kept)
    return stayed, gone
