"""What people are asked about the finalists of a source, what they answer, and what that says of a sample."""

from enum import StrEnum
from typing import Final

from schemas.records import Finalist, KeyField, Record


class Quality(StrEnum):
    """What a finalist is rated for, 1 (bad) to 5 (perfect)."""

    NATURAL = "natural"
    ALIGNED = "aligned"
    IDENTITY = "identity"
    BACKGROUND = "background"
    # Identity and background in one, as guides before version 2 asked; answers of that time still hold it.
    PRESERVED = "preserved"


# What the present screen asks for.
ASKED: Final = (Quality.NATURAL, Quality.ALIGNED, Quality.IDENTITY, Quality.BACKGROUND)


class Flag(StrEnum):
    """What may be wrong with a finalist."""

    ARTIFACTS = "artifacts"
    IDENTITY = "identity"
    BACKGROUND = "background"
    EXPRESSION = "expression"


class ExtraKind(StrEnum):
    """Why something is asked that decides nothing: four kinds of gold task, whose answer is known, and audits.

    Copy: the photo itself, as if it were an edit. Stranger: an edit with another person's face. Mistaken: an edit
    beside a request that it does not meet. Clean: a photo as the edit of its own edit, which must be accepted.
    Audit: a candidate that was rejected automatically.
    """

    COPY = "copy"
    STRANGER = "stranger"
    MISTAKEN = "mistaken"
    CLEAN = "clean"
    AUDIT = "audit"


class Extra(Record):
    """What makes a question one that decides nothing; annotators see nothing of it.

    Attributes:
        kind: Why it is asked.
        picture: Digest of the picture that it is asked for: spoilt, clean or rejected.
        beside: Digest of the real question that a gold task is hidden beside; empty for audits.
        donors: Sources whose faces were put into its pictures.
    """

    kind: ExtraKind
    picture: str
    beside: str = ""
    donors: tuple[KeyField, ...] = ()


class Question(Record):
    """The finalists of a source, to be compared.

    Attributes:
        digest: Of source, pictures, instructions and guide: what makes it this question.
        key: The source's.
        guide: Version of the guide that annotators read.
        finalists: Best rank first. Their ranks are those of the day it was first asked.
        extra: Set where the answer decides nothing.
    """

    digest: str
    key: KeyField
    guide: int
    finalists: tuple[Finalist, ...]
    extra: Extra | None = None


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


class ReviewCell(Record):
    """Of a published row: who decided (`mode` is human, sample or auto), and what `note` says of it.

    Attributes:
        raters: How many of those who counted rated the ground truth.
        natural, aligned, identity, background: Their mean, 1 (bad) to 5 (perfect); null where nobody rated it for that.
    """

    mode: str
    note: str
    raters: int
    natural: float | None
    aligned: float | None
    identity: float | None
    background: float | None


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


class AuditCount(Record):
    """Candidates that one rule rejected: how many, of how many audited ones people decided, and how many they would
    have accepted."""

    stage: str
    reason: str
    rejected: int
    decided: int
    usable: int


class AuditReviewed(Record):
    """What people found of candidates that were rejected automatically; it decides nothing.

    Attributes:
        rejected: Candidates of reviewed sources that the votes or a floor of ranking rejected.
        drawn: Of them, by the coin of `review.audit`, whom people are asked about.
        decided, usable: Of these, on whom a majority decided, and whom it would have accepted.
        share, low, high: `usable` of `decided` with Wilson's 95 % interval; null where nothing is decided.
        by: The same by rule.
        passed: Candidates that the votes let pass.
        judged, judged_usable: Finalists on which people said whether they are usable, and how many are.
        recall, recall_low, recall_high: Of all usable candidates, the share that the votes let pass, if those that
            passed are as often usable as the judged ones; the interval is that of the audits alone.
    """

    rejected: int
    drawn: int
    decided: int
    usable: int
    share: float | None
    low: float | None
    high: float | None
    by: tuple[AuditCount, ...]
    passed: int
    judged: int
    judged_usable: int
    recall: float | None
    recall_low: float | None
    recall_high: float | None
