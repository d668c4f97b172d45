"""Checks a published data set by recomputing what its rows say, not by comparing checksums alone."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

import prompts
from schemas.config import BuildConfig
from schemas.outcomes import FailureKind, Reason, Status
from schemas.published import SCHEMA_VERSION, ImageCell, RejectedRow, TripletRow
from schemas.records import Ballots, Candidate, Fidelity, Key
from tasks.dataset.parquet import BYTES_PER_GROUP, ROWS_PER_GROUP, published_schema, read_rows
from tasks.dataset.rows import row_digest
from tasks.dataset.write import checksums, render_card
from tasks.engine.decode import decode_png
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.engine.stage import Failed, Kept, Rejected
from tasks.rank import below_floor, fused
from tasks.verify import verdict

STAGES: Final = ("screen", "generate", "verify", "rank", "caption", "review", "instruct", "publish")
PICTURES: Final = ("source", "ground_truth", "image")
TEXTS: Final = ("README.md", "manifest.json", "checksums.sha256")


@dataclass(frozen=True)
class Fault:
    """One thing that is not as it should be: which row or file, which rule, and what was found."""

    where: str
    rule: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: {self.rule}: {self.found}"


def verify(folder: Path) -> list[Fault]:
    """Every fault of a data set; empty if it is whole.

    Raises:
        ConfigError: The folder is no data set of this schema version.
    """
    manifest = _manifest(folder)
    faults = list(_files(folder, manifest))
    rows: list[tuple[str, Any]] = []
    for name in manifest["files"]:
        kind = TripletRow if name.startswith("data/") else RejectedRow
        if (folder / name).is_file():
            try:
                rows += [(name, row) for row in _table(folder / name, kind, faults)]
            except (pa.ArrowException, OSError, ValidationError) as error:
                faults.append(Fault(name, "readable", str(error).splitlines()[0]))
    return faults + list(_rows(rows, manifest)) + list(_counts(rows, manifest))


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        version = manifest["schema_version"]
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} is no published data set: it has no manifest.json", "see `fedbench status`"
        ) from None
    except (ValueError, KeyError, OSError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "publish it anew") from None
    if version != SCHEMA_VERSION:
        raise ConfigError(f"{folder} has schema version {version}, this fedbench reads {SCHEMA_VERSION}", "update one")
    return manifest


def _files(folder: Path, manifest: dict[str, Any]) -> Iterator[Fault]:
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted({*manifest["files"], *TEXTS} - present):
        yield Fault(name, "present", "the file is missing")
    for name in sorted(present - {*manifest["files"], *TEXTS}):
        yield Fault(name, "listed", "the manifest does not know this file")
    if "checksums.sha256" in present:
        said = set((folder / "checksums.sha256").read_text().splitlines())
        for line in sorted(set(checksums(folder).splitlines()) ^ said):
            yield Fault(line.partition("  ")[2], "checksum", "checksums.sha256 and the file differ")
    if "README.md" in present and (folder / "README.md").read_text() != render_card(manifest):
        yield Fault("README.md", "card", "it is not what the manifest renders to")
    for kind in ("data", "rejected"):
        names = sorted(name for name in manifest["files"] if name.startswith(f"{kind}/"))
        for place, name in enumerate(names):
            if not re.fullmatch(rf"{kind}/\w+-{place:05d}-of-{len(names):05d}\.parquet", name):
                yield Fault(name, "name", f"file {place} of {len(names)}")


def _table(path: Path, kind: type[BaseModel], faults: list[Fault]) -> list[Any]:
    """The rows of one file without their pictures, which are checked and let go."""
    file = pq.ParquetFile(path)
    schema = published_schema(kind)
    if file.schema_arrow != schema or file.schema_arrow.metadata != schema.metadata:
        faults.append(Fault(path.name, "schema", "columns, types or the huggingface metadata differ"))
        return []
    for group in range(file.num_row_groups):
        facts = file.metadata.row_group(group)
        if facts.num_rows > ROWS_PER_GROUP or facts.total_byte_size > 2 * BYTES_PER_GROUP:
            faults.append(Fault(path.name, "row group", f"{facts.num_rows} rows, {facts.total_byte_size} bytes"))
        if facts.num_rows and not facts.column(0).has_offset_index:
            faults.append(Fault(path.name, "page index", "there is none"))
    rows = []
    for row in read_rows(path, kind):
        faults += _pictures(row)
        empty = ImageCell(bytes=b"", path="")
        rows.append(row.model_copy(update={name: empty for name in PICTURES if getattr(row, name, None)}))
    return rows


def _pictures(row: Any) -> Iterator[Fault]:
    for column in PICTURES:
        said = f"{column}_sha256"
        cell = getattr(row, column, None)
        if cell is None:
            if column == "image" and isinstance(row, RejectedRow) and row.image_sha256:
                yield Fault(row.id, "image", "it has a hash but no picture")
            continue
        if sha256(cell.bytes) != row.model_dump(include={said})[said]:
            yield Fault(row.id, f"{column} hash", f"the picture is not the one of {said}")
        try:
            decode_png(cell.bytes)
        except Exception as error:  # noqa: BLE001 - whatever a decoder says of foreign bytes is the finding
            yield Fault(row.id, f"{column} decodes", str(error))


def _rows(rows: list[tuple[str, Any]], manifest: dict[str, Any]) -> Iterator[Fault]:
    try:
        config = BuildConfig.model_validate(manifest["config"] | {"name": manifest["name"]})
    except (ValidationError, KeyError, TypeError) as error:
        yield Fault("manifest.json", "config", str(error).splitlines()[0])
        return
    seen = Counter(row.id for _, row in rows)
    yield from (Fault(str(id_), "unique", f"{count} rows") for id_, count in seen.items() if count > 1)
    for _, row in rows:
        if row_digest(row) != row.row_sha256:
            yield Fault(row.id, "row", "a column was changed after row_sha256 was made")
        if row.id != str(_key(row)):
            yield Fault(row.id, "id", f"its columns say {_key(row)}")
        if row.instruction or isinstance(row, TripletRow):
            simple = prompts.render("simple_instruction", source=row.source_expression, target=row.target)
            if row.instruction != simple:
                yield Fault(row.id, "instruction", f"the template says '{simple}'")
        if isinstance(row, TripletRow) and (not row.dense_instruction.strip() or row.target_expression != row.target):
            yield Fault(row.id, "instruction", "no dense instruction, or another target than the key's")
        yield from _verdict(row, config)
    yield from _ranks([row for _, row in rows if row.target], config)
    if fingerprint(sorted(row.row_sha256 for _, row in rows)) != manifest["rows_sha256"]:
        yield Fault("manifest.json", "rows", "the rows are not those it was made from")


def _key(row: Any) -> Key:
    return Key(row.pool, row.source_id, row.target, row.editor, row.attempt)


def _after(row: Any, stage: str) -> bool:
    """Whether a row got through a stage."""
    return isinstance(row, TripletRow) or STAGES.index(row.stage) > STAGES.index(stage)


def _verdict(row: Any, config: BuildConfig) -> Iterator[Fault]:
    """The votes must give the verdict that the row's fate says."""
    if not row.target or not (row.votes or _after(row, "verify")):
        return
    if isinstance(row, RejectedRow) and row.stage == "verify" and row.reason in (Reason.FACE_LOST, FailureKind.CRASHED):
        return
    if isinstance(row, RejectedRow) and row.stage == "generate":
        return
    candidate = Candidate(
        key=_key(row),
        source_image="",
        source_expression=row.source_expression,
        image="",
        instruction="",
        seed=0,
        raw_width=0,
        raw_height=0,
        changed_pixels=0,
        shift=0,
    )
    outcome = verdict(candidate, Ballots(votes=row.votes, faces=1, change=row.change), config.verify.cut)
    if _after(row, "verify"):
        said: tuple[str, str] = (Status.KEPT, "")
    else:
        said = (row.status, row.reason)
    recomputed = (outcome.status, str(getattr(outcome, "reason", "") or getattr(outcome, "kind", "")))
    words = outcome.message if isinstance(outcome, Failed) else outcome.evidence
    if recomputed != said:
        yield Fault(
            row.id, "verdict", f"the votes say {' '.join(recomputed).strip()} ({words}), the row {' '.join(said)}"
        )
    elif isinstance(row, TripletRow) and isinstance(outcome, Kept) and words != row.verdict:
        yield Fault(row.id, "verdict", f"the votes say '{words}'")


def _ranks(rows: list[Any], config: BuildConfig) -> Iterator[Fault]:
    """Among the verified candidates of a source, identity and background must give the ranks that decided."""
    cut = config.rank.cut
    by_source: dict[Key, list[Any]] = defaultdict(list)
    for row in rows:
        if _after(row, "verify"):
            by_source[_key(row).source()].append(row)
    for source_rows in by_source.values():
        scores: dict[Key, float] = {}
        for row in source_rows:
            floor = below_floor(Fidelity(identity=row.identity, background_rmse=row.background_rmse), cut)
            if floor is None:
                scores[_key(row)] = fused(Fidelity(identity=row.identity, background_rmse=row.background_rmse), cut)
            elif isinstance(floor, Rejected) and (_after(row, "rank") or row.reason != floor.reason):
                yield Fault(row.id, "rank", f"its numbers are below a floor: {floor.evidence}")
        order = sorted(scores, key=lambda key: (-scores[key], key))
        for row in source_rows:
            if _key(row) not in scores:
                continue
            place = order.index(_key(row)) + 1
            if (place <= cut.top_k) != _after(row, "rank"):
                yield Fault(row.id, "rank", f"its numbers give place {place}, the best {cut.top_k} go on")
            if isinstance(row, TripletRow) and (row.rank != place or abs(row.score - scores[_key(row)]) > 1e-9):
                yield Fault(row.id, "rank", f"its numbers give place {place}, score {scores[_key(row)]:.6f}")


def _counts(rows: list[tuple[str, Any]], manifest: dict[str, Any]) -> Iterator[Fault]:
    """Files and funnel, counted again from where every row ended, must be the manifest's."""
    by_file = Counter(name for name, _ in rows)
    for name, count in manifest["files"].items():
        if by_file[name] != count:
            yield Fault(name, "count", f"{by_file[name]} rows, the manifest says {count}")
    sources = {_key(row).source() for _, row in rows}
    triplets = [row for _, row in rows if isinstance(row, TripletRow)]
    if (len(sources), len(triplets)) != (manifest["sources"], manifest["triplets"]):
        yield Fault("manifest.json", "count", f"{len(sources)} sources and {len(triplets)} triplets are there")
    cells = Counter((row.source_expression, row.target_expression) for row in triplets)
    if cells != {(cell["source"], cell["target"]): cell["triplets"] for cell in manifest["cells"]}:
        yield Fault("manifest.json", "count", "triplets by source and target expression differ")
    ended = [row for _, row in rows if isinstance(row, RejectedRow)]
    for said in manifest["funnel"]:
        stage = said["stage"]
        here = [row for row in ended if row.stage == stage and row.status != Status.KEPT]
        after = [row for _, row in rows if row.target and _after(row, stage)]
        kept = len(sources) - len(here) if stage == "screen" else len(after)
        counts = Counter(row.status for row in here)
        counted = {
            "stage": stage,
            "owed": kept + len(here),
            **{str(status): counts.get(status, 0) for status in Status},
            "kept": kept,
            "reasons": dict(sorted(Counter(row.reason for row in here if row.reason).items())),
        }
        if counted != said:
            yield Fault("manifest.json", "funnel", f"{stage}: the rows give {counted}")
