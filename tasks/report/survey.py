"""What the summary of a report needs to know of a whole run, gathered source by source; memory stays flat."""

from collections import Counter, defaultdict
from typing import Final

from schemas.config import BuildConfig
from schemas.records import Ballots, Fidelity
from tasks.engine.dossier import SourceLife
from tasks.report.mix import Mix
from tasks.report.sheets import Sheet
from tasks.report.spread import Spread
from tasks.report.voices import Voices

GLANCE: Final = 12  # ground truths shown in the summary
EXAMPLES: Final = 8  # fallen sources shown per reason


class Survey:
    """Counts, numbers and a few examples of a run."""

    def __init__(self, config: BuildConfig) -> None:
        rank, verify = config.rank.cut, config.verify.cut
        self.mix = Mix()
        self.voices = Voices(config.verify.measure.panel, verify)
        self.identity = Spread("Identity", "cosine of source and edit", rank.min_identity, "least")
        self.background = Spread("Background", "RMSE outside the faces, 0–255", rank.max_background_rmse, "most")
        self.change = Spread("Change", "blendshape distance from the source", verify.min_change, "least")
        self.modes: Counter[str] = Counter()
        self.back_checks: Counter[str] = Counter()
        self.fallen: Counter[str] = Counter()
        self.examples: dict[str, list[Sheet]] = defaultdict(list)
        self.glance: list[Sheet] = []

    def add(self, life: SourceLife, sheet: Sheet) -> None:
        """Take in one source."""
        self.mix.add(life)
        self.voices.add(life)
        for candidate in life.candidates:
            ballots, fidelity = candidate.measured.get("verify"), candidate.measured.get("rank")
            if isinstance(ballots, Ballots):
                self.change.add(ballots.change)
            if isinstance(fidelity, Fidelity):
                self.identity.add(fidelity.identity)
                self.background.add(fidelity.background_rmse)
        self.modes.update(truth.mode for truth in sheet.truths)
        self.back_checks.update(truth.back_check for truth in sheet.truths if truth.dense)
        if sheet.state in ("rejected", "failed"):
            self.fallen[sheet.end] += 1
            if len(self.examples[sheet.end]) < EXAMPLES:
                self.examples[sheet.end].append(sheet)
        if sheet.truths and len(self.glance) < GLANCE:
            self.glance.append(sheet)

    def reasons(self) -> list[tuple[str, int, list[Sheet]]]:
        """Why sources fell: the reason, how many, and the first few of them; most first."""
        order = sorted(self.fallen.items(), key=lambda entry: (-entry[1], entry[0]))
        return [(reason, count, self.examples[reason]) for reason, count in order]

    @property
    def spreads(self) -> list[Spread]:
        return [self.identity, self.background, self.change]
