"""Which way voters lean: the polarities they name beside those asked for and those the majority saw, group by group."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from schemas.expressions import EXPRESSIONS, POLARITY, Expression, Polarity
from schemas.records import Photo, Vote
from tasks.metrics.interval import Share

# What candidates are grouped by: what they should show, what their source shows, and what the pool says of the person.
GROUPINGS: Final[dict[str, str]] = {
    "target": "target expression",
    "source": "source expression",
    "gender": "gender",
    "race": "race",
    "age": "age",
}
RULES: Final = ("panel", "valid")
_ALL: Final = ("all", "")
_MOST: Final = 24  # values of one trait; what a pool has beyond them counts as "others"


@dataclass
class Leaning:
    """One voter in one group. Only candidates that it answered count.

    Attributes:
        said: Its answers by polarity.
        asked: The targets of these candidates.
        beside: Its answers where there was a winner, and `won`, who won there.
        abstained: Candidates that it did not answer.
    """

    said: Counter[Polarity] = field(default_factory=Counter)
    asked: Counter[Polarity] = field(default_factory=Counter)
    beside: Counter[Polarity] = field(default_factory=Counter)
    won: Counter[Polarity] = field(default_factory=Counter)
    abstained: int = 0

    @property
    def answered(self) -> int:
        return self.said.total()

    def share(self, polarity: Polarity) -> float:
        """Share of its answers, 0..1; 0 without any."""
        return self.said[polarity] / max(1, self.answered)

    def bias(self, polarity: Polarity) -> float | None:
        """Share of its answers that name a polarity, less the share of targets there, -1..1; None without answers."""
        return (self.said[polarity] - self.asked[polarity]) / self.answered if self.answered else None

    def against_majority(self, polarity: Polarity) -> float | None:
        """The same against the winners, where there was one."""
        return (self.beside[polarity] - self.won[polarity]) / self.won.total() if self.won else None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        named = {str(each): self.said[each] for each in Polarity}
        return {
            "said": named,
            "abstained": self.abstained,
            "bias_against_targets": {str(each): self.bias(each) for each in Polarity},
            "bias_against_majority": {str(each): self.against_majority(each) for each in Polarity},
        }


@dataclass
class Group:
    """Candidates of one kind.

    Attributes:
        by, value: Of which kind: ("gender", "female"); ("all", "") for all of them.
        shown: How many.
        asked, won: Their targets, and the winners of their votes, by polarity.
        passed: By majority rule, how many verification would keep.
        voters: The voters, in panel order.
    """

    by: str
    value: str
    voters: list[Leaning]
    shown: int = 0
    asked: Counter[Polarity] = field(default_factory=Counter)
    won: Counter[Polarity] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)

    def passing(self, rule: str) -> Share:
        """Pass rate under a majority rule, all else as configured."""
        return Share(self.passed[rule], self.shown)

    def add(self, votes: Sequence[Vote], target: Polarity, won: Polarity | None, kept: Sequence[str]) -> None:
        """Take in one candidate; `kept` are the rules under which it passes."""
        self.shown += 1
        self.asked[target] += 1
        self.passed.update(kept)
        if won is not None:
            self.won[won] += 1
        for leaning, vote in zip(self.voters, votes, strict=True):
            if vote.polarity is None:
                leaning.abstained += 1
                continue
            leaning.said[vote.polarity] += 1
            leaning.asked[target] += 1
            if won is not None:
                leaning.beside[vote.polarity] += 1
                leaning.won[won] += 1


class Groups:
    """All groups of a run: as many as there are expressions and trait values, however many candidates.

    Args:
        voters: How many vote.
    """

    def __init__(self, voters: int) -> None:
        self._voters = voters
        self._groups: dict[tuple[str, str], Group] = {}
        self._add_group(_ALL)

    def _add_group(self, name: tuple[str, str]) -> Group:
        return self._groups.setdefault(name, Group(*name, [Leaning() for _ in range(self._voters)]))

    def add(
        self, photo: Photo, target: Expression, votes: Sequence[Vote], won: Polarity | None, kept: Sequence[str]
    ) -> None:
        """Take in one candidate of a photo."""
        traits = {name: value for name, _, value in (trait.partition("=") for trait in photo.traits)}
        known = [(by, traits[by]) for by in GROUPINGS if traits.get(by)]
        for by, value in [_ALL, ("target", str(target)), ("source", str(photo.expression)), *known]:
            room = (by, value) in self._groups or len(self.of(by)) < _MOST
            self._add_group((by, value if room else "others")).add(votes, POLARITY[target], won, kept)

    @property
    def every(self) -> Group:
        """All candidates."""
        return self._groups[_ALL]

    def of(self, by: str) -> list[Group]:
        """The groups of one kind: expressions in the enum's order, traits by name."""
        order = {str(expression): place for place, expression in enumerate(EXPRESSIONS)}
        found = [group for group in self._groups.values() if group.by == by]
        return sorted(found, key=lambda group: (order.get(group.value, len(order)), group.value))

    def unknown(self) -> list[str]:
        """The kinds that no pool says anything about."""
        return [name for by, name in GROUPINGS.items() if not self.of(by)]
