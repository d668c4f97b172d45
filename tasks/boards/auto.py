"""The board without people: it lets every finalist pass, so that rank decides, and says that nobody looked."""

from collections.abc import Sequence

from schemas.records import Finalist, Opinion
from tasks.engine.registry import Adapter


class AutoBoard(Adapter):
    """Chooses all; of these the review's cut keeps the best ranks."""

    seconds = 0.0

    def review(self, finalists: Sequence[Finalist]) -> Sequence[Opinion]:
        return [Opinion(mode="auto", chosen=True, note="best rank; nobody reviewed it") for _ in finalists]
