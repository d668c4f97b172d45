"""Withdrawn sources in published folders: their rows and pictures go, a tombstone row stays, every count is made anew.

The other rows are written as they were. `verify` passes again, and a folder is the old one or the new one, never half.
"""

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from schemas.outcomes import Reason
from schemas.packs import PackManifest
from schemas.published import PICTURES, Manifest
from schemas.records import Key
from tasks.dataset.parquet import RowWriter, left_out
from tasks.dataset.read import EMPTY, KINDS, config_of, data_set, plain_rows, read_manifest, tables, typed_rows
from tasks.dataset.recount import back_checks_of, cells_of, funnel_of, sample_of
from tasks.dataset.release import PACKED, full_sha256, whole, write_pack_texts
from tasks.dataset.rows import tombstone_row
from tasks.dataset.rules import Row, key_of
from tasks.dataset.texts import finished_folder, write_texts
from tasks.dataset.withdrawn_other import clean_other, manifest_of, sources_of
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import disk


@dataclass(frozen=True)
class Edition:
    """A published folder.

    Attributes:
        folder: Where it lies.
        manifest: What it says of itself; None where another version of fedbench wrote it.
        sources: Its sources and under which licence, tombstones left out; a pack's have none.
        gone: Rows in it of sources that are withdrawn.
    """

    folder: Path
    manifest: Manifest | PackManifest | None
    sources: dict[Key, str]
    gone: int


def look(folders: Sequence[Path], keys: Collection[Key]) -> list[Edition]:
    """What published folders hold of withdrawn sources.

    Raises:
        ConfigError: A folder cannot be read, is a git clone, or is a pack whose data set is not among the folders.
    """
    editions = [_look(folder, keys) for folder in folders]
    for edition in editions:
        if edition.gone and isinstance(edition.manifest, PackManifest) and _data_set_of(edition, editions) is None:
            raise ConfigError(
                f"{edition.folder} is a pack, and the data set it belongs to is not here",
                "give that one too: --dataset INDEX",
            )
    return editions


def _look(folder: Path, keys: Collection[Key]) -> Edition:
    if (folder / ".git").exists():
        raise ConfigError(
            f"{folder} is a git clone, whose history would keep everything",
            "give a copy without .git, and have the history deleted",
        )
    sources: dict[Key, str] = {}
    gone = 0
    try:
        manifest = read_manifest(folder)
        if isinstance(manifest, Manifest):
            config_of(folder, manifest)
    except ConfigError as error:
        if manifest_of(folder) is None:
            raise ConfigError(f"it cannot be cleaned: {error.message}", "delete it, or move it away") from None
        for key, licence in sources_of(folder):
            sources[key] = licence
            gone += key in keys
        return Edition(folder, None, sources, gone)
    for row in _plain(folder, manifest, ["pool", "source_id", "licence", "reason"]):
        key = Key(row["pool"], row["source_id"])
        if row.get("reason") != Reason.WITHDRAWN:
            sources[key] = row.get("licence", "")
            gone += key in keys
    return Edition(folder, manifest, sources, gone)


def _plain(folder: Path, manifest: Manifest | PackManifest, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of both tables with those of the columns that each has."""
    pack = isinstance(manifest, PackManifest)
    for part, kind in KINDS.items():
        fields = (PACKED[part][1] if pack else kind).model_fields
        yield from plain_rows(folder, tables(manifest.files, part), [name for name in columns if name in fields])


def _data_set_of(pack: Edition, editions: Sequence[Edition]) -> Edition | None:
    wanted = pack.manifest.rows_sha256 if pack.manifest else ""
    return next(
        (one for one in editions if isinstance(one.manifest, Manifest) and one.manifest.rows_sha256 == wanted), None
    )


def clean(editions: Sequence[Edition], keys: Collection[Key]) -> None:
    """Take withdrawn sources out of what `look` found.

    Packs come first: what they must say of their data set follows from it as it was. Then the full sets, whose hashes
    the others carry. So a run that was killed in between can be repeated.
    """
    for edition in editions:
        home = _data_set_of(edition, editions) if isinstance(edition.manifest, PackManifest) else None
        if home and home.gone:
            _clean_pack(edition, home, keys)
    sets = [one for one in editions if isinstance(one.manifest, Manifest) and one.gone]
    full = [one.folder for one in editions if isinstance(one.manifest, Manifest) and one.manifest.pictures == PICTURES]
    for edition in sorted(sets, key=lambda one: one.folder not in full):
        _clean_set(edition, keys, full)
    for edition in editions:
        if edition.manifest is None and edition.gone:
            clean_other(edition.folder, keys)


def _clean_pack(edition: Edition, home: Edition, keys: Collection[Key]) -> None:
    folder, manifest = edition.folder, edition.manifest
    assert isinstance(manifest, PackManifest), "only packs come here"
    triplets, rows_sha256 = _rows_after(home, keys)
    with finished_folder(folder) as aside:
        files: dict[str, int] = {}
        for part, (column, kind) in PACKED.items():
            if column not in manifest.pictures:
                continue
            writer = RowWriter(aside / part, kind)
            for value in plain_rows(folder, tables(manifest.files, part)):
                if Key(value["pool"], value["source_id"]) not in keys:
                    writer.add(kind.model_validate(value))
            files |= {f"{part}/{name}": count for name, count in writer.close(manifest.split).items()}
        update = {"files": files, "triplets": triplets, "rows_sha256": rows_sha256}
        write_pack_texts(aside, manifest.model_copy(update=update))
        _keep_git_notes(folder, aside)


def _rows_after(home: Edition, keys: Collection[Key]) -> tuple[int, str]:
    """How many triplets a data set will have, and the digest of its rows."""
    manifest = home.manifest
    assert manifest is not None, "a pack's data set is of its own version"
    digests = [tombstone_row(key, licence).row_sha256 for key, licence in home.sources.items() if key in keys]
    triplets = 0
    for row in _plain(home.folder, manifest, ["pool", "source_id", "reason", "row_sha256", "dense_instruction"]):
        if row.get("reason") == Reason.WITHDRAWN or Key(row["pool"], row["source_id"]) not in keys:
            digests.append(row["row_sha256"])
            triplets += "dense_instruction" in row
    return triplets, fingerprint(sorted(digests))


def _clean_set(edition: Edition, keys: Collection[Key], full: Sequence[Path]) -> None:
    folder, manifest = edition.folder, edition.manifest
    assert isinstance(manifest, Manifest), "no packs come here"
    config = config_of(folder, manifest)
    with finished_folder(folder) as aside:
        files: dict[str, int] = {}
        rows: list[Row] = []
        for part, kind in KINDS.items():
            writer = RowWriter(aside / part, kind, left_out(kind, manifest.pictures))
            kept = (row for row in typed_rows(folder, manifest, part) if _stays(row, keys))
            stones = [tombstone_row(key, edition.sources[key]) for key in sorted(edition.sources) if key in keys]
            for row in chain(kept, stones if part == "rejected" else ()):
                writer.add(row)
                rows.append(row.model_copy(update={column: EMPTY for column in PICTURES if getattr(row, column, None)}))
            files |= {f"{part}/{name}": count for name, count in writer.close(manifest.split).items()}
        made = manifest.model_copy(
            update={
                "files": files,
                "triplets": sum(not hasattr(row, "stage") for row in rows),
                "funnel": funnel_of(rows, [line.stage for line in manifest.funnel]),
                "cells": cells_of(rows, config),
                "back_checks": back_checks_of(rows),
                "sample": sample_of(rows, config),
                "rows_sha256": fingerprint(sorted(row.row_sha256 for row in rows)),
            }
        )
        if manifest.full_sha256:
            made = made.model_copy(update={"full_sha256": _full_sha256(made, full)})
        write_texts(aside, made.model_dump(mode="json"))
        _keep_git_notes(folder, aside)


def _stays(row: Row, keys: Collection[Key]) -> bool:
    return key_of(row).source() not in keys or getattr(row, "reason", "") == Reason.WITHDRAWN


def _full_sha256(made: Manifest, full: Sequence[Path]) -> str:
    """Of the full release with these rows, if it is here and clean already; else nobody knows what it would be."""
    for folder in full:
        if read_manifest(folder).rows_sha256 == made.rows_sha256:
            return full_sha256(*whole(folder))
    return ""


def _keep_git_notes(folder: Path, aside: Path) -> None:
    with disk(aside):
        for note in folder.glob(".git*"):
            shutil.copyfile(note, aside / note.name)


def withdrawn_in(folder: Path) -> set[Key]:
    """The sources that a data set, or a release of one, says were withdrawn.

    Raises:
        ConfigError: It is none, or it says of nobody so.
    """
    manifest = data_set(folder)
    rows = plain_rows(folder, tables(manifest.files, "rejected"), ["pool", "source_id", "reason"])
    keys = {Key(row["pool"], row["source_id"]) for row in rows if row["reason"] == Reason.WITHDRAWN}
    if not keys:
        raise ConfigError(f"nothing is withdrawn in {folder}", "give a newer release to --like")
    return keys
