"""Review of a sample: whose sources people look at, and how often the best rank was wrong there."""

from collections.abc import Collection
from typing import Final

from schemas.outcomes import Status
from schemas.records import Key
from schemas.reviewing import Review, ReviewCut
from schemas.reviews import SampleReviewed
from tasks.engine.fingerprint import seed_of
from tasks.metrics.interval import Share

PEOPLE: Final = ("human", "sample")  # modes of rows that people decided


def sampled(key: Key, cut: ReviewCut) -> bool:
    """Whether people look at a source: a coin of its own, so that no other source, shard or later photo turns it.

    The same share of every stratum (source and target expression) is drawn, on average.
    """
    return cut.sample == 1 or seed_of("sample", cut.sample_seed, list(key.source())) < cut.sample * 2**31


def mode_of(key: Key, review: Review) -> str:
    """Who decides on a source of people's board: human, or where they look at a sample, sample or auto."""
    if review.cut.sample == 1:
        return "human"
    return "sample" if sampled(key, review.cut) else "auto"


def samples(review: Review) -> bool:
    """Whether people look at a sample of the sources alone."""
    return review.asks_people and review.cut.sample < 1


class SampleTally:
    """Counts how often people did not keep the best rank of a sampled source.

    Args:
        review: The config's.
    """

    def __init__(self, review: Review) -> None:
        self._review = review
        self._counts = {"sources": 0, "sampled": 0, "decided": 0, "wrong": 0}

    def add(self, source: Key, steps: Collection[tuple[Status, str]]) -> None:
        """Count a source.

        Args:
            source: Its key.
            steps: How each of its finalists left review, and the evidence ("rank 1; ...") of those that were rejected.
        """
        if not steps:
            return
        self._counts["sources"] += 1
        if not sampled(source, self._review.cut):
            return
        self._counts["sampled"] += 1
        statuses = [status for status, _ in steps]
        if Status.WAITING not in statuses and Status.FAILED not in statuses:
            fell = any(status is Status.REJECTED and words.startswith("rank 1; ") for status, words in steps)
            self._counts["decided"] += 1
            self._counts["wrong"] += fell or Status.KEPT not in statuses

    def found(self) -> SampleReviewed | None:
        """What the sample says; None where people look at everything, or at nothing."""
        if not samples(self._review):
            return None
        share = Share(self._counts["wrong"], self._counts["decided"])
        low, high = share.interval or (None, None)
        return SampleReviewed(**self._counts, error_rate=share.value, low=low, high=high)
