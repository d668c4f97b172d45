"""Stored rows of withdrawn sources, taken out of Parquet parts and of the plans; the other rows stay as they are."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.records import Key, Source
from tasks.engine.errors import WorkspaceError
from tasks.engine.store import Store
from tasks.engine.tombstones import Withdrawn

STAGES, LEAKAGE = "stages/*/*", "leakage/*"


@dataclass
class Rows:
    """What the parts of a workspace hold of withdrawn sources.

    Attributes:
        count: Their rows.
        parts: The parts with such rows.
        own: Every sha256 in those rows: pictures, edits, files.
        others: Every sha256 in all other rows.
    """

    count: int = 0
    parts: list[Path] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)


def part_files(store: Store, pattern: str) -> list[Path]:
    """The parts in folders below the workspace."""
    return sorted(store.root.glob(f"{pattern}/part-*.parquet"))


def read_table(path: Path, columns: Sequence[str] = ()) -> pa.Table:
    """A part, or those of the named columns that it has.

    Raises:
        WorkspaceError: It cannot be read.
    """
    try:
        file = pq.ParquetFile(path)
        there = [name for name in columns if _has(file.schema_arrow, name)]
        return file.read(columns=there or None, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise WorkspaceError(
            f"cannot read {path}: {str(error).splitlines()[0]}",
            f"delete the folder {path.parent}; the next build makes it anew",
        ) from None


def _has(schema: pa.Schema, name: str) -> bool:
    outer, _, inner = name.partition(".")
    if outer not in schema.names:
        return False
    kind = schema.field(outer).type
    return not inner or (pa.types.is_struct(kind) and kind.get_field_index(inner) >= 0)


def find_rows(store: Store, withdrawn: Withdrawn) -> Rows:
    """Look through every part of every stage, and through what is remembered of excluded sets."""
    found = Rows()
    for path in (*part_files(store, STAGES), *part_files(store, LEAKAGE)):
        table = read_table(path)
        gone = _gone(table, withdrawn)
        hit = table.filter(gone)
        if len(hit):
            found.count += len(hit)
            found.parts.append(path)
            found.own |= _digests(hit)
            table = table.filter(pc.invert(gone))
        found.others |= _digests(table)
    return found


def _gone(table: pa.Table, withdrawn: Withdrawn) -> pa.Array:
    """Which rows are withdrawn: by key, or (portraits of excluded sets, which have keys of their own) by pixels."""
    known = table["portrait"].to_pylist() if "portrait" in table.column_names else table.select(["key"]).to_pylist()
    mask = [
        Key(row["key"]["pool"], row["key"]["source_id"]) in withdrawn.keys
        or withdrawn.shows(row.get("pixel_sha256") or "")
        for row in known
    ]
    return pa.array(mask, pa.bool_())


def _digests(table: pa.Table) -> set[str]:
    return {digest for column in table.columns for chunk in column.chunks for digest in _strings(chunk)}


def _strings(array: pa.Array) -> Iterator[str]:
    """Every sha256 in an array, however deep."""
    if pa.types.is_struct(array.type):
        for inner in array.flatten():
            yield from _strings(inner)
    elif pa.types.is_list(array.type):
        yield from _strings(array.flatten())
    elif pa.types.is_string(array.type):
        yield from array.filter(pc.match_substring_regex(array, "^[0-9a-f]{64}$")).unique().to_pylist()


def remove_rows(store: Store, withdrawn: Withdrawn, parts: Collection[Path]) -> None:
    """Write these parts anew without the rows, then what names them, then delete the old ones.

    What a shard's stages decided is forgotten: the next build decides it again, without a model. Killed anywhere, the
    old part is still there and is found again.
    """
    for path in parts:
        table = read_table(path)
        folder = str(path.parent.relative_to(store.root))
        left = table.filter(pc.invert(_gone(table, withdrawn)))
        name = store.write_table(folder, left)
        for commit in sorted(path.parent.glob("*.json")):
            if commit.name.startswith("decided-"):
                if path.name.encode() in commit.read_bytes():
                    store.remove(str(commit.relative_to(store.root)))
            else:
                _rename_in(store, commit, path.name, name)
        for note in sorted(store.root.glob("runs/*/screened.json")):
            _rename_in(store, note, path.name, name)
        store.remove(str(path.relative_to(store.root)))


def _rename_in(store: Store, path: Path, old: str, new: str) -> None:
    """A part's name, in the JSON file that lists it. Names are digests, so text is enough."""
    data = store.read(str(path.relative_to(store.root))) or b""
    if old.encode() in data:
        store.write(str(path.relative_to(store.root)), data.replace(old.encode(), new.encode()))


def planned(store: Store) -> Iterator[tuple[str, Source]]:
    """(run, source) of every plan."""
    for path in sorted(store.root.glob("runs/*/plan-*/*.json")):
        name = path.relative_to(store.root)
        for shard in store.read_as(str(name), list[list[Source]]) or ():
            yield from ((name.parts[1], source) for source in shard)


def strip_plans(store: Store, withdrawn: Withdrawn) -> None:
    """Leave of a withdrawn source's planned row its key and licence: where it lies and whom it shows go."""
    for path in sorted(store.root.glob("runs/*/plan-*/*.json")):
        name = str(path.relative_to(store.root))
        shards = store.read_as(name, list[list[Source]]) or []
        left = [[withdrawn.left_of(source) for source in shard] for shard in shards]
        if left != shards:
            store.write_json(name, [[source.model_dump(mode="json") for source in shard] for shard in left])
