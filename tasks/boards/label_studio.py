"""The board of people: it leaves everything open. What they have answered since enters the review's cut."""

from collections.abc import Sequence

from schemas.records import Finalist, Opinion
from tasks.engine.registry import Adapter


class LabelStudioBoard(Adapter):
    """Three people compare the finalists in Label Studio (`fedbench review`); nothing here asks a network."""

    seconds = 0.0

    def review(self, finalists: Sequence[Finalist]) -> Sequence[Opinion]:
        return [Opinion(mode="human", chosen=None, note="people decide") for _ in finalists]
