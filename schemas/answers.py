"""What a model says: a voter's ballot, and the JSON forms that multimodal models are asked for."""

from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention

# What a voter says who cannot judge the picture; beside the seven or three words it is an answer, not a failure.
CANNOT_TELL: Final = "cannot tell"
LETTERS: Final = "ABCDEFGH"  # names of pictures to choose from
SCORE_LIMITS: Final = (0.0, 10.0)


@dataclass(frozen=True, slots=True)
class Ballot:
    """One answer. Exactly one of `answer` and `abstained` is set.

    Attributes:
        answer: An expression (fine) or a polarity (coarse).
        confidence: The voter's own probability of that answer, 0..1, where it has one.
        abstained: Why there is no answer.
        raw: What the voter really said, for people and for parsing again.
        model: Which model answered, as its provider names it; empty for a local one.
        repaired: Whether this is the second answer, because the first could not be read.
    """

    answer: Expression | Polarity | None = None
    confidence: float | None = None
    abstained: Abstention | None = None
    raw: str = ""
    model: str = ""
    repaired: bool = False

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.abstained is None):
            raise ValueError("a ballot is either an answer or an abstention")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of several pictures a text describes. Exactly one of `place` (from 0) and `abstained` is set."""

    place: int | None = None
    abstained: Abstention | None = None
    raw: str = ""
    model: str = ""
    repaired: bool = False

    def __post_init__(self) -> None:
        if (self.place is None) == (self.abstained is None):
            raise ValueError("a choice is either a picture or an abstention")


@dataclass(frozen=True, slots=True)
class Score:
    """A judge's score, 0 to 10, with its reason. Exactly one of `value` and `abstained` is set."""

    value: float | None = None
    reason: str = ""
    abstained: Abstention | None = None
    raw: str = ""
    model: str = ""
    repaired: bool = False

    def __post_init__(self) -> None:
        if (self.value is None) == (self.abstained is None):
            raise ValueError("a score is either a number or an abstention")


class Form(BaseModel):
    """Base of the JSON objects that models are asked for; their JSON schemas go to providers that can enforce one."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FineForm(Form):
    """A fine vote."""

    signs: str
    expression: Literal["anger", "disgust", "fear", "happy", "neutral", "sad", "surprise", "cannot tell"]


class CoarseForm(Form):
    """A coarse vote."""

    signs: str
    polarity: Literal["negative", "neutral", "positive", "cannot tell"]


class CaptionForm(Form):
    """A caption; empty, and `face` false, where no face can be seen."""

    face: bool
    caption: str


class DenseForm(Form):
    """A dense instruction; empty where a face is missing (`faces` false) or nothing moves (`differs` false)."""

    faces: bool
    differs: bool
    instruction: str


class PickForm(Form):
    """Which picture a text describes, by its letter."""

    reason: str
    choice: Literal["A", "B", "C", "cannot tell"]


class ScoreForm(Form):
    """A judge's score."""

    reason: str
    score: float = Field(ge=SCORE_LIMITS[0], le=SCORE_LIMITS[1])


# What each prompt asks to be answered with.
FORMS: Final[dict[str, type[Form]]] = {
    "vote_fine": FineForm,
    "vote_coarse": CoarseForm,
    "caption": CaptionForm,
    "dense_instruction": DenseForm,
    "back_check": PickForm,
    "pq": ScoreForm,
    "sc": ScoreForm,
    "gta": ScoreForm,
    "sc_swapped": ScoreForm,
    "gta_swapped": ScoreForm,
}
