"""The target mix: how many edits of each expression survive each cut. Fidelity favours lazy edits; here it shows."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

from schemas.expressions import EXPRESSIONS, Expression
from schemas.records import Photo
from tasks.engine.dossier import SourceLife

Side = Literal["target", "source"]

# The cuts between which the mix is shown, and what has passed each of them.
CUTS: Final[dict[str, str]] = {
    "generate": "candidates",
    "verify": "verified",
    "rank": "finalists",
    "review": "ground truths",
    "publish": "published",
}


@dataclass
class Mix:
    """Counts of kept edits by (stage, source expression, target expression)."""

    counts: Counter[tuple[str, Expression, Expression]] = field(default_factory=Counter)

    def add(self, life: SourceLife) -> None:
        """Count the edits of one source."""
        photo = life.outputs.get("screen")
        if not isinstance(photo, Photo):
            return
        for candidate in life.candidates:
            for stage in CUTS:
                if candidate.reached(stage):
                    self.counts[stage, photo.expression, Expression(candidate.key.target)] += 1

    def count(self, stage: str, expression: Expression, side: Side = "target") -> int:
        """Edits with this target (or source) expression that the stage kept."""
        place = 2 if side == "target" else 1
        return sum(count for cell, count in self.counts.items() if cell[0] == stage and cell[place] is expression)

    def total(self, stage: str) -> int:
        """Edits the stage kept."""
        return sum(count for cell, count in self.counts.items() if cell[0] == stage)

    def shares(self, stage: str, side: Side = "target") -> dict[Expression, float]:
        """Share of each expression among the edits the stage kept, 0..1; all 0 where it kept none."""
        total = self.total(stage) or 1
        return {expression: self.count(stage, expression, side) / total for expression in EXPRESSIONS}

    def cell(self, stage: str, source: Expression, target: Expression) -> int:
        """Edits from one expression to another that the stage kept."""
        return self.counts[stage, source, target]
