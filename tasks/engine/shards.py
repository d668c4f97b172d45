"""The append-only plan: which source lies in which shard, for ever."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from schemas.records import Key, Source
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store

# Shards a file of the plan: what is read and written of it at once.
_BATCH: Final = 16


@dataclass(frozen=True)
class Shard:
    """Sources that are worked on together.

    Attributes:
        index: Place in the plan, from 0.
        id: Digest of the keys it was opened with: its folder's name.
        sources: Its sources in plan order; fewer than it was opened with where a limit cuts it.
    """

    index: int
    id: str
    sources: tuple[Source, ...]


def order(seed: int, sources: Iterable[Source]) -> list[Source]:
    """Sources in the order of a seeded hash of their keys: a fixed shuffle that no listing can change.

    Raises:
        ConfigError: Two sources have one key.
    """
    by_key: dict[Key, Source] = {}
    for source in sources:
        if source.key in by_key:
            raise ConfigError(f"two sources are called {source.key}", "give the pools different names")
        by_key[source.key] = source
    return sorted(by_key.values(), key=lambda source: (fingerprint("order", seed, list(source.key)), source.key))


def plan(
    store: Store, folder: str, sources: Sequence[Source], size: int, limit: int | None, *, extend: bool = True
) -> list[Shard]:
    """The shards of a run, those planned before first; sources not yet planned open new ones.

    Args:
        store: The workspace.
        folder: Where the plan lies in it.
        sources: All sources the pools list now, ordered. A planned one that is listed no more stays, as planned.
        size: Sources per new shard.
        limit: Use only this many; None for all.
        extend: Whether new sources are planned now; a mere look leaves the plan as it is.
    """
    listed = {source.key: source for source in sources}
    planned: list[tuple[str, list[Source]]] = []
    number = 0
    while (batch := store.read_as(f"{folder}/{number:05d}.json", list[list[Source]])) is not None:
        planned += [(_id(shard), [listed.get(source.key, source) for source in shard]) for shard in batch]
        number += 1
    known = {source.key for _, shard in planned for source in shard}
    room = max(0, limit - len(known)) if limit is not None else None
    fresh = [source for source in sources if source.key not in known][:room] if extend else []
    opened = [fresh[start : start + size] for start in range(0, len(fresh), size)]
    for start in range(0, len(opened), _BATCH):
        values = [[source.model_dump(mode="json") for source in shard] for shard in opened[start : start + _BATCH]]
        store.write_json(f"{folder}/{number:05d}.json", values)
        number += 1
    planned += [(_id(shard), shard) for shard in opened]
    shards, left = [], limit if limit is not None else len(known) + len(fresh)
    for index, (id_, shard) in enumerate(planned):
        rows = tuple(shard[: max(0, left)])
        left -= len(rows)
        if rows:
            shards.append(Shard(index, id_, rows))
    return shards


def _id(shard: Sequence[Source]) -> str:
    return fingerprint([list(source.key) for source in shard])[:32]
