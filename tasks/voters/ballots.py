"""Asking a panel: every voter's answer on pictures, as rows."""

from collections.abc import Callable, Sequence
from functools import partial

from schemas.answers import Ballot
from schemas.expressions import POLARITY, Expression, Polarity
from schemas.records import Vote
from schemas.sections import Adapter
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.engine.stage import Failed
from tasks.voters import VOTERS

Votes = tuple[Vote, ...]


class Poll:
    """A panel that is shown one picture after the other, and nothing else. Local voters answer at once.

    Those outside are asked in the end, about all pictures at a time.

    Args:
        panel: The voters.
        load: A stored picture by its digest. It is called by the job that shows the picture, so that no more of them
            are held than are asked about at once.
        call: The door to models outside.
    """

    def __init__(self, panel: Sequence[Adapter], load: Callable[[str], Picture], call: Calls) -> None:
        self._panel, self._load, self._call = panel, load, call
        self._outside = [VOTERS.remote(spec.name) for spec in panel]
        self._shown: list[str] = []
        self._answers: dict[tuple[int, int], Vote | ItemFailed] = {}

    def show(self, picture: Picture) -> None:
        """The next picture."""
        for seat, outside in enumerate(self._outside):
            if not outside:
                self._answers[len(self._shown), seat] = self._ask(self._panel[seat], picture)
        self._shown.append(picture.digest)

    def votes(self) -> list[Votes | Failed]:
        """Per picture its votes, in panel order, or `Failed` if a voter could not be reached.

        A later run asks only that voter again, since the answers of the others are stored.
        """
        waiting = [
            (place, seat) for place in range(len(self._shown)) for seat, outside in enumerate(self._outside) if outside
        ]
        jobs = [partial(self._ask_outside, self._panel[seat], self._shown[place]) for place, seat in waiting]
        self._answers |= dict(zip(waiting, self._call.gather(jobs) if jobs else (), strict=True))
        seats = range(len(self._panel))
        return [_together([self._answers[place, seat] for seat in seats]) for place in range(len(self._shown))]

    def _ask_outside(self, spec: Adapter, digest: str) -> Vote | ItemFailed:
        return self._ask(spec, self._load(digest))

    def _ask(self, spec: Adapter, picture: Picture) -> Vote | ItemFailed:
        voter = VOTERS.get(spec.name, spec.params)
        try:
            return to_vote(spec, voter.granularity, voter.vote(picture, self._call))
        except ItemFailed as error:
            return ItemFailed(error.kind, f"{spec.label}: {error}", retryable=error.retryable)


def _together(answers: Sequence[Vote | ItemFailed]) -> Votes | Failed:
    failed = [answer for answer in answers if isinstance(answer, ItemFailed)]
    if not failed:
        return tuple(answer for answer in answers if isinstance(answer, Vote))
    # One that will never answer decides, for asking the others again would not help.
    first = min(failed, key=lambda error: error.retryable)
    return Failed(first.kind, str(first), first.retryable)


def to_vote(spec: Adapter, granularity: str, ballot: Ballot) -> Vote:
    """A ballot as a row: a fine answer also has the polarity its class maps to."""
    expression = ballot.answer if isinstance(ballot.answer, Expression) else None
    polarity = ballot.answer if isinstance(ballot.answer, Polarity) else None
    return Vote(
        voter=spec.label,
        granularity=granularity,
        repeat=int(spec.params.get("repeat", 0)),
        expression=expression,
        polarity=polarity or (POLARITY[expression] if expression else None),
        confidence=ballot.confidence,
        abstained=ballot.abstained,
        raw=ballot.raw,
        model=ballot.model,
        repaired=ballot.repaired,
    )
