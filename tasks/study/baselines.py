"""Whether a machine measures as ours did: a run of the baselines against the numbers that ship."""

from dataclasses import dataclass

from schemas.baselines import Means, baselines
from schemas.scoring import PARTIAL_SCORE
from tasks.engine.errors import ConfigError
from tasks.leaderboard.entrants import Entrant, ScoredRun, entrants

HINT = "docs/scoring.md has the two commands, under 'Is it set up right?'"


@dataclass(frozen=True)
class Compared:
    """One number of one editor.

    Attributes:
        editor, column: Which.
        ours: As it ships.
        found: Of the run; None where it has none.
        tolerance: How far the two may be apart.
    """

    editor: str
    column: str
    ours: float
    found: float | None
    tolerance: float

    @property
    def fits(self) -> bool:
        return self.found is not None and abs(self.found - self.ours) <= self.tolerance


def compared(run: ScoredRun) -> list[Compared]:
    """Every number that ships beside the run's, editor by editor.

    Raises:
        ConfigError: The run is of something else, so that nothing can be said.
    """
    known = baselines()
    _comparable(run)
    held = {one.used.editor: one for one in entrants(run) if one.granularity is known.granularity}
    absent = sorted(known.editors.keys() - held.keys())
    if absent:
        raise ConfigError(f"run '{run.manifest.name}' lacks the baselines {', '.join(absent)}", HINT)
    return [
        Compared(editor, column, getattr(ours, column), _mean(held[editor], column), getattr(known.tolerance, column))
        for editor, ours in known.editors.items()
        for column in Means.model_fields
    ]


def _mean(entrant: Entrant, column: str) -> float | None:
    whole = entrant.whole
    return whole.score.value if column == "score" else whole.parts[column].value


def _comparable(run: ScoredRun) -> None:
    manifest, known = run.manifest, baselines()
    cut, measure = manifest.settings["cut"], manifest.settings["measure"]
    differs = [
        f"{name} {cut.get(name, measure.get(name))}"
        for name, value in known.settings.items()
        if (measure["identity"]["name"] if name == "identity" else cut[name]) != value
    ]
    if manifest.score != PARTIAL_SCORE:
        differs.append("a judge")
    if known.granularity not in manifest.granularities:
        differs.append("no simple instructions")
    if differs:
        raise ConfigError(f"run '{manifest.name}' was scored otherwise than the baselines: {', '.join(differs)}", HINT)
    if manifest.triplets != known.triplets:
        raise ConfigError(
            f"run '{manifest.name}' scored {manifest.triplets} triplets, the demo has {known.triplets}",
            f"score the data set that `fedbench demo` builds, all of it; {HINT}",
        )
