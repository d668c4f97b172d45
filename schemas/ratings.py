"""How people rated a picture, in a row."""

from pydantic import BaseModel


class RatingMean(BaseModel, extra="forbid", frozen=True):
    """What people rated a picture for ("natural", "aligned", "identity", "background"), 1 (bad) to 5 (perfect).

    Attributes:
        mean: Over all of them, 1..5.
        people: How many they were.
    """

    quality: str
    mean: float
    people: int
