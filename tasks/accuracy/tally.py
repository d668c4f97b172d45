"""Answers beside the truth: every voter's accuracy, abstentions and confusions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.expressions import EXPRESSIONS, POLARITY, Expression, Polarity
from schemas.records import Vote
from tasks.metrics.interval import Share

POLARITIES: Final = tuple(Polarity)
SILENT: Final = "abstained"
_FINE: Final = {expression: place for place, expression in enumerate(EXPRESSIONS)}
_COARSE: Final = {polarity: place for place, polarity in enumerate(POLARITIES)}
_NONE: Final = -1


@dataclass(frozen=True)
class Right:
    """An accuracy told twice: of all pictures, where an abstention is not right; and of those that were answered."""

    of_all: Share
    of_answered: Share

    @classmethod
    def of(cls, hits: int, answered: int, every: int) -> "Right":
        return cls(Share(hits, every), Share(hits, answered))

    def plain(self) -> dict[str, Any]:
        return {"of_all": self.of_all.plain(), "of_answered": self.of_answered.plain()}


@dataclass(frozen=True)
class VoterScore:
    """One voter over all pictures.

    Attributes:
        voter, granularity, repeat: Who.
        pictures: How many it was shown.
        abstained: Abstentions by kind.
        fine: Accuracy among seven expressions; None for a coarse voter.
        coarse: Accuracy among three polarities; a named expression counts as its polarity.
        confusion: What a picture shows → what the voter said ("abstained" among it) → how often.
    """

    voter: str
    granularity: str
    repeat: int
    pictures: int
    abstained: dict[str, int]
    fine: Right | None
    coarse: Right
    confusion: dict[str, dict[str, int]]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        told = {name: getattr(self, name) for name in ("voter", "granularity", "repeat", "pictures", "abstained")}
        fine = self.fine.plain() if self.fine else None
        return told | {"fine": fine, "coarse": self.coarse.plain(), "confusion": self.confusion}


class Tally:
    """Votes on pictures of known truth, in panel order; a few bytes for each."""

    def __init__(self) -> None:
        self._truth: list[int] = []
        self._fine: list[list[int]] = []
        self._coarse: list[list[int]] = []
        self._who: list[tuple[str, str, int]] = []
        self._abstained: list[Counter[str]] = []

    def add(self, truth: Expression, votes: Sequence[Vote]) -> None:
        """Take in what a panel said of one picture."""
        if not self._truth:
            self._who = [(vote.voter, vote.granularity, vote.repeat) for vote in votes]
            self._abstained = [Counter() for _ in votes]
        self._truth.append(_FINE[truth])
        self._fine.append([_NONE if vote.expression is None else _FINE[vote.expression] for vote in votes])
        self._coarse.append([_NONE if vote.polarity is None else _COARSE[vote.polarity] for vote in votes])
        for silent, vote in zip(self._abstained, votes, strict=True):
            if vote.abstained is not None:
                silent[str(vote.abstained)] += 1

    def __len__(self) -> int:
        return len(self._truth)

    def truths(self) -> dict[str, int]:
        """How many pictures show each expression."""
        counts = Counter(self._truth)
        return {str(name): counts[place] for place, name in enumerate(EXPRESSIONS) if counts[place]}

    def arrays(self, granularity: str) -> tuple[list[str], NDArray[np.int8], NDArray[np.int8], int]:
        """For panels: who answers at this granularity, the truth (N,), their answers (N, V), how many classes.

        Classes count from 0, an abstention is -1. At "coarse" every voter answers, at "fine" only those of that kind.
        """
        truth, answers = np.array(self._truth, np.int8), np.array(self._coarse, np.int8)
        if granularity == "coarse":
            return self._names(range(len(self._who))), _to_polarity()[truth], answers, len(POLARITIES)
        places = [place for place, who in enumerate(self._who) if who[1] == "fine"]
        answers = np.array(self._fine, np.int8)[:, places]
        return self._names(places), truth, answers, len(EXPRESSIONS)

    def _names(self, places: Sequence[int]) -> list[str]:
        """What voters are called among these: with granularity and repeat only where the name alone will not do."""
        among = [self._who[place] for place in places]
        names = [voter for voter, _, _ in among]
        called = []
        for voter, granularity, repeat in among:
            more = f" ({granularity}{f', repeat {repeat}' if repeat else ''})" if names.count(voter) > 1 else ""
            called.append(voter + more)
        return called

    def voters(self) -> list[VoterScore]:
        """Every voter's score, in panel order; empty before the first picture."""
        if not self._truth:
            return []
        truth, fine, coarse = (np.array(each, np.int8) for each in (self._truth, self._fine, self._coarse))
        polarity = _to_polarity()[truth]
        scores = []
        for place, (voter, granularity, repeat) in enumerate(self._who):
            is_fine = granularity == "fine"
            said, classes = (fine[:, place], EXPRESSIONS) if is_fine else (coarse[:, place], POLARITIES)
            scores.append(
                VoterScore(
                    voter=voter,
                    granularity=granularity,
                    repeat=repeat,
                    pictures=len(truth),
                    abstained=dict(sorted(self._abstained[place].items())),
                    fine=_right(fine[:, place], truth) if is_fine else None,
                    coarse=_right(coarse[:, place], polarity),
                    confusion=_confusion(truth, said, classes),
                )
            )
        return scores


def _to_polarity() -> NDArray[np.int8]:
    return np.array([_COARSE[POLARITY[expression]] for expression in EXPRESSIONS], np.int8)


def _right(said: NDArray[np.int8], truth: NDArray[np.int8]) -> Right:
    return Right.of(int((said == truth).sum()), int((said != _NONE).sum()), len(truth))


def _confusion(
    truth: NDArray[np.int8], said: NDArray[np.int8], classes: Sequence[Expression | Polarity]
) -> dict[str, dict[str, int]]:
    table = {}
    for place, expression in enumerate(EXPRESSIONS):
        answers = Counter(said[truth == place].tolist())
        if answers:
            table[str(expression)] = {str(name): answers[each] for each, name in enumerate(classes)}
            table[str(expression)][SILENT] = answers[_NONE]
    return table
