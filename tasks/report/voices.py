"""What each voter of the panel said over a whole run, how often it agreed, and which way it leans."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.config import VerifyCut
from schemas.expressions import POLARITY, Expression, Polarity
from schemas.records import Ballots, Candidate, GroundTruth, Photo, Vote
from schemas.sections import Adapter
from tasks.boards.sampling import PEOPLE
from tasks.engine.dossier import SourceLife
from tasks.engine.stage import Kept
from tasks.report.lean import GROUPINGS, RULES, Groups
from tasks.verify import verdict, winner


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
        reviewed: Its valid answers on candidates that people chose, and `with_people`, how many named the target's
            polarity. What people did not choose may have shown the target all the same, so it says nothing.
    """

    voter: Adapter
    granularity: str = ""
    answers: Counter[Polarity] = field(default_factory=Counter)
    abstained: Counter[str] = field(default_factory=Counter)
    repaired: int = 0
    decided: int = 0
    agreed: int = 0
    on_target: int = 0
    reviewed: int = 0
    with_people: int = 0

    @property
    def title(self) -> str:
        """What people call it; a second entry of the same voter has its repeat."""
        repeat = self.voter.params.get("repeat", 0)
        return f"{self.voter.label} #{repeat}" if repeat else self.voter.label

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

    @property
    def people_share(self) -> float | None:
        """Share of its valid answers that named what people chose."""
        return self.with_people / self.reviewed if self.reviewed else None

    def hear(self, vote: Vote, won: Polarity | None, target: Expression, *, chosen: bool) -> None:
        """Count one vote; `chosen` says that people chose the candidate."""
        self.granularity = vote.granularity
        self.repaired += vote.repaired
        if vote.polarity is None:
            self.abstained[str(vote.abstained)] += 1
            return
        right = vote.polarity is POLARITY[target]
        self.answers[vote.polarity] += 1
        self.on_target += right
        if won is not None:
            self.decided += 1
            self.agreed += vote.polarity is won
        if chosen:
            self.reviewed += 1
            self.with_people += right

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "voter": self.title,
            "granularity": self.granularity,
            "asked": self.asked,
            "answers": {str(each): self.answers[each] for each in Polarity},
            "abstained": dict(sorted(self.abstained.items())),
            "repaired": self.repaired,
            "agrees_with_majority": self.agreement,
            "decided": self.decided,
            "names_target": self.target_share,
            "agrees_with_people": self.people_share,
            "reviewed": self.reviewed,
        }


class Voices:
    """The panel: a fixed number of counts, however many candidates.

    Args:
        panel: Its entries; votes come in this order.
        cut: The config's `verify.cut`.

    Attributes:
        voices: The voters.
        groups: Which way they lean, by expression and by what pools say of people.
        chosen: Candidates that people chose in review.
    """

    def __init__(self, panel: Sequence[Adapter], cut: VerifyCut) -> None:
        self.voices = [Voice(voter) for voter in panel]
        self.groups = Groups(len(panel))
        self.chosen = 0
        self._cuts = {rule: cut.model_copy(update={"majority": rule}) for rule in RULES}
        self._majority = cut.majority

    def add(self, life: SourceLife) -> None:
        """Count the votes on the candidates of one source that were cast and decided on."""
        photo = life.outputs.get("screen")
        for candidate in life.candidates:
            ballots, made = candidate.measured.get("verify"), candidate.measured.get("generate")
            if not (isinstance(ballots, Ballots) and isinstance(made, Candidate) and isinstance(photo, Photo)):
                continue
            if "verify" not in candidate.steps:
                continue
            truth, target = candidate.outputs.get("review"), Expression(candidate.key.target)
            chosen = isinstance(truth, GroundTruth) and truth.mode in PEOPLE
            self.chosen += chosen
            won = winner(ballots.votes, self._majority)[0]
            for voice, vote in zip(self.voices, ballots.votes, strict=True):
                voice.hear(vote, won, target, chosen=chosen)
            kept = [rule for rule, cut in self._cuts.items() if isinstance(verdict(made, ballots, cut), Kept)]
            self.groups.add(photo, target, ballots.votes, won, kept)

    def plain(self) -> dict[str, Any]:
        """For JSON: voters, pass rates under both majority rules, and every group's leanings."""
        groups = [group for by in GROUPINGS for group in self.groups.of(by)]
        names = [voice.title for voice in self.voices]
        return {
            "voters": [voice.plain() for voice in self.voices],
            "chosen_by_people": self.chosen,
            "groups": [
                {
                    "by": group.by,
                    "value": group.value,
                    "candidates": group.shown,
                    "targets": {str(each): group.asked[each] for each in Polarity},
                    "winners": {str(each): group.won[each] for each in Polarity},
                    "passed": {rule: group.passing(rule).plain() for rule in RULES},
                    "voters": [
                        {"voter": name} | leaning.plain() for name, leaning in zip(names, group.voters, strict=True)
                    ],
                }
                for group in [self.groups.every, *groups]
            ],
            "unknown": self.groups.unknown(),
        }
