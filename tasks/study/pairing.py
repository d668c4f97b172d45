"""Which pairs of outputs people compare: drawn by seed, balanced over editors, expressions and sources. Pure."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from schemas.records import Key
from schemas.scoring import ScoreRow
from schemas.studies import StudyPair
from tasks.engine.fingerprint import fingerprint

# What an editor pair is balanced over: the target expression, under one instruction.
Cell = tuple[str, str]
Editors = tuple[str, str]


def balanced(rows: Sequence[ScoreRow], number: int, seed: int) -> tuple[list[StudyPair], int]:
    """So many pairs of outputs for one triplet and instruction, or as many as there are.

    Each step takes the pair of editors that was taken least (then those two whom fewest pairs show), of it the target
    and instruction taken least, of these the source taken least; what is equal then is decided by a hash of the seed.
    A larger number keeps the pairs of a smaller one.

    Args:
        rows: Of scoring runs on one data set; an editor's later row of a triplet and instruction counts.
        number: How many, at most.
        seed: Of the order.

    Returns:
        The pairs in the order of their choice, and how many more would show two equal pictures, which nobody is asked
        about.
    """
    outputs: dict[tuple[str, str], dict[str, ScoreRow]] = defaultdict(dict)
    for row in rows:
        if row.image:
            outputs[row.triplet, str(row.granularity)][row.editor] = row
    left: dict[Editors, dict[Cell, list[StudyPair]]] = defaultdict(lambda: defaultdict(list))
    equal = 0
    for held in outputs.values():
        for a, b in combinations(sorted(held), 2):
            if held[a].image == held[b].image:
                equal += 1
            else:
                pair = _pair(held[a], held[b])
                left[a, b][pair.target, str(pair.granularity)].append(pair)
    luck = {editors: fingerprint("editors", seed, list(editors)) for editors in left}
    for cells in left.values():
        for pairs in cells.values():
            pairs.sort(key=lambda one: fingerprint("pair", seed, one.triplet, str(one.granularity), one.a, one.b))
    return list(_drawn(left, luck, number)), equal


def _drawn(left: dict[Editors, dict[Cell, list[StudyPair]]], luck: dict[Editors, str], number: int) -> list[StudyPair]:
    taken: Counter[object] = Counter()
    found: list[StudyPair] = []
    while left and len(found) < number:
        editors = min(left, key=lambda one: (taken[one], taken[one[0]] + taken[one[1]], luck[one]))
        cells = left[editors]
        cell = min(cells, key=lambda one: (taken[editors, one], taken["cell", one], one))
        place = min(range(len(cells[cell])), key=lambda at: (taken["source", cells[cell][at].subject], at))
        pair = cells[cell].pop(place)
        taken.update([editors, *editors, (editors, cell), ("cell", cell), ("source", pair.subject)])
        found.append(pair)
        if not cells[cell]:
            del cells[cell]
        if not cells:
            del left[editors]
    return found


def _pair(a: ScoreRow, b: ScoreRow) -> StudyPair:
    return StudyPair(
        key=Key(a.pool, a.source_id),
        triplet=a.triplet,
        subject=a.subject,
        granularity=a.granularity,
        target=a.target,
        source_expression=a.source_expression,
        instruction=a.instruction,
        source_image=a.source_image,
        truth_image=a.truth_image,
        a=a.editor,
        b=b.editor,
        a_image=a.image,
        b_image=b.image,
    )
