"""What a panel says of photos: a label where the pool gives none, a doubt where it gives one."""

from collections import Counter
from collections.abc import Sequence

from schemas.expressions import POLARITY, Expression
from schemas.outcomes import Reason
from schemas.records import Source, Vote
from tasks.engine.stage import Rejected


def panel_label(votes: Sequence[Vote]) -> Expression | None:
    """The expression that more than half of the label panel names, if there is one."""
    named = Counter(vote.expression for vote in votes if vote.expression is not None)
    return next((expression for expression, count in named.items() if count > len(votes) / 2), None)


def label_of(row: Source, votes: Sequence[Vote]) -> tuple[Expression | None, str]:
    """A source's expression and who says so: the pool, else the label panel, else nobody."""
    if row.label is not None:
        return row.label, "given"
    expression = panel_label(votes)
    return expression, "panel" if expression else ""


def doubted(row: Source, votes: Sequence[Vote], check: str) -> Rejected | None:
    """The rejection of a given label that the panel's majority contradicts, by `check`: none, polarity, expression."""
    seen = panel_label(votes)
    if check == "none" or row.label is None or seen is None or seen is row.label:
        return None
    if check == "polarity" and POLARITY[seen] is POLARITY[row.label]:
        return None
    return Rejected(Reason.LABEL_DOUBTED, f"labelled {row.label}, the panel sees {seen}")
