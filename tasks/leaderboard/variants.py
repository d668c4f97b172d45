"""Other ways to make a score of the same measurements: what a rank must survive. No model, no call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from schemas.score_config import NORMALISERS, ScoreCut
from schemas.scoring import Scored, ScoreManifest, ScoreRow
from tasks.metrics.score import scored

BEST_TRUTH: Final = "best ground truth"


@dataclass(frozen=True)
class Variant:
    """One other way.

    Attributes:
        name: What tables call it.
        cut: What makes the score.
        judge: Only this one's answers; empty for all.
        without: Judges of this family are left out; empty for none.
    """

    name: str
    cut: ScoreCut
    judge: str = ""
    without: str = ""

    def score(self, row: ScoreRow, *, partial: bool) -> Scored:
        """A row's score this way; a failed row stays as it is."""
        if row.rule is None:
            return row.scored
        judged = [
            one
            for one in row.judged
            if (not self.judge or one.judge == self.judge) and not (self.without and one.family == self.without)
        ]
        cut = self.cut.model_copy(update={"min_judges": 1}) if self.judge else self.cut
        return scored(row.rule, judged, cut, partial=partial)


def variants(manifest: ScoreManifest) -> Iterator[Variant]:
    """The other BG normalisers, the other background, the other gain where it was measured, and each judge alone."""
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


def kin_out(manifest: ScoreManifest, family: str) -> Variant | None:
    """The score without judges of the editor's own family; None where it has no relative among them."""
    if not family or all(judge.family != family for judge in manifest.judges):
        return None
    return Variant("judges of its family left out", ScoreCut.model_validate(manifest.settings["cut"]), without=family)


def best_of(values: Sequence[float | None]) -> float | None:
    """The best over a triplet's ground truths; None where none has a value."""
    return max((value for value in values if value is not None), default=None)
