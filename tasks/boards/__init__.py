"""Review boards: who decides between the finalists of a source."""

from collections.abc import Sequence
from typing import Protocol

from schemas.records import Finalist, Opinion
from tasks.engine.registry import Registry


class ReviewBoard(Protocol):
    """Looks at the finalists of one source, best rank first."""

    def review(self, finalists: Sequence[Finalist]) -> Sequence[Opinion]:
        """One opinion per finalist, in order; `chosen` is None where the board has not decided yet."""
        ...


BOARDS: Registry[ReviewBoard] = Registry(
    "review board",
    {"auto": "tasks.boards.auto:AutoBoard", "label_studio": "tasks.boards.label_studio:LabelStudioBoard"},
)
