"""Writes the published data set: the same sources, config and answers give the same bytes, whoever computed them."""

import hashlib
import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import jinja2

import prompts
from schemas import __version__
from schemas.config import NOT_FINGERPRINTED, BuildConfig
from schemas.outcomes import Status
from schemas.published import SCHEMA_VERSION, RejectedRow, TripletRow
from tasks.dataset.parquet import RowWriter
from tasks.dataset.rows import rejected_row, triplet_row
from tasks.engine import weights
from tasks.engine.dossier import Life, SourceLife, lives
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.engine.rows import Commit
from tasks.engine.store import disk
from tasks.pipeline import Run
from tasks.sources import POOLS

CARD: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined, trim_blocks=True
)


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
    record, manifest = store.read_json(record_name), store.read(manifest_name)
    if record and manifest and record == {"fingerprint": wanted, "manifest_sha256": sha256(manifest)}:
        said = json.loads(manifest)
        if all(store.exists(f"{name}/{file}") for file in (*said["files"], "README.md", "checksums.sha256")):
            return Published(store.path(name), said["triplets"], written=False)
    triplets = _write(run, done, store.path(name))
    manifest = store.read(manifest_name)
    assert manifest is not None
    store.write_json(record_name, {"fingerprint": wanted, "manifest_sha256": sha256(manifest)})
    return Published(store.path(name), triplets, written=True)


def _write(run: Run, done: Sequence[dict[str, Commit]], folder: Path) -> int:
    """Write everything into a folder aside, then put it in the old one's place."""
    aside = run.store.path("tmp") / "dataset"
    with disk(aside):
        shutil.rmtree(aside, ignore_errors=True)
        (aside / "data").mkdir(parents=True)
        (aside / "rejected").mkdir()
    triplets, rejected = RowWriter(aside / "data", TripletRow), RowWriter(aside / "rejected", RejectedRow)
    digests: list[str] = []
    tally = Tally(run.executor.order)
    for source in within_prefix(run, done):
        tally.add(source)
        for life in ending_lives(source):
            row: Any
            if life.reached("publish"):
                row = triplet_row(source, life, run.images)
                triplets.add(row)
            else:
                row = rejected_row(source, life, run.images)
                rejected.add(row)
            digests.append(row.row_sha256)
    files = {f"data/{name}": rows for name, rows in triplets.close(run.config.split).items()}
    files |= {f"rejected/{name}": rows for name, rows in rejected.close(run.config.split).items()}
    manifest = _manifest(run, tally, files, digests)
    _write_texts(run, aside, manifest)
    with disk(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            folder.rename(aside.with_name("replaced"))
        aside.rename(folder)
        shutil.rmtree(aside.with_name("replaced"), ignore_errors=True)
    return tally.triplets


def within_prefix(run: Run, done: Sequence[dict[str, Commit]]) -> Iterator[SourceLife]:
    """The lives of the sources that the target needed, in plan order; what was computed beyond them is left out."""
    cut = run.config.publish.cut
    needed = math.ceil(cut.target * cut.margin) if cut.target is not None else math.inf
    for shard, commits in zip(run.executor.shards, done, strict=True):
        for source in lives(run.executor, shard, commits):
            yield source
            needed -= sum("publish" in life.steps for life in source.candidates)
            if needed <= 0:
                return


def ending_lives(source: SourceLife) -> list[Life]:
    """What has a row of its own: the candidates, or the source itself if it never had one."""
    return list(source.candidates) or [source]


class Tally:
    """The funnel over the sources that the data set accounts for."""

    def __init__(self, order: Sequence[str]) -> None:
        self._statuses: dict[str, Counter[str]] = {name: Counter() for name in order}
        self._reasons: dict[str, Counter[str]] = {name: Counter() for name in order}
        self.sources = 0
        self.cells: Counter[tuple[str, str]] = Counter()

    @property
    def triplets(self) -> int:
        return self.cells.total()

    def add(self, source: SourceLife) -> None:
        """Count every step of a source and its candidates."""
        self.sources += 1
        for life in [source, *source.candidates]:
            for name, step in life.steps.items():
                self._statuses[name][step.status] += 1
                if step.reason:
                    self._reasons[name][step.reason] += 1
            if life.reached("publish"):
                self.cells[source.outputs["screen"].expression, life.key.target] += 1

    def funnel(self) -> list[dict[str, Any]]:
        """Per stage: owed, how many left in which way, and why."""
        return [
            {
                "stage": name,
                "owed": statuses.total(),
                **{str(status): statuses.get(status, 0) for status in Status},
                "reasons": dict(sorted(self._reasons[name].items())),
            }
            for name, statuses in self._statuses.items()
        ]


def described(config: BuildConfig) -> dict[str, Any]:
    """The config as the data set tells it: without what changes no row, and without paths of this machine."""
    values = config.model_dump(mode="json", exclude=set(NOT_FINGERPRINTED))
    for pool in values["pools"]:
        local = POOLS.adapter_class(pool["name"]).local
        pool["params"] = {name: value for name, value in pool["params"].items() if name not in local}
    return values


def _manifest(run: Run, tally: Tally, files: dict[str, int], digests: Sequence[str]) -> dict[str, Any]:
    stages = run.executor.stages.values()
    used = {name for stage in stages for identity in stage.identities() for name in _weight_names(identity)}
    return {
        "name": run.config.name,
        "edition": run.config.edition,
        "split": run.config.split,
        "schema_version": SCHEMA_VERSION,
        "fedbench": __version__,
        "pyarrow": metadata.version("pyarrow"),
        "config": described(run.config),
        "stages": {stage.name: {"version": stage.version, "uses": stage.identities()} for stage in stages},
        "prompts": {name: prompts.sha256_of(name) for name in prompts.names()},
        "weights": [
            {"name": entry.name, "licence": entry.licence, "tuned_against": entry.tuned_against}
            for entry in map(weights.entry, sorted(used))
        ],
        "sources": tally.sources,
        "triplets": tally.triplets,
        "funnel": tally.funnel(),
        "cells": [
            {"source": source, "target": target, "triplets": count}
            for (source, target), count in sorted(tally.cells.items())
        ],
        "files": files,
        "rows_sha256": fingerprint(sorted(digests)),
    }


def _weight_names(identity: Any) -> list[str]:
    return list(identity["weights"]) if isinstance(identity, dict) else []


def render_card(manifest: dict[str, Any]) -> str:
    """The data set's README: every number in it comes from the manifest."""
    return CARD.get_template("card.md.j2").render(manifest=manifest)


def checksums(folder: Path) -> str:
    """`sha256sum` lines of every file of a data set but the checksums themselves, in order of name."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    listed = [name for name in names if name != "checksums.sha256" and not name.startswith(".git")]
    lines = [f"{_file_sha256(folder / name)}  {name}" for name in listed]
    return "\n".join(lines) + "\n"


def _file_sha256(path: Path) -> str:
    """Hash of a file of any size, without holding it in memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_texts(run: Run, aside: Path, manifest: dict[str, Any]) -> None:
    relative = aside.relative_to(run.store.root)
    run.store.write_json(f"{relative}/manifest.json", manifest)
    run.store.write(f"{relative}/README.md", render_card(manifest).encode())
    run.store.write(f"{relative}/checksums.sha256", checksums(aside).encode())
