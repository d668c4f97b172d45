"""What people say of single finalists: by editor and target; and what they rated a picture for, in the mean."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeVar

from schemas.ratings import RatingMean
from schemas.reviewing import ReviewCut
from schemas.reviews import Answer, Flagged, Quality, Question, Rating

Mark = TypeVar("Mark", Rating, Flagged)


def means_of(image: str, answers: Iterable[Answer], cut: ReviewCut) -> tuple[RatingMean, ...]:
    """How those who count rated a picture, in the order of the screen; a quality that nobody rated is left out."""
    allowed = {*cut.annotators, *cut.former, *cut.adjudicators}
    said: dict[Quality, list[int]] = defaultdict(list)
    for answer in answers:
        for rating in answer.ratings if answer.annotator in allowed else ():
            if rating.image == image:
                said[rating.quality].append(rating.value)
    return _means(said)


def ratings_by_cell(questions: Sequence[Question], counted: Mapping[str, Sequence[Answer]]) -> dict[str, Any]:
    """By "editor, target" and quality: the mean over all ratings that were given, and how many they were.

    Args:
        questions: Real ones.
        counted: By question, the answers that count.
    """
    said: dict[str, dict[Quality, list[int]]] = defaultdict(lambda: defaultdict(list))
    for cell, rating in by_cell(questions, counted, lambda answer: answer.ratings):
        said[cell][rating.quality].append(rating.value)
    return {
        cell: {one.quality: {"mean": one.mean, "ratings": one.people} for one in _means(by)}
        for cell, by in sorted(said.items())
    }


def by_cell(
    questions: Sequence[Question], counted: Mapping[str, Sequence[Answer]], marks: Callable[[Answer], Iterable[Mark]]
) -> Iterator[tuple[str, Mark]]:
    """What answers say of single finalists, each beside its "editor, target".

    Args:
        questions: Real ones.
        counted: By question, the answers that count.
        marks: What of an answer; each names its picture.
    """
    for question in questions:
        key_of = {one.image: one.key for one in question.finalists}
        for answer in counted[question.digest]:
            for mark in marks(answer):
                if key := key_of.get(mark.image):
                    yield f"{key.editor}, {key.target}", mark


def _means(said: Mapping[Quality, Sequence[int]]) -> tuple[RatingMean, ...]:
    return tuple(
        RatingMean(quality=str(quality), mean=fmean(said[quality]), people=len(said[quality]))
        for quality in Quality
        if said.get(quality)
    )
