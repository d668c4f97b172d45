"""When judges answered, and whether they still do as they did: `judging.json` beside a run's scores.

Apart from the scores, for these depend on no day. Days are UTC, as "2026-11-30".
"""

from typing import Final

from schemas.records import Record
from schemas.scoring import Granularity, Part

JUDGING: Final = "judging.json"


class JudgedOn(Record):
    """From when to when a judge answered about an editor's outputs; `outputs` counts those that it did."""

    editor: str
    granularity: Granularity
    judge: str
    first: str
    last: str
    outputs: int


class DriftPart(Record):
    """One part's answers of a check, against the stored ones to the same questions.

    Attributes:
        outputs: That have both.
        mean: Of new − stored per output, on the judge's 0..10; None over nothing.
        low, high: 95 % of it, by bootstrap over people; None with fewer than ten.
        answers, flips: How many questions have both answers, and how many of these cross 5.
    """

    part: Part
    outputs: int
    mean: float | None
    low: float | None
    high: float | None
    answers: int
    flips: int

    @property
    def drifted(self) -> bool:
        """Whether the interval is off 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class DriftCheck(Record):
    """Stored outputs that a judge judged again. No answer that counts is replaced by it.

    Attributes:
        judge, identity: Whose, and the fingerprint of what decides its answers.
        on: The day of the new answers.
        first, last: The days of the stored ones.
        outputs: How many outputs were judged again.
        abstained, unreached: New answers that were none, and questions that could not be asked.
        parts: PQ, SC, GTA.
    """

    judge: str
    identity: str
    on: str
    first: str
    last: str
    outputs: int
    abstained: int
    unreached: int
    parts: tuple[DriftPart, ...]


class JudgingRecord(Record):
    """What `judging.json` says.

    Attributes:
        apart: Answers more days apart than this are of different days (`drift.days`).
        judged: By editor, granularity and judge.
        checks: By day and judge.
    """

    apart: int
    judged: tuple[JudgedOn, ...]
    checks: tuple[DriftCheck, ...]
