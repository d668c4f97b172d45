"""The three kinds of side: an image folder, a published data set, a run of a workspace. Each opens pictures late."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from schemas.outcomes import Status
from schemas.portraits import Portrait
from schemas.records import Key, Photo, Record, Source, SourceFacts
from tasks.engine.decode import decode, decode_png
from tasks.engine.errors import ConfigError, UnreadableImage, WorkspaceError
from tasks.engine.execute import Executor
from tasks.engine.images import ImageStore
from tasks.engine.rows import Commit, decided_type, measured_type
from tasks.engine.store import Store
from tasks.leakage.eye import Eye
from tasks.sources.folder import FolderPool

_NO_PICTURE: Final = "no picture"
_COLUMNS: Final = ("pool", "source_id", "clip", "subject", "source_pixel_sha256", "source_sha256")


@dataclass(frozen=True, slots=True)
class Entry:
    """A source of a side, before anybody looks at its picture.

    Attributes:
        portrait: What is known already.
        stamp: Changes when the picture does.
    """

    portrait: Portrait
    stamp: str


class _ScreenedShard(Record):
    """Where a shard's measurements and decisions lie."""

    id: str
    measured: tuple[str, ...]
    decided: str


class _Screened(Record):
    """What a run's screening left: made by which models (`Eye.model`), and where."""

    run: str
    model: str
    shards: tuple[_ScreenedShard, ...]


class Place(Protocol):
    """A side.

    Attributes:
        entries: Every source once.
        scope: Within it, equal keys and stamps are equal pictures.
    """

    entries: Sequence[Entry]
    scope: str

    def pictures(self, wanted: Collection[Key]) -> Iterator[tuple[Key, NDArray[np.uint8] | str]]:
        """RGB (H, W, 3) uint8 pixels of the wanted sources, or why there are none; one at a time."""
        ...


def open_place(path: str) -> Place:
    """The side that a path names: a workspace (`PATH` or `PATH#run`), a data set, or else a folder of images.

    Raises:
        ConfigError: There is nothing, or nothing usable, at the path.
    """
    root, run = Path(path), ""
    if not root.is_dir() and "#" in path:
        before, _, run = path.rpartition("#")
        root = Path(before)
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "does not exist"
        raise ConfigError(f"'{root}' {what}", "give a workspace, PATH#run, a data set, or a folder of images")
    if (root / "runs").is_dir():
        return _Workspace(root, run)
    if run:
        raise ConfigError(f"'{root}' is no workspace, so it has no run '{run}'", "leave out what stands after the #")
    if (root / "manifest.json").is_file() and (root / "data").is_dir():
        return _DataSet(root)
    return _Folder(root)


class _Folder:
    """Any folder of images, class folders or not."""

    def __init__(self, root: Path) -> None:
        self.scope = f"folder {root.resolve()}"
        self._pool = FolderPool(FolderPool.Params(root=str(root)))
        self._sources: dict[Key, Source] = {source.key: source for source in self._pool.list()}
        self.entries: Sequence[Entry] = [Entry(Portrait(key=row.key), row.stamp) for row in self._sources.values()]

    def pictures(self, wanted: Collection[Key]) -> Iterator[tuple[Key, NDArray[np.uint8] | str]]:
        for key, source in self._sources.items():
            if key in wanted:
                try:
                    yield key, self._pool.load(source).pixels
                except UnreadableImage as error:
                    yield key, f"not readable ({error.reason})"


class _DataSet:
    """The sources of a published data set's triplets, each once. An `index` release has no pictures."""

    scope = "data set"  # the stamps are hashes of pictures

    def __init__(self, root: Path) -> None:
        self._files = sorted((root / "data").glob("*.parquet"))
        found: dict[Key, Entry] = {}
        for row in (row for file in self._files for row in _rows(file, _COLUMNS)):
            key = Key(row["pool"], row["source_id"])
            clip, subject = row.get("clip") or "", row.get("subject") or ""
            portrait = Portrait(
                key=key,
                clip=f"{key.pool}/{clip}" if clip else "",
                person=_person(key.pool, subject),
                pixel_sha256=row.get("source_pixel_sha256") or "",
            )
            found.setdefault(key, Entry(portrait, row.get("source_sha256") or ""))
        self.entries: Sequence[Entry] = list(found.values())
        if not self.entries:
            raise ConfigError(f"the data set {root} has no triplet", "nothing can be compared with it")

    def pictures(self, wanted: Collection[Key]) -> Iterator[tuple[Key, NDArray[np.uint8] | str]]:
        seen: set[Key] = set()
        for file in self._files:
            for row in _rows(file, ("pool", "source_id", "source")):
                key = Key(row["pool"], row["source_id"])
                if key in wanted and key not in seen:
                    seen.add(key)
                    yield key, _pixels((row.get("source") or {}).get("bytes"))


def _pixels(data: bytes | None) -> NDArray[np.uint8] | str:
    if not data:
        return _NO_PICTURE
    try:
        return decode(data)
    except UnreadableImage as error:
        return f"not readable ({error.reason})"


def _rows(file: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a published file with those of the columns that it has, row group by row group."""
    try:
        parquet = pq.ParquetFile(file)
        there = [name for name in columns if name in parquet.schema_arrow.names]
        if not {"pool", "source_id"} <= set(there):
            raise ConfigError(f"{file} has no columns pool and source_id", "it is no data set of fedbench's")
        for group in range(parquet.num_row_groups):
            yield from parquet.read_row_group(group, columns=there).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"cannot read {file}: {str(error).splitlines()[0]}", "run `fedbench verify` on it") from None


class _Workspace:
    """The sources that a run's screening kept, from what it stored: no pool and no model is needed.

    They are those that an edition of the run may hold.
    """

    def __init__(self, root: Path, run: str) -> None:
        store = Store(root)
        self._images = ImageStore(store)
        self._digests: dict[Key, str] = {}
        entries: list[Entry] = []
        record = _screened(store, root, run)
        self.scope = scope_of(root, record.run)
        for shard in record.shards:
            folder = f"stages/screen/{shard.id}"
            facts: dict[tuple[Key, str], SourceFacts] = {}
            for part in shard.measured:
                kind: Any = measured_type(SourceFacts)
                facts |= {
                    (row.key, row.value.pixel_sha256): row.value
                    for row in store.read_part(folder, part, kind)
                    if row.value is not None
                }
            decided: Any = decided_type(Photo)
            for row in store.read_part(folder, shard.decided, decided):
                if row.status is Status.KEPT:
                    photo = row.value
                    known = portrait_of(photo, facts[photo.key, photo.pixel_sha256], record.model)
                    entries.append(Entry(known, photo.image))
                    self._digests[photo.key] = photo.image
        self.entries: Sequence[Entry] = entries
        if not entries:
            raise ConfigError(f"screening kept no source of {root}#{record.run}", "nothing can be compared with it")

    def pictures(self, wanted: Collection[Key]) -> Iterator[tuple[Key, NDArray[np.uint8] | str]]:
        for key, digest in self._digests.items():
            if key in wanted:
                try:
                    yield key, decode_png(self._images.read(digest))
                except WorkspaceError:
                    yield key, _NO_PICTURE


def scope_of(workspace: Path, run: str) -> str:
    """The scope of a workspace's run."""
    return f"run {workspace.resolve()}#{run}"


def _screened(store: Store, root: Path, run: str) -> _Screened:
    runs = sorted(path.parent.name for path in root.glob("runs/*/screened.json"))
    if not run and len(runs) == 1:
        run = runs[0]
    if run not in runs:
        known = ", ".join(runs) or "none yet"
        raise ConfigError(f"which run of {root}? screened are: {known}", f"write {root}#NAME, or build it first")
    note = store.read_as(f"runs/{run}/screened.json", _Screened)
    assert note is not None, "it was listed a moment ago"
    return note


def note_screening(executor: Executor, run: str, eye: Eye, done: Sequence[dict[str, Commit]]) -> None:
    """Leave a note of what screening decided, for readers that have neither the pools nor the models.

    Args:
        executor: The run's, with its shards.
        run: Its name.
        eye: What it screens with.
        done: The shards' commits; all are screened.
    """
    shards = tuple(
        _ScreenedShard(id=shard.id, measured=executor.parts("screen", shard), decided=commits["screen"].part)
        for shard, commits in zip(executor.shards, done, strict=True)
    )
    path = f"runs/{run}/screened.json"
    note = _Screened(run=run, model=eye.model, shards=shards).model_dump(mode="json")
    if executor.store.read_json(path) != note:
        executor.store.write_json(path, note)


def portrait_of(row: Source | Photo, facts: SourceFacts, model: str) -> Portrait:
    """The portrait of a source that screening measured.

    Args:
        row: The source, or what screening made of it.
        facts: The measurement.
        model: `Eye.model` of what measured it.
    """
    pool = row.key.pool
    person = f"{pool}/{row.identity}" if isinstance(row, Source) and row.identity else ""
    return Portrait(
        key=row.key,
        clip=f"{pool}/{row.clip}" if row.clip else "",
        person=_person(pool, row.subject) if isinstance(row, Photo) else person,
        pixel_sha256=facts.pixel_sha256,
        phash=facts.phash,
        mirror_phash=facts.mirror_phash,
        face_phash=facts.face_phash,
        face_mirror_phash=facts.face_mirror_phash,
        embedding=facts.embedding,
        model=model if facts.embedding else "",
        lacking="" if facts.embedding else "no face found",
    )


def _person(pool: str, subject: str) -> str:
    """The pool's own word for a person, where a subject was named by it and not by another source's key."""
    named = re.fullmatch(rf"{re.escape(pool)}/identity (.+)", subject, re.DOTALL)
    return f"{pool}/{named[1]}" if named else ""
