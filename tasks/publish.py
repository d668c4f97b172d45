"""Publish: which triplets the data set holds. `tasks.dataset` writes them."""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.config import BuildConfig, PublishCut
from schemas.outcomes import Reason
from schemas.records import Key, Triplet
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.places import fetched
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Scope, Stage


@dataclass(frozen=True)
class Core:
    """The triplets of an earlier edition, which a later one keeps as long as they survive."""

    edition: str
    keys: frozenset[Key]

    @property
    def digest(self) -> str:
        return core_digest(str(key) for key in self.keys)

    @property
    def sources(self) -> set[Key]:
        return {key.source() for key in self.keys}

    def end(self, shards: Sequence[Shard]) -> int:
        """How many of the first shards hold all of its sources that are planned."""
        held = self.sources
        return max(
            (place for place, shard in enumerate(shards, 1) if any(row.key in held for row in shard.sources)), default=0
        )


def core_digest(ids: Iterable[str]) -> str:
    """What stands for a core: a digest of its triplets' readable keys."""
    return fingerprint(sorted(ids))


def core_of(workspace: Path, config: BuildConfig) -> Core | None:
    """The core that a config names; None without one.

    Raises:
        ConfigError: It is no edition of the data set in the workspace, or the one that is built.
    """
    name = config.publish.cut.core
    if not name:
        return None
    if name == config.edition:
        raise ConfigError(f"edition {name} cannot be its own core", "give the new one a name: --set edition=v2")
    editions = workspace / "datasets" / config.name
    folder = fetched(editions / name)
    if not (folder / "manifest.json").is_file():
        known = ", ".join(sorted(path.parent.name for path in editions.glob("*/manifest.json"))) or "none yet"
        raise ConfigError(f"publish.cut.core: {config.name} has no edition '{name}' here", f"its editions: {known}")
    keys: set[Key] = set()
    for path in sorted((folder / "data").glob("*.parquet")):
        try:
            keys |= {Key(**row) for row in pq.read_table(path, columns=list(Key._fields)).to_pylist()}
        except (pa.ArrowException, OSError, TypeError) as error:
            raise ConfigError(f"cannot read {path}: {str(error).splitlines()[0]}", "build that edition again") from None
    return Core(name, frozenset(keys))


class Publish(Stage[Triplet, Triplet]):
    """Selection over the whole run: a core first, then the smallest prefix of sources that suffices, in even cells."""

    name = "publish"
    scope = Scope.RUN
    whole = True
    measurement = Triplet
    output = Triplet
    cut_params: PublishCut

    def __init__(self, measure_params: Any, cut_params: PublishCut, core: Core | None = None) -> None:
        super().__init__(measure_params, cut_params)
        self.core = core

    def cut_identity(self) -> list[object]:
        return [*super().cut_identity(), *([self.core.digest] if self.core else [])]

    def measure(self, rows: Sequence[Triplet], ctx: Context) -> Iterator[tuple[Key, Triplet | Failed]]:
        for row in rows:
            yield row.key, row

    def cut(self, items: Sequence[Item[Triplet, Triplet]]) -> Iterator[tuple[Key, Outcome]]:
        core = self.core.keys if self.core else frozenset()
        inside = prefix(items, self.cut_params, core)
        chosen = even_cells([item for item in items if item.key in core], self.cut_params.target)
        chosen = even_cells(items[:inside], self.cut_params.target, chosen)
        for place, item in enumerate(items):
            if item.key in chosen:
                yield item.key, Kept(item.measurement)
            elif place < inside:
                words = "its cell of source and target expression is full"
                if item.key in core:
                    words = "the core alone holds more than the target"
                yield item.key, Rejected(Reason.NOT_SELECTED, words)
            else:
                yield item.key, Rejected(Reason.BEYOND_PREFIX, "the sources before it suffice")


def prefix(items: Sequence[Item[Triplet, Triplet]], cut: PublishCut, core: Collection[Key] = ()) -> int:
    """How many items, in plan order, the smallest prefix of sources with target × margin survivors holds.

    It reaches at least to the last one of the core.
    """
    if cut.target is None:
        return len(items)
    needed, count = math.ceil(cut.target * cut.margin), 0
    for _, group in groupby(items, key=lambda item: item.key.source()):
        count += len(list(group))
        if count >= needed:
            break
    return max([count, *(place for place, item in enumerate(items, 1) if item.key in core)])


def even_cells(items: Sequence[Item[Triplet, Triplet]], target: int | None, first: Collection[Key] = ()) -> set[Key]:
    """Fill the cells (source × target expression) like water: always the emptiest one, in plan order within it.

    Args:
        items: To choose from, those of `first` among them.
        target: How many to choose; None for all.
        first: What the cells hold already.
    """
    if target is None or target >= len(items):
        return {item.key for item in items}
    cells: dict[tuple[str, str], deque[Key]] = defaultdict(deque)
    held: Counter[tuple[str, str]] = Counter()
    chosen = set(first)
    for item in items:
        cell = (str(item.row.source_expression), item.key.target)
        if item.key in chosen:
            held[cell] += 1
        else:
            cells[cell].append(item.key)
    level = 0
    while len(chosen) < target:
        for cell, keys in sorted(cells.items()):
            if keys and held[cell] == level and len(chosen) < target:
                chosen.add(keys.popleft())
                held[cell] += 1
        level += 1
    return chosen
