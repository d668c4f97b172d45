"""The manifest of a scoring run: what was scored and by whom, how it was measured, and what may flatter it."""

from typing import Any

from schemas.records import Record
from schemas.scoring import Granularity


class EditorUsed(Record):
    """An editor of the run, and how it was run.

    Attributes:
        editor: As in `ScoreRow.editor`.
        family: Of its models; empty where it has none.
        identity: Adapter, version, parameters (steps, size, ...), weights by sha256: the inference protocol. The seed
            of every output is in its row.
        conflicts: Why its scores may flatter it ("same family as the ground truths' editor warp"); a leaderboard marks
            it.
        truths: Whose ground truths are its relatives' (`ScoreRow.truth_editor`): left out of its score without
            relatives.
    """

    editor: str
    family: str
    identity: dict[str, Any]
    conflicts: tuple[str, ...]
    truths: tuple[str, ...]


class JudgeUsed(Record):
    """A judge of the run; fields as in `EditorUsed`.

    Attributes:
        of_data_set: Whether a relative of it voted on the data set, made or wrote it: left out of every score without
            relatives.
    """

    judge: str
    family: str
    identity: dict[str, Any]
    conflicts: tuple[str, ...]
    of_data_set: bool


class ScoreManifest(Record):
    """What `manifest.json` of a scoring run says.

    Attributes:
        scores_version: `SCORES_VERSION`.
        name: Of the run.
        score: "FED-Score", or "partial score" where no judge was asked; nothing else may be called FED-Score.
        dataset, edition, rows_sha256: What was scored.
        triplets: How many of it; the others are beyond `limit`.
        seed: Of the run; it seeds every edit.
        granularities: Instructions that were given.
        settings: How parts were measured (`measure`), how judges were asked (`judging`) and what makes a score of it
            (`cut`), as configured.
        identities: Face analyzer, identity model, distance: version, parameters and weights.
        rows, scores_sha256: How many rows `scores.parquet` has, and the sha256 of the file.
    """

    scores_version: int
    name: str
    score: str
    dataset: str
    edition: str
    rows_sha256: str
    triplets: int
    seed: int
    granularities: tuple[Granularity, ...]
    settings: dict[str, Any]
    identities: tuple[dict[str, Any], ...]
    editors: tuple[EditorUsed, ...]
    judges: tuple[JudgeUsed, ...]
    rows: int
    scores_sha256: str
