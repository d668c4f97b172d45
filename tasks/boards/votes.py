"""What the answers to a question decide: the majority of independent people, or an adjudicator, or nobody."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.reviewing import ReviewCut
from schemas.reviews import Answer


@dataclass(frozen=True)
class Verdict:
    """What was decided.

    Attributes:
        usable: Digests of the pictures that may be the ground truth; None while nothing is decided.
        note: The votes in words; names nobody.
        split: Whether all have answered without a majority.
    """

    usable: tuple[str, ...] | None
    note: str
    split: bool = False


def verdict(answers: Sequence[Answer], cut: ReviewCut) -> Verdict:
    """The decision on one question. Later answers than the majority needs are counted, and cannot turn it.

    Args:
        answers: One per person; those of people who are not on the list are ignored.
        cut: Who counts, and how many answers are wanted.
    """
    allowed = {*cut.annotators, *cut.former}
    votes = Counter(one.usable for one in answers if one.annotator in allowed)
    total = votes.total()
    who = "simulated people" if any(one.played for one in answers) else "people"
    if total:
        usable, count = min(votes.items(), key=lambda vote: (-vote[1], vote[0]))
        if 2 * count > max(cut.votes, total):
            return Verdict(usable, f"{count} of {total} {who} {_words(usable)}")
    if total < cut.votes:
        return Verdict(None, f"{total} of {cut.votes} {who} have answered")
    for name in cut.adjudicators:
        for one in answers:
            if one.annotator == name:
                return Verdict(
                    one.usable, f"no majority of {total} {who}; the adjudicator {_words(one.usable)}", split=True
                )
    if cut.adjudicators:
        return Verdict(None, f"no majority of {total} {who}; waiting for an adjudicator", split=True)
    return Verdict((), f"no majority of {total} {who}", split=True)


def _words(usable: Sequence[str]) -> str:
    return {0: "found none usable", 1: "chose one"}.get(len(usable), "found both usable")
