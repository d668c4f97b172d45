"""What people are asked about the finalists of a source, what they answer, and what that says of a sample."""

from enum import StrEnum

from schemas.records import Finalist, KeyField, Record


class Quality(StrEnum):
    """What a finalist is rated for, 1 (bad) to 5 (perfect)."""

    NATURAL = "natural"
    ALIGNED = "aligned"
    PRESERVED = "preserved"


class Flag(StrEnum):
    """What may be wrong with a finalist."""

    ARTIFACTS = "artifacts"
    IDENTITY = "identity"
    BACKGROUND = "background"
    EXPRESSION = "expression"


class Question(Record):
    """The finalists of a source, to be compared.

    Attributes:
        digest: Of source, pictures, instructions and guide: what makes it this question.
        key: The source's.
        guide: Version of the guide that annotators read.
        finalists: Best rank first. Their ranks are those of the day it was first asked.
    """

    digest: str
    key: KeyField
    guide: int
    finalists: tuple[Finalist, ...]


class Rating(Record):
    """One rating of one finalist, by the digest of its picture."""

    image: str
    quality: Quality
    value: int


class Flagged(Record):
    """One failure tag on one finalist, by the digest of its picture."""

    image: str
    flag: Flag


class Answer(Record):
    """One person's latest answer to one question.

    Attributes:
        question: Its digest.
        key: Of the source.
        annotator: The name that the config knows them by.
        usable: Digests of the pictures that may be the ground truth, sorted; none rejects all.
        first: Digest of the picture that was shown as A.
        captions: Whether captions were shown.
        guide: Version of the guide they had.
        seconds: On the task, as Label Studio counted; None if it did not.
        ratings, flags, comment: What else they said.
        given: When, as Label Studio says (UTC).
        edited_by: Account number of somebody else who changed it last; None if nobody did.
        played: Whether `fedbench review simulate` gave it, and no person.
        gone: Whether it was taken back (deleted, or made a skip) since an earlier collection.
    """

    question: str
    key: KeyField
    annotator: str
    usable: tuple[str, ...]
    first: str
    captions: bool
    guide: int
    seconds: float | None = None
    ratings: tuple[Rating, ...] = ()
    flags: tuple[Flagged, ...] = ()
    comment: str = ""
    given: str = ""
    edited_by: int | None = None
    played: bool = False
    gone: bool = False


class SampleReviewed(Record):
    """What people found where they looked at a sample of the sources, and the best rank decided the others.

    Attributes:
        sources: That came to review.
        sampled: Of them, whom people were to look at.
        decided: Of these, on whom they decided.
        wrong: Of these, whose best-ranked finalist they rejected, out-voted, or found no majority for.
        error_rate, low, high: `wrong` of `decided` with Wilson's 95 % interval; null where nothing is decided.
    """

    sources: int
    sampled: int
    decided: int
    wrong: int
    error_rate: float | None
    low: float | None
    high: float | None
