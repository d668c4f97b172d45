"""What a scoring run leaves: the table on disk, and its means by editor, granularity and expression."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from schemas.judging import JudgingRecord
from schemas.outcomes import FailureKind
from schemas.score_manifest import ScoreManifest
from schemas.scoring import Granularity, ScoreRow, State
from tasks.engine.errors import TooManyFailures
from tasks.engine.places import shown
from tasks.metrics.score_summary import Mean, Summary, summary
from tasks.metrics.steadiness import Steadiness, merged, steadiness
from tasks.scoring.drift import read_record, write_record
from tasks.scoring.relatives import relatives, without
from tasks.scoring.run import Scoring
from tasks.scoring.table import TABLE, manifest_of, read_manifest, write_scores

# Accidents of the machine or of a provider: another run may do better. The others are the editor's own.
ACCIDENTS: Final = (FailureKind.CRASHED, FailureKind.OUT_OF_MEMORY, FailureKind.TIMEOUT, FailureKind.PROVIDER)


@dataclass(frozen=True)
class Scores:
    """One editor under one granularity: the means over all its rows, and by what the faces show and shall show.

    Attributes:
        without_relatives: The score as `relatives.without` has it; None where it has no relative.
        judges: How far each judge can be believed on its outputs.
        first_failure: What is said of the first output that failed; empty where none did, or it shows no face.
    """

    editor: str
    granularity: Granularity
    whole: Summary
    by_source: dict[str, Summary]
    by_target: dict[str, Summary]
    without_relatives: Mean | None
    judges: list[Steadiness]
    first_failure: str

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"judges": [one.plain() for one in self.judges]}


@dataclass(frozen=True)
class Results:
    """All of a run.

    Attributes:
        manifest: As written.
        scores: In the order of the table.
        table: The Parquet file.
        judging: When the judges answered, and whether they still do as they did; None without a judge.
    """

    manifest: ScoreManifest
    scores: list[Scores]
    table: Path
    judging: JudgingRecord | None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        told = self.manifest.model_dump(mode="json")
        judges = [one.plain() for one in self.judges]
        scores = [one.plain() for one in self.scores]
        record = self.judging.model_dump(mode="json") if self.judging else None
        return {"manifest": told, "scores": scores, "judges": judges, "judging": record, "table": shown(self.table)}

    @property
    def judges(self) -> list[Steadiness]:
        """How far each judge can be believed, over all outputs of the run."""
        return merged(judge for one in self.scores for judge in one.judges)

    def markdown(self) -> str:
        """One line per editor and granularity."""
        head = f"| editor | instruction | {self.manifest.score} | failures as 0 | n | failed | unscored |"
        lines = [head, "|---|---|---|---|---|---|---|"]
        for one in self.scores:
            whole = one.whole
            cells = [one.editor, str(one.granularity), _told(whole.score), _told(whole.score_all), str(whole.score.n)]
            lines.append("| " + " | ".join([*cells, str(whole.failed), str(whole.unscored)]) + " |")
        return "\n".join(lines) + "\n"


def finish(run: Scoring) -> Results:
    """Write the table of a measured run and sum it up.

    Raises:
        TooManyFailures: More accidents than the config allows. The table is written all the same.
    """
    scores, accidents, owed = [], Counter[str](), 0
    manifest = manifest_of(run)
    for rows in write_scores(run, manifest):
        scores.append(_summed(rows, run, manifest))
        owed += len(rows)
        accidents.update(kind for row in rows if (kind := _accident(row)))
    if accidents.total() > max(1, run.config.max_failed * owed):
        told = ", ".join(f"{kind} {count}" for kind, count in accidents.most_common(3))
        raise TooManyFailures(
            f"{accidents.total()} of {owed} outputs could not be made, measured or judged ({told}), more than "
            f"max_failed={run.config.max_failed:g} allows",
            "run it again: what failed by accident is tried once more, what is there is kept",
        )
    record = write_record(run, read_record(run).checks) if run.config.judges else None
    return Results(read_manifest(run.folder), scores, run.folder / TABLE, record)


def _summed(rows: Sequence[ScoreRow], run: Scoring, manifest: ScoreManifest) -> Scores:
    (used,) = [used for used in manifest.editors if used.editor == rows[0].editor]
    cut, partial = run.config.cut, not run.config.judges
    sources = sorted({row.source_expression for row in rows})
    targets = sorted({row.target for row in rows})
    return Scores(
        editor=rows[0].editor,
        granularity=rows[0].granularity,
        whole=summary(rows, cut, partial=partial),
        by_source={
            str(shown): summary([row for row in rows if row.source_expression is shown], cut, partial=partial)
            for shown in sources
        },
        by_target={
            str(wanted): summary([row for row in rows if row.target is wanted], cut, partial=partial)
            for wanted in targets
        },
        without_relatives=without(rows, relatives(manifest, used), cut, partial=partial),
        judges=steadiness(row.judged for row in rows if row.judged),
        first_failure=next((row.message for row in rows if row.message), ""),
    )


def _accident(row: ScoreRow) -> str:
    if row.failure in ACCIDENTS:
        return str(row.failure)
    step, _, kind = row.scored.reason.partition(": ")
    return kind if row.scored.state is State.UNSCORED and step in ("parts", "judge") else ""


def _told(mean: Mean) -> str:
    return "–" if mean.value is None else f"{mean.value:.4f}"
