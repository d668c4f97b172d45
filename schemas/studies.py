"""A study of pairs: which outputs people compare, and what they answer."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from schemas.expressions import Expression
from schemas.records import KeyField, Record
from schemas.reviewing import Name
from schemas.scoring import Granularity

StudyName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]


class Side(StrEnum):
    """Which output of a pair."""

    A = "a"
    B = "b"
    SAME = "same"


class Aspect(StrEnum):
    """What people compare two outputs by; the names of the columns in the file of pairs."""

    OVERALL = "overall"
    INSTRUCTION = "instruction"
    IDENTITY = "identity"


class StudyPair(Record):
    """Two editors' outputs for one triplet and instruction.

    Attributes:
        key: The source's.
        triplet, subject, granularity, target: As in `scores.parquet`.
        source_expression: What the source shows.
        instruction: What both editors were told.
        source_image, truth_image: sha256 of the stored pictures.
        a, b: The editors, in the order of their names; people see them in an order of their own.
        a_image, b_image: sha256 of their outputs, which differ.
    """

    key: KeyField
    triplet: str
    subject: str
    granularity: Granularity
    target: Expression
    source_expression: Expression
    instruction: str
    source_image: str
    truth_image: str
    a: str
    b: str
    a_image: str
    b_image: str


class Chosen(Record):
    """One person's word on one aspect of a pair."""

    aspect: Aspect
    side: Side


class PairAnswer(Record):
    """One person's latest answer to a pair.

    Attributes:
        question: Digest of the question.
        key: Of the source.
        annotator: The name that the study knows them by.
        choices: One word per aspect, in the order of `Aspect`.
        first: Digest of the picture that was shown as A.
        guide: Version of the guide they had.
        seconds: On the task, as Label Studio counted; None if it did not.
        given: When, as Label Studio says (UTC).
        edited_by: Account number of somebody else who changed it last; None if nobody did.
        played: Whether `fedbench study simulate` gave it, and no person.
        gone: Whether it was taken back since an earlier collection.
    """

    question: str
    key: KeyField
    annotator: str
    choices: tuple[Chosen, ...]
    first: str
    guide: int
    seconds: float | None = None
    given: str = ""
    edited_by: int | None = None
    played: bool = False
    gone: bool = False


class Study(Record):
    """What a study is.

    Attributes:
        name: Its name.
        dataset, edition, rows_sha256: What was scored.
        runs: Whose outputs are compared.
        seed: Of the choice of pairs.
        annotators: Who is asked: accounts by the part before the @.
    """

    name: StudyName
    dataset: str
    edition: str
    rows_sha256: str
    runs: tuple[str, ...]
    seed: int = Field(ge=0)
    annotators: tuple[Name, ...] = Field(min_length=1)
