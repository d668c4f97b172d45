"""Publish: which triplets the data set holds. `tasks.dataset` writes them."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from schemas.config import PublishCut
from schemas.outcomes import Reason
from schemas.records import Key, Triplet
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Scope, Stage


class Publish(Stage[Triplet, Triplet]):
    """Selection over the whole run: the smallest prefix of sources that suffices, then even cells."""

    name = "publish"
    scope = Scope.RUN
    whole = True
    measurement = Triplet
    output = Triplet
    cut_params: PublishCut

    def measure(self, rows: Sequence[Triplet], ctx: Context) -> Iterator[tuple[Key, Triplet | Failed]]:
        for row in rows:
            yield row.key, row

    def cut(self, items: Sequence[Item[Triplet, Triplet]]) -> Iterator[tuple[Key, Outcome]]:
        inside = prefix(items, self.cut_params)
        chosen = even_cells(items[:inside], self.cut_params.target)
        for place, item in enumerate(items):
            if item.key in chosen:
                yield item.key, Kept(item.measurement)
            elif place < inside:
                yield item.key, Rejected(Reason.NOT_SELECTED, "its cell of source and target expression is full")
            else:
                yield item.key, Rejected(Reason.BEYOND_PREFIX, "the sources before it suffice")


def prefix(items: Sequence[Item[Triplet, Triplet]], cut: PublishCut) -> int:
    """How many items, in plan order, the smallest prefix of sources with target × margin survivors holds."""
    if cut.target is None:
        return len(items)
    needed, count = math.ceil(cut.target * cut.margin), 0
    for _, group in groupby(items, key=lambda item: item.key.source()):
        count += len(list(group))
        if count >= needed:
            break
    return count


def even_cells(items: Sequence[Item[Triplet, Triplet]], target: int | None) -> set[Key]:
    """Fill the cells (source × target expression) like water: always the emptiest one, in plan order within it."""
    if target is None or target >= len(items):
        return {item.key for item in items}
    cells: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for item in items:
        cells[item.row.source_expression, item.key.target].append(item.key)
    chosen: set[Key] = set()
    level = 0
    while len(chosen) < target:
        layer = [keys[level] for _, keys in sorted(cells.items()) if level < len(keys)]
        chosen.update(layer[: target - len(chosen)])
        level += 1
    return chosen
