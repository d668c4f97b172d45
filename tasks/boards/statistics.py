"""How well people agree: with each other, with the majority, with the rank; and what leads them astray."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

from schemas.reviewing import ReviewCut
from schemas.reviews import Answer, Question
from tasks.boards.answers import Answers
from tasks.boards.ratings import by_cell, ratings_by_cell
from tasks.boards.votes import verdict
from tasks.metrics.interval import Share


def alpha(units: Iterable[Sequence[Any]]) -> float | None:
    """Krippendorff's alpha for nominal answers (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").

    Args:
        units: The answers to each question; one with a single answer says nothing and is left out.

    Returns:
        1 for full agreement, 0 for what chance would give, negative below; None where nothing can be compared or
        all answers are one.
    """
    weights: dict[tuple[Any, Any], float] = defaultdict(float)
    for unit in units:
        if len(unit) < 2:
            continue
        for i, one in enumerate(unit):
            for j, other in enumerate(unit):
                if i != j:
                    weights[one, other] += 1 / (len(unit) - 1)
    totals: dict[Any, float] = defaultdict(float)
    for (one, _), weight in weights.items():
        totals[one] += weight
    n = sum(totals.values())
    expected = sum(totals[a] * totals[b] for a in totals for b in totals if a != b) / (n - 1) if n > 1 else 0.0
    if not expected:
        return None
    observed = sum(weight for (one, other), weight in weights.items() if one != other)
    return 1 - observed / expected


def _share(hits: int, of: int) -> dict[str, float | int | None]:
    return Share(hits, of).plain()


def word(answer: Answer, question: Question) -> str:
    """An answer as a class that means the same in every question: first or second rank, both, none."""
    if len(answer.usable) != 1:
        return "both" if answer.usable else "none"
    return "first" if answer.usable[0] == question.finalists[0].image else "second"


def statistics(questions: Sequence[Question], answers: Answers, cut: ReviewCut) -> dict[str, Any]:
    """Everything there is to say of a review so far, as plain values.

    Args:
        questions: Those of the run.
        answers: Those that count.
        cut: Who counts, and how.
    """
    names = [*cut.annotators, *cut.former]
    counted = {q.digest: [one for one in answers.to(q.digest) if one.annotator in names] for q in questions}
    verdicts = {q.digest: verdict(answers.to(q.digest), cut) for q in questions}
    words = {q.digest: {one.annotator: word(one, q) for one in counted[q.digest]} for q in questions}
    pairs = [q for q in questions if len(q.finalists) == 2]
    ends = Counter(
        "split" if one.split and one.usable is None else "waiting" if one.usable is None else "chosen" if one.usable
        else "rejected"
        for one in verdicts.values()
    )  # fmt: skip
    return {
        "sources": len(questions),
        "decided": ends["chosen"] + ends["rejected"],
        "chosen": ends["chosen"],
        "rejected": ends["rejected"],
        "to_adjudicate": ends["split"],
        "without_majority": sum(one.split for one in verdicts.values()),
        "simulated": sum(one.played for found in counted.values() for one in found),
        "alpha": alpha([list(said.values()) for said in words.values()]),
        "pairwise": _pairwise(names, words),
        "annotators": {name: _person(name, questions, counted, verdicts, words) for name in names},
        "position": _position(one for q in pairs for one in counted[q.digest]),
        "rank": _rank(pairs, verdicts),
        "captions": {
            "with": _accepted(one for found in counted.values() for one in found if one.captions),
            "without": _accepted(one for found in counted.values() for one in found if not one.captions),
        },
        "flags": _flags(questions, counted),
        "ratings": ratings_by_cell(questions, counted),
    }


def _pairwise(names: Sequence[str], words: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    found = {}
    for one, other in combinations(names, 2):
        both = [(said[one], said[other]) for said in words.values() if one in said and other in said]
        if both:
            found[f"{one} and {other}"] = _share(sum(a == b for a, b in both), len(both))
    return found


def _person(
    name: str,
    questions: Sequence[Question],
    counted: Mapping[str, Sequence[Answer]],
    verdicts: Mapping[str, Any],
    words: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    mine = [one for found in counted.values() for one in found if one.annotator == name]
    # With the others: a majority that rests on their own vote would agree with them too often.
    others = [
        (words[q.digest][name], Counter(said for who, said in words[q.digest].items() if who != name).most_common())
        for q in questions
        if name in words[q.digest]
    ]
    clear = [(said, votes[0][0]) for said, votes in others if votes and (len(votes) == 1) and votes[0][1] >= 2]
    seconds = [one.seconds for one in mine if one.seconds is not None]
    decided = [one for one in mine if verdicts[one.question].usable is not None]
    return {
        "answered": len(mine),
        "of": len(questions),
        "median_seconds": median(seconds) if seconds else None,
        "under_5_seconds": sum(one < 5 for one in seconds),
        "with_majority": _share(sum(one.usable == verdicts[one.question].usable for one in decided), len(decided)),
        "with_the_others": _share(sum(a == b for a, b in clear), len(clear)),
        "position": _position(mine),
        "changed_by_others": sum(one.edited_by is not None for one in mine),
    }


def _position(answers: Iterable[Answer]) -> dict[str, Any]:
    """How often a single choice fell on A; half, without a bias, since a coin puts finalists there."""
    chosen = [one for one in answers if len(one.usable) == 1]
    return _share(sum(one.usable[0] == one.first for one in chosen), len(chosen))


def _rank(pairs: Sequence[Question], verdicts: Mapping[str, Any]) -> dict[str, Any]:
    """How often people chose the finalist that ranked first, where they chose one."""
    chosen = [(q, verdicts[q.digest].usable) for q in pairs if len(verdicts[q.digest].usable or ()) == 1]
    return _share(sum(usable[0] == q.finalists[0].image for q, usable in chosen), len(chosen))


def _accepted(answers: Iterable[Answer]) -> dict[str, Any]:
    found = list(answers)
    return _share(sum(bool(one.usable) for one in found), len(found))


def _flags(questions: Sequence[Question], counted: Mapping[str, Sequence[Answer]]) -> dict[str, dict[str, int]]:
    """Failure tags by editor and target: "warp, happy" → tag → how often."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for cell, flagged in by_cell(questions, counted, lambda answer: answer.flags):
        found[cell][str(flagged.flag)] += 1
    return {name: dict(sorted(counts.items())) for name, counts in sorted(found.items())}
