"""FED-Score, its parts and its ablations as metrics of a study: taken from scoring runs, nothing is measured again."""

from collections.abc import Sequence
from typing import Final

from schemas.scoring import ABLATIONS, FED_SCORE, MODEL, PARTIAL_SCORE, Part, ScoreRow
from tasks.engine.errors import ConfigError
from tasks.leaderboard.boards import conditions, differences
from tasks.leaderboard.entrants import ScoredRun, score_rows
from tasks.metrics.score import combined
from tasks.study.agreement import Better
from tasks.study.pairs import Pair

RAW: Final[dict[str, Better]] = {"background RMSE": "lower", "LPIPS ratio": "near one", "AU ratio": "near one"}


def add_scores(pairs: Sequence[Pair], runs: Sequence[ScoredRun]) -> int:
    """Give every pair the metrics of its two outputs, by triplet, instruction and editor.

    Args:
        pairs: Changed in place. A metric is None where a run has no number; a failed output has none.
        runs: Where to look; a run that comes later wins.

    Returns:
        How many pairs lack one or both outputs in the runs.

    Raises:
        ConfigError: The runs were scored otherwise: by other judges, another cut, on other rows.
    """
    _check_alike(runs)
    wanted = {(pair.triplet, pair.granularity, editor) for pair in pairs for editor in (pair.a, pair.b)}
    found: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for run in runs:
        for row in score_rows(run):
            key = (row.triplet, str(row.granularity), row.editor)
            if key in wanted:
                found[key] = _metrics(row, partial=run.partial)
    lost = 0
    for pair in pairs:
        a, b = (found.get((pair.triplet, pair.granularity, editor)) for editor in (pair.a, pair.b))
        lost += a is None or b is None
        names = list(dict.fromkeys(name for one in (a, b) if one for name in one))
        pair.values |= {name: ((a or {}).get(name), (b or {}).get(name)) for name in names}
    return lost


def _check_alike(runs: Sequence[ScoredRun]) -> None:
    """Else one output's number would be compared with another's that means something else."""
    # So many triplets is no condition of a pair, which is of one.
    first, *others = [conditions(run) | {"triplets": 0} for run in runs] or [{}]
    for run, other in zip(runs[1:], others, strict=True):
        if told := differences(first, other):
            raise ConfigError(
                f"runs '{runs[0].manifest.name}' (above) and '{run.manifest.name}' (here) were not scored alike: "
                f"{'; '.join(told)}",
                "name runs of one data set, measurement, panel of judges and cut",
            )


def _metrics(row: ScoreRow, *, partial: bool) -> dict[str, float | None]:
    scored, rule = row.scored, row.rule
    parts = {part: getattr(scored, part) for part in Part}
    ablations = {} if partial else {name: removed for name, removed in ABLATIONS.items() if removed}
    told: dict[str, float | None] = {PARTIAL_SCORE if partial else FED_SCORE: scored.score}
    told |= {f"FED-Score {name}": combined(parts, removed) for name, removed in ablations.items()}
    told |= {part.upper(): value for part, value in parts.items() if not partial or part not in MODEL}
    told |= {"LPIPS ratio": scored.lpips_ratio, "AU ratio": scored.au_ratio}
    return told | {"background RMSE": rule.background_rmse if rule else None}
