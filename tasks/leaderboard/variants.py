"""Other ways to make a score of the same measurements: what a rank must survive. No model, no call."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, get_args

from schemas.score_config import NORMALISERS, ScoreCut
from schemas.score_manifest import ScoreManifest
from schemas.scoring import Part, Scored, ScoreRow
from tasks.metrics.score import scored

BEST_TRUTH: Final = "best ground truth"
MEAN_TRUTH: Final = "mean of ground truths"


@dataclass(frozen=True)
class Variant:
    """One other way.

    Attributes:
        name: What tables call it.
        cut: What makes the score.
        judge: Only this one's answers; empty for all.
        swapped: Only this order of two pictures; None for both.
    """

    name: str
    cut: ScoreCut
    judge: str = ""
    swapped: bool | None = None

    def score(self, row: ScoreRow, *, partial: bool) -> Scored:
        """A row's score this way; a failed row stays as it is."""
        if row.rule is None:
            return row.scored
        judged = [
            one
            for one in row.judged
            if (not self.judge or one.judge == self.judge)
            and (self.swapped is None or one.part is Part.PQ or one.swapped is self.swapped)
        ]
        cut = self.cut.model_copy(update={"min_judges": 1}) if self.judge else self.cut
        return scored(row.rule, judged, cut, partial=partial)


def variants(manifest: ScoreManifest) -> Iterator[Variant]:
    """The other BG normalisers, the other background, the other gain where it was measured, each judge alone, and each
    order of the pictures that judges saw.
    """
    cut = ScoreCut.model_validate(manifest.settings["cut"])
    for name in get_args(NORMALISERS):
        if name != cut.normaliser:
            yield Variant(f"BG {name}", cut.model_copy(update={"normaliser": name}))
    other = "raw" if cut.background == "registered" else "registered"
    yield Variant(f"BG {other}", cut.model_copy(update={"background": other}))
    if cut.gain == "lpips":
        yield Variant("REG by AU", cut.model_copy(update={"gain": "au"}))
    elif manifest.settings["measure"]["distance"] is not None:
        yield Variant("REG by LPIPS", cut.model_copy(update={"gain": "lpips"}))
    if len(manifest.judges) > 1:
        for judge in manifest.judges:
            yield Variant(f"judge {judge.judge}", cut, judge=judge.judge)
    if manifest.judges and manifest.settings["judging"]["orders"] == "both":
        yield Variant("pictures as given", cut, swapped=False)
        yield Variant("pictures swapped", cut, swapped=True)
