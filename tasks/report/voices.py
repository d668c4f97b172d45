"""What each voter of the panel said over a whole run, and how often it agreed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.expressions import POLARITY, Expression, Polarity
from schemas.records import Ballots, Vote
from schemas.sections import Adapter
from tasks.engine.dossier import Life
from tasks.verify import winner


@dataclass
class Voice:
    """One voter over all candidates. Shares are None where their base is empty.

    Attributes:
        voter: The panel's entry.
        granularity: "fine" or "coarse", as its votes say; empty before the first.
        answers: Valid answers by polarity.
        abstained: Abstentions by kind.
        repaired: Answers that were asked for twice, because the first could not be read.
        decided: Its valid answers on candidates where the panel had a winner, and `agreed`, how many named it.
        on_target: Its valid answers that named the target's polarity.
    """

    voter: Adapter
    granularity: str = ""
    answers: Counter[Polarity] = field(default_factory=Counter)
    abstained: Counter[str] = field(default_factory=Counter)
    repaired: int = 0
    decided: int = 0
    agreed: int = 0
    on_target: int = 0

    @property
    def asked(self) -> int:
        return self.answered + self.abstained.total()

    @property
    def answered(self) -> int:
        return self.answers.total()

    @property
    def agreement(self) -> float | None:
        """Share of its valid answers that named the panel's winner, where there was one."""
        return self.agreed / self.decided if self.decided else None

    @property
    def target_share(self) -> float | None:
        """Share of its valid answers that named the target's polarity."""
        return self.on_target / self.answered if self.answered else None

    def hear(self, vote: Vote, won: Polarity | None, target: Expression) -> None:
        """Count one vote."""
        self.granularity = vote.granularity
        self.repaired += vote.repaired
        if vote.polarity is None:
            self.abstained[str(vote.abstained)] += 1
            return
        self.answers[vote.polarity] += 1
        self.on_target += vote.polarity is POLARITY[target]
        if won is not None:
            self.decided += 1
            self.agreed += vote.polarity is won


class Voices:
    """The panel.

    Args:
        panel: Its entries; votes come in this order.
        majority: The config's `verify.cut.majority`.
    """

    def __init__(self, panel: Sequence[Adapter], majority: str) -> None:
        self.voices = [Voice(voter) for voter in panel]
        self._majority = majority

    def add(self, candidate: Life) -> None:
        """Count the votes on one candidate, if any were cast."""
        ballots = candidate.measured.get("verify")
        if not isinstance(ballots, Ballots):
            return
        won = winner(ballots.votes, self._majority)[0]
        for voice, vote in zip(self.voices, ballots.votes, strict=False):
            voice.hear(vote, won, Expression(candidate.key.target))
