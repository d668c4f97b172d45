"""The triplets of a published data set, as scoring takes them: pictures in the store, sources in shards."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.expressions import Expression
from schemas.published import Manifest, TripletRow
from schemas.records import Key
from schemas.score_steps import ScoredSource, TripletFacts
from tasks.dataset.read import EMPTY, data_set, typed_rows
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.engine.images import ImageStore
from tasks.engine.shards import Shard
from tasks.engine.shown import Showing, note
from tasks.engine.store import Store
from tasks.engine.tombstones import Withdrawn, pixels_mark

PICTURES = ("source", "ground_truth")


@dataclass(frozen=True)
class Benchmark:
    """An opened data set.

    Attributes:
        manifest: Of the data set.
        shards: Its sources, in the order of a hash of their keys, so that a prefix is a fair sample.
        subjects: By the triplet's key.
    """

    manifest: Manifest
    shards: tuple[tuple[Shard, tuple[ScoredSource, ...]], ...]
    subjects: dict[Key, str]

    @property
    def triplets(self) -> int:
        return sum(len(source.triplets) for _, sources in self.shards for source in sources)

    @property
    def restricted(self) -> str:
        """A pool of it whose pictures may not be passed on; empty where there is none."""
        return next((pool.name for pool in self.manifest.pools if not pool.redistributable), "")


def open_benchmark(folder: Path, store: Store, images: ImageStore, shard_size: int, limit: int | None) -> Benchmark:
    """Read a data set and put its pictures into the store, where they lie already if it was built there.

    Args:
        folder: A published data set with its pictures.
        store, images: Of the workspace.
        shard_size: Sources per shard. Another one measures again, for a shard's answers lie together.
        limit: So many sources; None for all.

    Raises:
        ConfigError: It is no data set, has no pictures, is damaged, or holds somebody who was withdrawn.
    """
    manifest = data_set(folder)
    lacking = [column for column in PICTURES if column not in manifest.pictures]
    if lacking:
        raise ConfigError(
            f"{folder} is an index: it has no pictures ({', '.join(lacking)}), so nothing can be edited or compared",
            "rebuild the full set first: fedbench hydrate INDEX --pack PACK --out DIR",
        )
    withdrawn = Withdrawn.of(store).keys
    by_source: dict[Key, list[TripletRow]] = defaultdict(list)
    subjects: dict[Key, str] = {}
    showings: list[Showing] = []
    for row in typed_rows(folder, manifest, "data"):
        source = Key(row.pool, row.source_id)
        if source in withdrawn:
            raise ConfigError(
                f"{folder} holds {source}, which was withdrawn here", "score an edition that was published since"
            )
        for held, digest in ((row.source, row.source_sha256), (row.ground_truth, row.ground_truth_sha256)):
            _put(store, images, held.bytes, digest, f"{folder}: {row.id}")
        showings.append(_showing(row))
        by_source[source].append(row.model_copy(update={"source": EMPTY, "ground_truth": EMPTY}))
        subjects[key_of(row)] = row.subject
    if not subjects:
        raise ConfigError(f"{folder} holds no triplet", "build one with more sources")
    # Whoever scores a data set that was built elsewhere has its people here, too: a withdrawal must find them.
    note(store, showings)
    ordered = sorted(by_source, key=lambda key: (fingerprint("order", list(key)), key))
    sources = [_source(key, by_source[key]) for key in ordered]
    return Benchmark(manifest, tuple(_shards(sources, shard_size, limit)), subjects)


def key_of(row: TripletRow) -> Key:
    """The triplet's key."""
    return Key(row.pool, row.source_id, row.target, row.editor, row.attempt)


def _showing(row: TripletRow) -> Showing:
    return Showing(
        key=Key(row.pool, row.source_id),
        clip=row.clip,
        pixels=pixels_mark(row.source_pixel_sha256),
        images=(row.source_sha256, row.ground_truth_sha256),
    )


def _put(store: Store, images: ImageStore, data: bytes, digest: str, what: str) -> None:
    """The PNG as it is: pictures are named by the hash of their file, whoever encoded it."""
    if store.size(images.path(digest)) == len(data):
        return
    if sha256(data) != digest:
        raise ConfigError(f"{what}: a picture is not what its hash says", "run `fedbench verify` on the folder")
    store.write(images.path(digest), data, durable=False)


def _source(key: Key, rows: Sequence[TripletRow]) -> ScoredSource:
    first = rows[0]
    triplets = [
        TripletFacts(
            key=key_of(row), simple=row.instruction, dense=row.dense_instruction, truth_image=row.ground_truth_sha256
        )
        for row in sorted(rows, key=key_of)
    ]
    return ScoredSource(
        key=key, image=first.source_sha256, expression=Expression(first.source_expression), triplets=tuple(triplets)
    )


def _shards(
    sources: Sequence[ScoredSource], size: int, limit: int | None
) -> Iterator[tuple[Shard, tuple[ScoredSource, ...]]]:
    left = len(sources) if limit is None else limit
    for index, start in enumerate(range(0, len(sources), size)):
        shard = sources[start : start + size]
        id_ = fingerprint([list(source.key) for source in shard])[:32]
        if left > 0:
            yield Shard(index, id_, ()), tuple(shard[:left])
        left -= len(shard)
