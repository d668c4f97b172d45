"""Which pairs of outputs people compare: drawn by seed, balanced over editors, expressions and sources. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from schemas.expressions import Expression
from schemas.records import Key
from schemas.scoring import Granularity, ScoreRow
from schemas.studies import StudyPair
from tasks.engine.fingerprint import fingerprint


class Output(NamedTuple):
    """What of a row is needed, so that a hundred editors fit into memory."""

    editor: str
    key: Key
    triplet: str
    subject: str
    granularity: Granularity
    target: Expression
    source_expression: Expression
    instruction: str
    source_image: str
    truth_image: str
    image: str

    @classmethod
    def of(cls, row: ScoreRow) -> "Output":
        told = {name: getattr(row, name) for name in cls._fields if name != "key"}
        return cls(key=Key(row.pool, row.source_id), **told)


Editors = tuple[str, str]
# By triplet and instruction: every editor's output.
Outputs = Mapping[tuple[str, str], Mapping[str, Output]]
# Of two editors, what is left by target and instruction, in the order of a hash.
Left = dict[tuple[str, str], list[tuple[Output, Output]]]


def balanced(rows: Iterable[ScoreRow], number: int, seed: int) -> tuple[list[StudyPair], int]:
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
    outputs: dict[tuple[str, str], dict[str, Output]] = defaultdict(dict)
    for row in rows:
        if row.image:
            outputs[row.triplet, str(row.granularity)][row.editor] = Output.of(row)
    alike = (Counter(one.image for one in held.values()) for held in outputs.values())
    equal = sum(count * (count - 1) // 2 for counts in alike for count in counts.values())
    found: list[StudyPair] = []
    for pair in _drawn(outputs, seed):
        if len(found) == number:
            break
        found.append(pair)
    return found, equal


def _drawn(outputs: Outputs, seed: int) -> Iterator[StudyPair]:
    every = combinations(sorted({editor for held in outputs.values() for editor in held}), 2)
    luck = {editors: fingerprint("editors", seed, list(editors)) for editors in every}
    left: dict[Editors, Left] = {}
    taken: Counter[object] = Counter()
    while luck:
        editors = min(luck, key=lambda one: (taken[one], taken[one[0]] + taken[one[1]], luck[one]))
        cells = left[editors] if editors in left else left.setdefault(editors, _cells(outputs, editors, seed))
        if not cells:
            del luck[editors]
            continue
        cell = min(cells, key=lambda one: (taken[editors, one], taken["cell", one], one))
        held = cells[cell]
        place = min(range(len(held)), key=lambda at: (taken["source", held[at][0].subject], at))
        a, b = held.pop(place)
        if not held:
            del cells[cell]
        taken.update([editors, *editors, (editors, cell), ("cell", cell), ("source", a.subject)])
        yield _pair(a, b)


def _cells(outputs: Outputs, editors: Editors, seed: int) -> Left:
    """All pairs of two editors whose pictures differ."""
    cells: Left = defaultdict(list)
    for held in outputs.values():
        a, b = (held.get(editor) for editor in editors)
        if a and b and a.image != b.image:
            cells[str(a.target), str(a.granularity)].append((a, b))
    for pairs in cells.values():
        pairs.sort(key=lambda both: fingerprint("pair", seed, both[0].triplet, str(both[0].granularity), list(editors)))
    return cells


def _pair(a: Output, b: Output) -> StudyPair:
    told = {name: value for name, value in a._asdict().items() if name not in ("editor", "image")}
    return StudyPair(**told, a=a.editor, b=b.editor, a_image=a.image, b_image=b.image)
