"""The board without people: the best rank is the ground truth, and every row says that nobody looked."""

from collections.abc import Sequence

from schemas.records import Finalist, Opinion
from tasks.engine.registry import Adapter


class AutoBoard(Adapter):
    """Chooses rank 1."""

    def review(self, finalists: Sequence[Finalist]) -> Sequence[Opinion]:
        best = min(finalist.rank for finalist in finalists)
        return [
            Opinion(mode="auto", chosen=finalist.rank == best, note="best rank; nobody reviewed it")
            for finalist in finalists
        ]
