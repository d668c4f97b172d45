"""Rebuilds the full data set from an index, the pack of edited pictures, and a user's own copy of the sources."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from schemas.config import BuildConfig
from schemas.packs import PackManifest
from schemas.published import PICTURES, ImageCell, Manifest, RejectedRow, TripletRow
from schemas.records import Key, Source
from tasks.dataset.parquet import RowWriter, left_out
from tasks.dataset.pictures import picture_name
from tasks.dataset.read import KINDS, Finder, config_of, data_set, plain_rows, read_manifest, tables, typed_rows
from tasks.dataset.release import PACKED
from tasks.dataset.rows import row_digest
from tasks.dataset.rules import Fault, Row, key_of
from tasks.dataset.texts import file_sha256, finished_folder, write_texts
from tasks.engine.decode import encode_png
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.leakage.hashes import pixel_sha256
from tasks.pipeline import open_pools
from tasks.sources import SourcePool


@dataclass
class Hydrated:
    """What became of it.

    Attributes:
        triplets: How many the data set holds.
        faults: What is missing or not what its hash says, by key; with one, nothing is written.
        identical: Whether the files are those of the full release, byte for byte.
        note: Why not, in words.
    """

    triplets: int
    faults: list[Fault] = field(default_factory=list)
    identical: bool = False
    note: str = ""


class _Incomplete(Exception):
    """Something is missing, so the folder must not appear."""


def hydrate(index: Path, pack: Path, config: BuildConfig, out: Path) -> Hydrated:
    """Fill an index with its pictures, each checked against its hashes.

    Args:
        index: An index release.
        pack: The pack of the same edition.
        config: Of which only the pools count: the user's own copies, under the names that the index has. Options
            that it does not give are the build's.
        out: The full data set's folder; appears only if nothing is missing.

    Raises:
        ConfigError: A folder is not what it should be, they do not belong together, or a pool is not given.
    """
    manifest, packed = _opened(index, pack)
    wanted = _wanted(index, manifest)
    copy = _OwnCopy(_pools(manifest, _as_built(config, config_of(index, manifest))), wanted)
    edits = {
        part: Finder(pack, tables(packed.files, part), "id", [f"{column}_sha256", column])
        for part, (column, _) in PACKED.items()
        if column in packed.pictures
    }
    pictures = tuple(column for column in PICTURES if column == "source" or column in packed.pictures)
    result = Hydrated(manifest.triplets)
    try:
        with finished_folder(out) as aside:
            result.faults = _write(aside, index, manifest, pictures, _Parts(copy, edits))
            if result.faults:
                raise _Incomplete
            result.identical, result.note = _compared(aside, manifest, pictures)
    except _Incomplete:
        pass
    return result


def _opened(index: Path, pack: Path) -> tuple[Manifest, PackManifest]:
    manifest, packed = data_set(index), read_manifest(pack)
    if not isinstance(packed, PackManifest):
        raise ConfigError(f"{pack} is a data set, not a pack", "give the pack's folder to --pack")
    if manifest.pictures:
        raise ConfigError(f"{index} has pictures already", "only an index is hydrated")
    if "ground_truth" not in packed.pictures:
        raise ConfigError(f"{pack} holds no ground truths", "fetch the whole pack")
    if packed.rows_sha256 != manifest.rows_sha256:
        raise ConfigError(
            f"{pack} ({packed.name} {packed.edition}) is not the pack of {index} ({manifest.name} {manifest.edition})",
            "fetch both from one release",
        )
    return manifest, packed


def _wanted(index: Path, manifest: Manifest) -> set[Key]:
    names = tables(manifest.files, "data")
    return {Key(row["pool"], row["source_id"]) for row in plain_rows(index, names, ["pool", "source_id"])}


def _as_built(own: BuildConfig, built: BuildConfig) -> BuildConfig:
    """The user's pools with the options of the build (aligned or original, which frame) where they name no other."""
    pools = []
    for spec in own.pools:
        same = [
            one for one in built.pools if (one.name, one.params.get("pool")) == (spec.name, spec.params.get("pool"))
        ]
        pools.append(spec.model_copy(update={"params": (same[0].params if same else {}) | spec.params}))
    return own.model_copy(update={"pools": tuple(pools)})


def _pools(manifest: Manifest, config: BuildConfig) -> dict[str, SourcePool]:
    pools = open_pools(config)
    missing = [pool for pool in manifest.pools if pool.licences and pool.name not in pools]
    if missing:
        pool = missing[0]
        raise ConfigError(
            f"{manifest.name} {manifest.edition} needs the pool '{pool.name}' (kind '{pool.kind}'); "
            f"given: {', '.join(pools)}",
            f"give your own copy: --set 'pools=[{{name: {pool.kind}, params: {{root: FOLDER}}}}]'",
        )
    return pools


@dataclass(frozen=True)
class _Parts:
    """Where pictures come from: sources from the user's copy, edits from the pack's tables."""

    copy: "_OwnCopy"
    edits: dict[str, Finder]


class _OwnCopy:
    """The user's sources by key; the last one is kept, since rows of a source follow each other."""

    def __init__(self, pools: dict[str, SourcePool], wanted: set[Key]) -> None:
        self._pools = pools
        names = {key.pool for key in wanted}
        self._sources: dict[Key, Source] = {
            source.key: source
            for name, pool in pools.items()
            if name in names
            for source in pool.list()
            if source.key in wanted
        }
        self._last: tuple[Key, tuple[bytes, str, str]] | None = None

    def picture(self, row: TripletRow) -> Iterator[Fault | bytes]:
        """The source's PNG, or every reason why it cannot be had."""
        key = key_of(row).source()
        if self._last is None or self._last[0] != key:
            source = self._sources.get(key)
            if source is None:
                yield Fault(str(key), "missing", f"your copy of '{key.pool}' has no such source")
                return
            try:
                loaded = self._pools[key.pool].load(source)
            except UnreadableImage as error:
                yield Fault(str(key), error.reason, str(error))
                return
            self._last = key, (encode_png(loaded.pixels), loaded.file_sha256, pixel_sha256(loaded.pixels))
        png, file_hash, pixel_hash = self._last[1]
        same_pixels = pixel_hash == row.source_pixel_sha256
        if file_hash != row.source_file_sha256:
            also = "though its pixels are the same" if same_pixels else "and so are its pixels"
            yield Fault(str(key), "file", f"your file is another one than the data set was made from, {also}")
        elif not same_pixels:
            yield Fault(str(key), "pixels", "the file is the same, but it is decoded or cropped to other pixels here")
        elif sha256(png) != row.source_sha256:
            yield Fault(str(key), "png", "the pixels are the same, but this OpenCV writes another PNG of them")
        else:
            yield png


def _write(aside: Path, index: Path, manifest: Manifest, pictures: tuple[str, ...], parts: "_Parts") -> list[Fault]:
    """Write the filled rows; what is wrong, told once. After the first fault the rest is only looked at."""
    files: dict[str, int] = {}
    digests: list[str] = []
    told: dict[Fault, None] = {}
    for part, kind in KINDS.items():
        writer = RowWriter(aside / part, kind, left_out(kind, pictures))
        for row in typed_rows(index, manifest, part):
            digests.append(row_digest(row))
            if digests[-1] != row.row_sha256:
                told[Fault(row.id, "row", "a column was changed after row_sha256 was made")] = None
            found = list(_filled(row, parts))
            # Several triplets may have one source, whose fault is told once.
            told |= dict.fromkeys(one for one in found if isinstance(one, Fault))
            if not told:
                writer.add(row.model_copy(update=dict(one for one in found if not isinstance(one, Fault))))
        files |= {f"{part}/{name}": count for name, count in writer.close(manifest.split).items()}
    if fingerprint(sorted(digests)) != manifest.rows_sha256:
        told[Fault("manifest.json", "rows", "the index's rows are not those it was made from")] = None
    if not told:
        update = {"files": files, "pictures": pictures}
        update |= {"full_sha256": ""} if pictures == PICTURES else {}
        write_texts(aside, manifest.model_copy(update=update).model_dump(mode="json"))
    return list(told)


def _filled(row: Row, parts: "_Parts") -> Iterator[tuple[str, ImageCell] | Fault]:
    """(column, picture) for each picture the row gets, or what is wrong with it."""
    if isinstance(row, TripletRow):
        for found in parts.copy.picture(row):
            yield found if isinstance(found, Fault) else ("source", _cell(row, "source", found))
        yield _edit(row, "ground_truth", row.ground_truth_sha256, parts.edits["data"])
    elif isinstance(row, RejectedRow) and row.image_sha256 and "rejected" in parts.edits:
        yield _edit(row, "image", row.image_sha256, parts.edits["rejected"])


def _edit(row: Row, column: str, digest: str, finder: Finder) -> tuple[str, ImageCell] | Fault:
    held = finder.get(row.id)
    if held is None:
        return Fault(row.id, "missing", f"the pack has no {column} of this key")
    data = held[column]["bytes"]
    if sha256(data) != digest:
        return Fault(row.id, f"{column} hash", "the pack's picture is not the one of the index")
    return column, _cell(row, column, data)


def _cell(row: Row, column: str, data: bytes) -> ImageCell:
    return ImageCell(bytes=data, path=picture_name(key_of(row), column))


def _compared(folder: Path, index: Manifest, pictures: tuple[str, ...]) -> tuple[bool, str]:
    """Whether a hydrated folder is the full release, and why not."""
    if pictures != PICTURES:
        return False, "the pack has no pictures of rejected edits; every other picture is in its place"
    if file_sha256(folder / "checksums.sha256") == index.full_sha256:
        return True, ""
    if not index.full_sha256:
        return (
            False,
            "every picture and row is in its place; sources were withdrawn from the index, so no hash is known",
        )
    here = metadata.version("pyarrow")
    why = f"it was written with pyarrow {index.pyarrow}, here is {here}" if here != index.pyarrow else "texts differ"
    return False, f"every picture and row is that of the full release, the files are not: {why}"
