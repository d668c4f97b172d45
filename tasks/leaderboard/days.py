"""Days of judgements on a board: whose scores stand side by side though a judge gave them on different days."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.judging import DriftCheck, JudgedOn
from schemas.scoring import Granularity
from tasks.leaderboard.entrants import Entrant, ScoredRun
from tasks.metrics.drift_words import unchecked


@dataclass(frozen=True)
class Judged:
    """When the editors of a board were judged.

    Attributes:
        checks: What judges made of stored outputs of these runs on a later day, by day and judge.
        unknown: Runs without a record of their days.
        unchecked: Of the board, by run, editor and judge: old answers that nobody asked for again since.
        days: By run and editor: the first and the last day of its answers; absent where they are unknown.
    """

    checks: list[DriftCheck]
    unknown: list[str]
    unchecked: list[tuple[str, JudgedOn]]
    days: dict[tuple[str, str], tuple[str, str]]

    def is_unchecked(self, one: Entrant) -> bool:
        """Whether an editor's answers are of other days than the newest, and nobody looked."""
        return any((run, judged.editor) == (one.run, one.used.editor) for run, judged in self.unchecked)

    def of(self, one: Entrant) -> tuple[str, str] | None:
        """The first and the last day of an editor's answers."""
        return self.days.get((one.run, one.used.editor))

    @property
    def words(self) -> list[str]:
        """What stands side by side unchecked, in a line for each run and judge."""
        told = []
        for run, judge in dict.fromkeys((run, one.judge) for run, one in self.unchecked):
            mine = [one for name, one in self.unchecked if (name, one.judge) == (run, judge)]
            who = ", ".join(dict.fromkeys(one.editor for one in mine))
            told.append(
                f"{judge} judged {who} of run {run} from {min(one.first for one in mine)} on, others later; nobody "
                "looked whether it still answers so: score that run again with --drift now"
            )
        return told + [f"run {run} does not say on which days its judges answered" for run in self.unknown]


def judged(runs: Sequence[ScoredRun], granularity: Granularity) -> Judged:
    """The days of the runs of one board."""
    mine = [run for run in runs if run.manifest.judges]
    held = [(run, one) for run in mine if run.judging for one in run.judging.judged if one.granularity is granularity]
    old = [
        (run.manifest.name, one)
        for run, one in held
        if run.judging and one in unchecked([each for _, each in held], run.judging.checks, run.judging.apart)
    ]
    days: dict[tuple[str, str], tuple[str, str]] = {}
    for run, one in held:
        first, last = days.get((run.manifest.name, one.editor), (one.first, one.last))
        days[run.manifest.name, one.editor] = min(first, one.first), max(last, one.last)
    checks = {check.model_dump_json(): check for run in mine if run.judging for check in run.judging.checks}
    ordered = sorted(checks.values(), key=lambda check: (check.on, check.judge))
    return Judged(ordered, [run.manifest.name for run in mine if not _tells(run)], old, days)


def _tells(run: ScoredRun) -> bool:
    return run.judging is not None and bool(run.judging.judged)
