"""Rows between the steps of scoring: what is read of a data set, what an editor made of it, what judges said."""

from schemas.expressions import Expression
from schemas.records import KeyField, Record
from schemas.scoring import JudgeScore


class TripletFacts(Record):
    """What scoring needs of a triplet. `key` names the ground truth, too."""

    key: KeyField
    simple: str
    dense: str
    truth_image: str


class ScoredSource(Record):
    """A source with its triplets, in the order of their keys; pictures by digest."""

    key: KeyField
    image: str
    expression: Expression
    triplets: tuple[TripletFacts, ...]


class Made(Record):
    """An editor's output for a triplet, brought to the source's size, beside the triplet's pictures.

    Attributes:
        seed, instruction: What the editor was given.
        raw_width, raw_height: Pixels it gave.
    """

    key: KeyField
    source_image: str
    truth_image: str
    image: str
    instruction: str
    seed: int
    raw_width: int
    raw_height: int


class JudgedParts(Record):
    """What the judges said of one output, by judge, part, order of the pictures and repeat."""

    scores: tuple[JudgeScore, ...]
