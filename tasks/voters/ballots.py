"""Asking a panel: every voter's answer on a picture, as rows."""

from collections.abc import Sequence

from schemas.answers import Ballot
from schemas.expressions import POLARITY, Expression, Polarity
from schemas.records import Vote
from schemas.sections import Adapter
from tasks.engine.images import Picture
from tasks.voters import VOTERS


def poll(panel: Sequence[Adapter], picture: Picture) -> tuple[Vote, ...]:
    """Every voter's answer on a picture, in panel order. A voter is given the picture and nothing else."""
    votes = []
    for spec in panel:
        voter = VOTERS.get(spec.name, spec.params)
        votes.append(to_vote(spec.name, voter.granularity, voter.vote(picture)))
    return tuple(votes)


def to_vote(voter: str, granularity: str, ballot: Ballot) -> Vote:
    """A ballot as a row: a fine answer also has the polarity its class maps to."""
    expression = ballot.answer if isinstance(ballot.answer, Expression) else None
    polarity = ballot.answer if isinstance(ballot.answer, Polarity) else None
    return Vote(
        voter=voter,
        granularity=granularity,
        expression=expression,
        polarity=polarity or (POLARITY[expression] if expression else None),
        confidence=ballot.confidence,
        abstained=ballot.abstained,
        raw=ballot.raw,
    )
