"""Simple against dense: what an editor gains from being told more, over the rows that it has under both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas.scoring import Granularity
from tasks.leaderboard.bootstrap import Difference, draws
from tasks.leaderboard.ranking import Board, against


@dataclass(frozen=True)
class Told:
    """One editor under both instructions; `dense` minus `simple`, and its rank under each."""

    label: str
    simple_rank: int | None
    dense_rank: int | None
    gain: Difference

    @property
    def words(self) -> str:
        verdict = self.gain.verdict
        return f"{verdict} with dense" if verdict in ("better", "worse") else verdict


def told_more(boards: Sequence[Board]) -> Iterator[tuple[Board, list[Told]]]:
    """For every two boards that differ in the instruction alone: the dense one, and its editors by rank.

    Args:
        boards: As `ranking.boards` gives them.
    """
    for dense in boards:
        simple = next((one for one in boards if one.manifest is dense.manifest and one is not dense), None)
        if simple is None or dense.granularity is not Granularity.DENSE:
            continue
        under, failed = {row.label: row for row in simple.rows}, dense.rank_by == "all"
        names = sorted({name for row in dense.rows for name in row.entrant.subjects.values()})
        people = {name: place for place, name in enumerate(names)}
        drawn = draws(len(people), dense.seed)
        told = []
        for row in dense.rows:
            if other := under.get(row.label):
                mine, theirs = (one.entrant.taken(failed=failed) for one in (row, other))
                gain = against(mine, theirs, row.entrant.subjects, people, drawn)
                told.append(Told(row.label, other.rank, row.rank, gain))
        if told:
            yield dense, told
