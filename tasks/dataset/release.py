"""Releases of a data set that lies in the workspace: with its pictures, without them, and the pack of edited ones."""

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from schemas.packs import PackedEdit, PackedTruth, PackManifest
from schemas.published import PICTURES, SCHEMA_VERSION, Manifest, PoolUsed
from schemas.records import Record
from tasks.dataset.card import render_pack_card
from tasks.dataset.parquet import RowWriter, left_out
from tasks.dataset.read import KINDS, data_set, plain_rows, tables, typed_rows
from tasks.dataset.texts import (
    checksum_lines,
    digests,
    finished_folder,
    json_bytes,
    said_checksums,
    texts_of,
    write_checked,
    write_texts,
)
from tasks.dataset.write import released_record
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import sha256
from tasks.engine.store import Store, disk

PACK_TEXTS: Final = ("README.md", "manifest.json", "checksums.sha256")
# Part → the column its pictures fill, and its row type.
PACKED: Final[dict[str, tuple[str, type[Record]]]] = {
    "data": ("ground_truth", PackedTruth),
    "rejected": ("image", PackedEdit),
}


def check_acknowledged(manifest: Manifest, acknowledged: Collection[str]) -> None:
    """Refuse to pass on pictures of a pool whose licence forbids it, unless the user says that they may.

    Raises:
        ConfigError: A pool is not acknowledged, or what is acknowledged is no pool of this data set.
    """
    unknown = sorted(set(acknowledged) - {pool.name for pool in manifest.pools})
    if unknown:
        known = ", ".join(pool.name for pool in manifest.pools)
        raise ConfigError(f"no pool '{unknown[0]}' in {manifest.name} {manifest.edition}", f"its pools: {known}")
    for pool in manifest.pools:
        if not pool.redistributable and pool.name not in acknowledged:
            raise ConfigError(
                f"pool '{pool.name}' may not be passed on with its pictures ({licence_words(pool)})",
                f"release the index, or say that you may: --acknowledge {pool.name} (or publish.acknowledge_licences)",
            )


def licence_words(pool: PoolUsed) -> str:
    """A pool's licences in one line."""
    return "; ".join(licence or "no licence named" for licence in pool.licences) or f"kind '{pool.kind}'"


def released(local: Path, out: Path, pictures: Collection[str]) -> Path:
    """Write a release of a full data set: its tables without the pictures that are not named.

    Args:
        local: The full data set; left as it is.
        out: The release's folder.
        pictures: Of `schemas.published.PICTURES`.

    Raises:
        ConfigError: `local` is no full data set or was changed since it was written, or `out` holds something else.
    """
    manifest, hashes = whole(local)
    _check_apart(local, out)
    kept = tuple(column for column in manifest.pictures if column in pictures)
    with finished_folder(out) as aside:
        files: dict[str, int] = {}
        for part, kind in KINDS.items():
            without = left_out(kind, kept)
            if without == left_out(kind, manifest.pictures):
                files |= _copied(local, aside, manifest, part)
                continue
            writer = RowWriter(aside / part, kind, without)
            columns = [name for name in kind.model_fields if name not in without]  # no other picture is read
            for row in typed_rows(local, manifest, part, columns):
                writer.add(row)
            files |= {f"{part}/{name}": count for name, count in writer.close(manifest.split).items()}
        made = manifest.model_copy(
            update={
                "files": files,
                "pictures": kept,
                "full_sha256": "" if kept == manifest.pictures else full_sha256(manifest, hashes),
            }
        )
        write_texts(aside, made.model_dump(mode="json"))
    return out


def packed(local: Path, out: Path, pictures: Collection[str]) -> Path:
    """Write the gated pack of a full data set: its ground truths, and the pictures of rejected edits if named.

    Raises:
        ConfigError: As `released`.
    """
    manifest, _ = whole(local)
    _check_apart(local, out)
    kept = tuple(column for column, _ in PACKED.values() if column in pictures)
    with finished_folder(out) as aside:
        files: dict[str, int] = {}
        for part, (column, kind) in PACKED.items():
            if column not in kept:
                continue
            writer = RowWriter(aside / part, kind)
            for value in plain_rows(local, tables(manifest.files, part), list(kind.model_fields)):
                if value[column] is not None:
                    writer.add(kind.model_validate(value))
            files |= {f"{part}/{name}": count for name, count in writer.close(manifest.split).items()}
        made = PackManifest(
            kind="pack",
            schema_version=SCHEMA_VERSION,
            pictures=kept,
            files=files,
            **manifest.model_dump(
                include={"name", "edition", "split", "fedbench", "pyarrow", "pools", "triplets", "rows_sha256"}
            ),
        )
        write_pack_texts(aside, made)
    return out


def write_pack_texts(folder: Path, manifest: PackManifest) -> None:
    """Write manifest, card and checksums of a pack beside its tables."""
    values = manifest.model_dump(mode="json")
    texts = {"manifest.json": json_bytes(values), "README.md": render_pack_card(values).encode()}
    write_checked(folder, texts, digests(folder))


def whole(local: Path) -> tuple[Manifest, dict[str, str]]:
    """The manifest of a full data set whose files are those that were written, and their sha256 by name.

    Raises:
        ConfigError: It is no full data set, or a file was changed or lost.
    """
    manifest = data_set(local)
    if manifest.pictures != PICTURES:
        raise ConfigError(f"{local} lacks pictures: it is a release", "release from the build's own data set")
    with disk(local):
        said = said_checksums((local / "checksums.sha256").read_bytes())
    found = digests(local)
    changed = sorted(name for name in {*said, *found} if said.get(name) != found.get(name))
    if changed:
        raise ConfigError(f"{local / changed[0]} is not what was written", "run `fedbench build` again, or verify it")
    return manifest, found


def note_released(store: Store, manifest: Manifest) -> None:
    """Remember that an edition of the workspace was passed on: from then on no build may change its rows."""
    store.write_json(released_record(manifest.name, manifest.edition), {"rows_sha256": manifest.rows_sha256})


def full_sha256(manifest: Manifest, hashes: Mapping[str, str]) -> str:
    """Of the full release's checksums, as a release would be now: its texts are this program's, its tables the same."""
    tables_only = {name: hashes[name] for name in manifest.files}
    return sha256(checksum_lines(texts_of(manifest.model_dump(mode="json"), tables_only), tables_only))


def _copied(local: Path, aside: Path, manifest: Manifest, part: str) -> dict[str, int]:
    with disk(aside):
        (aside / part).mkdir(parents=True)
        for name in tables(manifest.files, part):
            shutil.copyfile(local / name, aside / name)
    return {name: manifest.files[name] for name in tables(manifest.files, part)}


def _check_apart(local: Path, out: Path) -> None:
    here, there = local.resolve(), out.resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise ConfigError(f"{out} is not apart from the data set {local}", "choose another --out")
