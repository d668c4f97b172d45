"""Verify: a panel that never sees the target names what each candidate shows; a majority must agree with it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from schemas.config import VerifyCut, VerifyMeasure
from schemas.expressions import POLARITY, Expression, Polarity
from schemas.outcomes import FailureKind, Reason
from schemas.records import Ballots, Candidate, Key, Vote
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Stage
from tasks.faces import ANALYZERS
from tasks.metrics.change import expression_change
from tasks.voters import VOTERS
from tasks.voters.ballots import Poll


class Verify(Stage[Candidate, Ballots]):
    """Three-polarity voting (FED-Bench) beside a test that the expression changed at all (ours)."""

    name = "verify"
    version = 2
    measurement = Ballots
    output = Candidate
    measure_params: VerifyMeasure
    cut_params: VerifyCut

    def identities(self) -> list[object]:
        faces = self.measure_params.faces
        return [
            ANALYZERS.identity(faces.name, faces.params),
            *(VOTERS.identity(voter.name, voter.params) for voter in self.measure_params.panel),
        ]

    def measure(self, rows: Sequence[Candidate], ctx: Context) -> Iterator[tuple[Key, Ballots | Failed]]:
        spec = self.measure_params.faces
        analyzer = ANALYZERS.get(spec.name, spec.params)
        poll = Poll(self.measure_params.panel, ctx.images.get, ctx.call)
        seen = []
        for row in rows:
            candidate = ctx.images.get(row.image)
            faces = analyzer.analyze(candidate)
            source_faces = analyzer.analyze(ctx.images.get(row.source_image))
            change = None
            if faces and source_faces:
                change = expression_change(source_faces[0].blendshapes, faces[0].blendshapes)
            poll.show(candidate)
            seen.append((row.key, len(faces), change))
        for (key, count, change), votes in zip(seen, poll.votes(), strict=True):
            yield key, votes if isinstance(votes, Failed) else Ballots(votes=votes, faces=count, change=change)

    def cut(self, items: Sequence[Item[Candidate, Ballots]]) -> Iterator[tuple[Key, Outcome]]:
        for item in items:
            yield item.key, verdict(item.row, item.measurement, self.cut_params)


def winner(votes: Sequence[Vote], majority: str) -> tuple[Polarity | None, str]:
    """The polarity that more than half of the panel (or of the valid votes) names, and the arithmetic in words.

    FED-Bench says majority; that the whole panel is the base, so that abstentions count against, is our choice.
    """
    counts = Counter(vote.polarity for vote in votes if vote.polarity is not None)
    base = len(votes) if majority == "panel" else sum(counts.values())
    told = ", ".join(f"{polarity} {count}" for polarity, count in sorted(counts.items())) or "no valid vote"
    words = f"{told}; {sum(counts.values())} of {len(votes)} answered; needs more than {base / 2:g}"
    for polarity, count in counts.items():
        if count > base / 2:
            return polarity, words
    return None, words


def verdict(candidate: Candidate, ballots: Ballots, cut: VerifyCut) -> Outcome:
    """What becomes of one candidate under the thresholds of `cut`."""
    target = Expression(candidate.key.target)
    valid = [vote for vote in ballots.votes if vote.abstained is None]
    if ballots.faces == 0:
        return Rejected(Reason.FACE_LOST, "no face is found in the edit")
    if len(valid) < cut.min_votes:
        return Failed(FailureKind.INSUFFICIENT_VOTES, f"{len(valid)} of {len(ballots.votes)} voters answered")
    polarity, words = winner(ballots.votes, cut.majority)
    if polarity is None:
        return Rejected(Reason.NO_MAJORITY, words)
    if polarity is not POLARITY[target]:
        return Rejected(Reason.WRONG_POLARITY, f"{words}; {target} is {POLARITY[target]}")
    if ballots.change is None or ballots.change < cut.min_change:
        change = "unknown" if ballots.change is None else f"{ballots.change:.3f}"
        return Rejected(Reason.UNCHANGED_EXPRESSION, f"change {change}, needs {cut.min_change:g}")
    fine = [vote.expression for vote in valid if vote.expression is not None]
    if fine and fine.count(target) / len(fine) < cut.fine_agreement:
        return Rejected(Reason.WRONG_EXPRESSION, f"{fine.count(target)} of {len(fine)} fine votes name {target}")
    return Kept(candidate, words)
