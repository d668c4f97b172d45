"""What a voter says of one picture."""

from dataclasses import dataclass

from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention


@dataclass(frozen=True, slots=True)
class Ballot:
    """One answer. Exactly one of `answer` and `abstained` is set.

    Attributes:
        answer: An expression (fine) or a polarity (coarse).
        confidence: The voter's own probability of that answer, 0..1, where it has one.
        abstained: Why there is no answer.
        raw: What the voter really said, for people and for parsing again.
    """

    answer: Expression | Polarity | None = None
    confidence: float | None = None
    abstained: Abstention | None = None
    raw: str = ""

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.abstained is None):
            raise ValueError("a ballot is either an answer or an abstention")
