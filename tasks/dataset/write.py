"""Writes the published data set: the same sources, config and answers give the same bytes, whoever computed them."""

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from schemas.published import SCHEMA_VERSION, Manifest, RejectedRow, TripletRow
from tasks.dataset.manifest import Tally, described, make_manifest
from tasks.dataset.parquet import RowWriter
from tasks.dataset.rows import rejected_row, triplet_row
from tasks.dataset.texts import swap, write_texts
from tasks.engine.dossier import Life, SourceLife, lives
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.engine.lineage import note_published
from tasks.engine.rows import Commit
from tasks.engine.store import disk
from tasks.extras import audit_tally
from tasks.pipeline import Run

TEXTS = ("README.md", "croissant.json", "manifest.json", "checksums.sha256")


@dataclass(frozen=True)
class Published:
    """Where the data set lies, and whether this call wrote it."""

    folder: Path
    triplets: int
    written: bool


def publish(run: Run, done: Sequence[dict[str, Commit]]) -> Published:
    """Write the run's edition, unless it lies there already from equal decisions."""
    store, config = run.store, run.config
    name = f"datasets/{config.name}/{config.edition}"
    record_name = f"{run.folder}/published-{config.edition}.json"
    wanted = fingerprint(
        SCHEMA_VERSION,
        [[commit.fingerprint + commit.part for commit in commits.values()] for commits in done],
        described(config),
        config.name,
        config.edition,
    )
    manifest_name = f"{name}/manifest.json"
    written = store.read_json(record_name) != _record(run, wanted)
    if written:
        _write(run, done, store.path(name))
        store.push(name)
    note_published(store, run.folder, config.edition, run.executor.taken_answers())
    if written:
        store.write_json(record_name, _record(run, wanted))
    manifest = json.loads(store.read(manifest_name) or b"{}")
    return Published(store.path(name), manifest["triplets"], written=written)


def _record(run: Run, wanted: str) -> dict[str, Any]:
    """What lies there and from which decisions: sizes of all files, and the manifest's hash. Cheap to take again."""
    folder = f"datasets/{run.config.name}/{run.config.edition}"
    sizes = run.store.sizes(folder).items()
    return {
        "fingerprint": wanted,
        "manifest_sha256": sha256(run.store.read(f"{folder}/manifest.json") or b""),
        "sizes": {name: size for name, size in sizes if not PurePosixPath(name).name.startswith(".git")},
    }


def _write(run: Run, done: Sequence[dict[str, Commit]], folder: Path) -> None:
    """Write everything into a folder aside, then put it in the old one's place."""
    aside = run.store.path("tmp") / "dataset"
    with disk(aside):
        shutil.rmtree(aside, ignore_errors=True)
    triplets, rejected = RowWriter(aside / "data", TripletRow), RowWriter(aside / "rejected", RejectedRow)
    digests: list[str] = []
    tally = Tally(run.executor.order, run.config.review, run.core, audit_tally(run.executor, run.config))
    for source in within_prefix(run, done):
        tally.add(source)
        for life in ending_lives(source):
            row: Any
            if life.reached("publish"):
                row = triplet_row(source, life, run.images, run.config.generate.cut)
                triplets.add(row)
            else:
                row = rejected_row(source, life, run.images, run.config.generate.cut)
                rejected.add(row)
            digests.append(row.row_sha256)
    files = {f"data/{name}": rows for name, rows in triplets.close(run.config.split).items()}
    files |= {f"rejected/{name}": rows for name, rows in rejected.close(run.config.split).items()}
    manifest = make_manifest(run, tally, files, digests)
    _check_released(run, manifest)
    write_texts(aside, manifest.model_dump(mode="json"))
    swap(aside, folder)


def released_record(name: str, edition: str) -> str:
    """Where a workspace says that it passed an edition on."""
    return f"runs/{name}/released-{edition}.json"


def _check_released(run: Run, manifest: Manifest) -> None:
    """Refuse to change the rows of an edition that others may hold."""
    released = run.store.read_json(released_record(manifest.name, manifest.edition))
    there = json.loads(run.store.read(f"datasets/{manifest.name}/{manifest.edition}/manifest.json") or b"{}")
    # A withdrawal has changed what lies there; it may be written again as it is.
    if released and manifest.rows_sha256 not in (released["rows_sha256"], there.get("rows_sha256")):
        raise ConfigError(
            f"edition {manifest.edition} of {manifest.name} is released, and this build would change its rows "
            f"({there.get('triplets', 'unknown')} triplets then, {manifest.triplets} now)",
            "give the new one a name: --set edition=NAME; what was computed is kept",
        )


def within_prefix(run: Run, done: Sequence[dict[str, Commit]]) -> Iterator[SourceLife]:
    """The lives of the sources that the target and the core needed, in plan order, without any beyond them."""
    cut = run.config.publish.cut
    needed = math.ceil(cut.target * cut.margin) if cut.target is not None else math.inf
    core = run.core.sources if run.core else set()
    awaited = {row.key for shard in run.executor.shards for row in shard.sources if row.key in core}
    for shard, commits in zip(run.executor.shards, done, strict=True):
        for source in lives(run.executor, shard, commits):
            yield source
            needed -= sum("publish" in life.steps for life in source.candidates)
            awaited.discard(source.key)
            if needed <= 0 and not awaited:
                return


def ending_lives(source: SourceLife) -> list[Life]:
    """What has a row of its own: the candidates, or the source itself if it never had one."""
    return list(source.candidates) or [source]
