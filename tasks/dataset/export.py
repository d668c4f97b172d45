"""A data set in the shapes that training scripts read. Pictures keep their bytes; nothing depends on the clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from schemas.exports import DiffusersRow, PreferenceRow
from schemas.outcomes import Reason
from schemas.published import ImageCell, Manifest, RejectedRow, TripletRow
from schemas.records import Record
from tasks.dataset.export_files import TarShards, write_folder
from tasks.dataset.parquet import RowWriter
from tasks.dataset.read import Finder, data_set, filled, plain_rows, tables, typed_rows
from tasks.dataset.rules import key_of
from tasks.dataset.texts import digests as digests_of
from tasks.dataset.texts import finished_folder, write_checked
from tasks.engine.errors import ConfigError

Format = Literal["diffusers", "jsonl", "webdataset", "preference"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
Prompt = Literal["simple", "dense"]


@dataclass(frozen=True)
class Exported:
    """Where the export lies, and how many rows it has of how many triplets."""

    folder: Path
    rows: int
    triplets: int


@dataclass(frozen=True)
class _Job:
    folder: Path
    manifest: Manifest
    prompt: Prompt

    def triplets(self) -> Iterator[TripletRow]:
        yield from typed_rows(self.folder, self.manifest, "data")

    def text(self, row: TripletRow) -> str:
        return row.instruction if self.prompt == "simple" else row.dense_instruction


def export(folder: Path, to: Format, out: Path, prompt: Prompt = "simple") -> Exported:
    """Write the triplets of a full data set in another shape.

    Args:
        folder: A data set with its pictures.
        to: diffusers: Parquet with `input_image`, `edit_prompt`, `edited_image`, as instruct-editing scripts read it.
            jsonl: `metadata.jsonl` and `images/`, which Hugging Face's imagefolder loads. webdataset: tar shards of
            `source.png`, `target.png` and `json`. preference: Parquet with the ground truth as `chosen` and the
            finalist that review did not choose as `rejected`.
        out: The export's folder.
        prompt: Which instruction becomes the prompt.

    Raises:
        ConfigError: The data set lacks the pictures, or `out` holds something else.
    """
    manifest = data_set(folder)
    needed = ("source", "ground_truth", *(("image",) if to == "preference" else ()))
    missing = [column for column in needed if column not in manifest.pictures]
    if missing:
        raise ConfigError(f"{folder} has no {missing[0]} pictures", "rebuild the full data set: `fedbench hydrate`")
    if out.resolve() == folder.resolve() or out.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{out} lies in the data set", "choose another --out")
    write: dict[Format, Callable[[_Job, Path], int]] = {
        "diffusers": _diffusers,
        "jsonl": _jsonl,
        "webdataset": _webdataset,
        "preference": _preference,
    }
    with finished_folder(out) as aside:
        rows = write[to](_Job(folder, manifest, prompt), aside)
        notes = _notes(manifest, to, prompt, rows)
        write_checked(aside, {"README.md": notes.encode()}, digests_of(aside))
    return Exported(out, rows, manifest.triplets)


def _diffusers(job: _Job, out: Path) -> int:
    def row(triplet: TripletRow) -> Record:
        return DiffusersRow(
            id=triplet.id,
            edit_prompt=job.text(triplet),
            licence=triplet.licence,
            synthetic=triplet.synthetic,
            input_image=triplet.source,
            edited_image=triplet.ground_truth,
        )

    return _parquet(map(row, job.triplets()), DiffusersRow, job, out)


def _parquet(rows: Iterator[Record], kind: type[Record], job: _Job, out: Path) -> int:
    writer = RowWriter(out / "data", kind)
    for row in rows:
        writer.add(row)
    return sum(writer.close(job.manifest.split).values())


def _jsonl(job: _Job, out: Path) -> int:
    # Under their columns' names: imagefolder makes a column "source" of "source_file_name".
    rows = ((told(row), {"source": row.source.bytes, "ground_truth": row.ground_truth.bytes}) for row in job.triplets())
    return write_folder(out / job.manifest.split, rows)


def _webdataset(job: _Job, out: Path) -> int:
    with TarShards(out, job.manifest.split) as shards:
        for row in job.triplets():
            shards.add(told(row), {"source": row.source.bytes, "target": row.ground_truth.bytes})
    return shards.rows


def told(row: TripletRow) -> dict[str, object]:
    """A triplet's columns as flat JSON without nulls and lists, which loaders that guess types from a few rows need."""
    values = row.model_dump(mode="json", exclude={"source", "ground_truth", "votes", "traits", "review"})
    return values | {"traits": "; ".join(row.traits), "review": row.review.mode}


def _preference(job: _Job, out: Path) -> int:
    return _parquet(_pairs(job), PreferenceRow, job, out)


def _pairs(job: _Job) -> Iterator[Record]:
    """Ground truths whose source has a finalist that review did not choose; the best placed of those."""
    names = tables(job.manifest.files, "rejected")
    best: dict[tuple[str, str], tuple[int, str]] = {}
    columns = ["pool", "source_id", "id", "reason", "evidence"]
    for row in plain_rows(job.folder, names, columns):
        if row["reason"] == Reason.NOT_CHOSEN:
            source = row["pool"], row["source_id"]
            best[source] = min(best.get(source, (10**9, "")), (_place(row["evidence"]), row["id"]))
    finder = Finder(job.folder, names, "id", list(RejectedRow.model_fields))
    for triplet in job.triplets():
        loser = finder.get(best.get(key_of(triplet).source()[:2], (0, ""))[1])
        if loser is None:
            continue
        runner_up = RejectedRow.model_validate(filled(loser, "rejected"))
        if isinstance(runner_up.image, ImageCell):
            yield PreferenceRow(
                id=triplet.id,
                prompt=job.text(triplet),
                rejected_id=runner_up.id,
                rejected_instruction=runner_up.instruction,
                same_target=runner_up.target == triplet.target,
                chosen_identity=triplet.identity,
                rejected_identity=runner_up.identity,
                chosen_background_rmse=triplet.background_rmse,
                rejected_background_rmse=runner_up.background_rmse,
                licence=triplet.licence,
                synthetic=True,
                image=triplet.source,
                chosen=triplet.ground_truth,
                rejected=runner_up.image,
            )


def _place(evidence: str) -> int:
    """The place that review's words name ("rank 2; ..."), a late one where they name none."""
    word = evidence.removeprefix("rank ").partition(";")[0]
    return int(word) if word.isdecimal() else 10**6


def _notes(manifest: Manifest, to: Format, prompt: Prompt, rows: int) -> str:
    """What a reader of the export must know; the data set's card says the rest."""
    lines = [
        f"# {manifest.name} {manifest.edition}, for {to}",
        "",
        f"{rows} rows of {manifest.triplets} triplets; the prompt is the {prompt} instruction."
        if to in ("diffusers", "preference")
        else f"{rows} rows of {manifest.triplets} triplets, with both instructions.",
        "**The edited pictures are synthetic.** Licences of the sources, under which the edits fall too:",
        "",
        *(f"- {pool.name}: {licence}" for pool in manifest.pools for licence in pool.licences),
    ]
    if to == "preference":
        lines += [
            "",
            "`chosen` is the ground truth, `rejected` the best finalist of the same source that review did not choose.",
            "Where `same_target` is false, that one was asked for another expression (`rejected_instruction`): for the",
            "prompt it is wrong in what it shows, not only worse.",
        ]
    return "\n".join(lines) + "\n"
