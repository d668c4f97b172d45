"""Scores without relatives: neither judged by a relative, nor against ground truths that one made."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.score_config import ScoreCut
from schemas.score_manifest import EditorUsed, ScoreManifest
from schemas.scoring import ScoreRow, State
from tasks.metrics.score import scored
from tasks.metrics.score_summary import Mean


@dataclass(frozen=True)
class Relatives:
    """Whom an editor's score is told without.

    Attributes:
        judges: Of its own family, and those that have a relative among who voted on the data set, made or wrote it.
        truths: Who made ground truths and is its relative.
    """

    judges: frozenset[str]
    truths: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.judges or self.truths)


def relatives(manifest: ScoreManifest, used: EditorUsed) -> Relatives:
    """The relatives of an editor of a run."""
    judges = {
        judge.judge for judge in manifest.judges if judge.of_data_set or (judge.family and judge.family == used.family)
    }
    return Relatives(frozenset(judges), frozenset(used.truths))


def without(rows: Sequence[ScoreRow], of: Relatives, cut: ScoreCut, *, partial: bool) -> Mean | None:
    """The mean score without them, failures as 0; of n 0 where nothing is left, None where there is none to leave out.

    Args:
        rows: Of the editor, under one instruction.
        of: Its relatives.
        cut: What makes the score.
        partial: Whether no judge was asked.
    """
    if not of:
        return None
    return Mean.of(_score(row, of, cut, partial=partial) for row in rows if row.truth_editor not in of.truths)


def _score(row: ScoreRow, of: Relatives, cut: ScoreCut, *, partial: bool) -> float | None:
    if row.scored.state is State.FAILED:
        return 0.0
    if row.rule is None or not of.judges:
        return row.scored.score
    judged = [one for one in row.judged if one.judge not in of.judges]
    return scored(row.rule, judged, cut, partial=partial).score
