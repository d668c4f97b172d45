"""Deciding a run again under other thresholds, in memory: no model, no call, nothing written."""

from dataclasses import dataclass
from typing import Any

from schemas.outcomes import Status
from schemas.records import Key
from tasks.engine.execute import Executor
from tasks.engine.rows import decided_row
from tasks.engine.shards import Shard
from tasks.engine.stage import Kept, Outcome


@dataclass(frozen=True)
class Recut:
    """The decisions of one shard under other thresholds.

    Attributes:
        outcomes: By stage and key.
        unmeasured: By stage: keys that the new thresholds let in but that no model has measured yet.
    """

    outcomes: dict[str, dict[Key, Outcome]]
    unmeasured: dict[str, list[Key]]


def recut(executor: Executor) -> list[Recut]:
    """Decide every shard again from its stored measurements, in plan order.

    Args:
        executor: A run under the new thresholds, over the plan of the old one.
    """
    results = [Recut({}, {}) for _ in executor.shards]
    kept: list[dict[str, list[Any]]] = [{} for _ in executor.shards]
    for name in executor.order:
        groups = (_to_decide(executor, name, *each) for each in zip(executor.shards, results, kept, strict=True))
        for result, rows_by_stage, outcomes in zip(results, kept, executor.decide_shards(name, groups), strict=True):
            result.outcomes[name] = outcomes
            rows_by_stage[name] = [outcome.output for outcome in outcomes.values() if isinstance(outcome, Kept)]
    return results


def _to_decide(
    executor: Executor, name: str, shard: Shard, result: Recut, kept: dict[str, list[Any]]
) -> tuple[list[Any], dict[Key, Any]]:
    """A shard's rows that are measured, and their measurements; the other keys are noted in `result`."""
    stage, place = executor.stages[name], executor.order.index(name)
    before = executor.order[place - 1]
    to_measure = list(shard.sources) if place == 0 else kept[stage.reads or before]
    rows = list(shard.sources) if place == 0 else kept[before]
    measured = executor.measured(name, shard, to_measure)
    missing = {row.key: [key for key in stage.owes(row) if key not in measured] for row in rows}
    result.unmeasured[name] = [key for keys in missing.values() for key in keys]
    return [row for row in rows if not missing[row.key]], measured


def recalled(executor: Executor) -> dict[str, tuple[int, int]]:
    """By stage: how many owed rows are measured already, and how many a model has yet to measure.

    Rows behind an unmeasured one are not owed yet, and so not counted.
    """
    results = recut(executor)
    return {
        name: (
            sum(len(result.outcomes[name]) for result in results),
            sum(len(result.unmeasured[name]) for result in results),
        )
        for name in executor.order
    }


@dataclass(frozen=True)
class Move:
    """One key whose fate differs. Fates read "stage: status reason", the last stage that decided on it."""

    key: Key
    before: str
    after: str


@dataclass(frozen=True)
class Comparison:
    """A run under its own thresholds and under others.

    Attributes:
        moves: Every key with another fate, in order; a key that is gone or new reads "not owed".
        unmeasured: By stage: keys that would enter and that no model has measured yet.
        triplets_before, triplets_after: How many publish keeps.
    """

    moves: list[Move]
    unmeasured: dict[str, list[Key]]
    triplets_before: int
    triplets_after: int


def compare(old: Executor, new: Executor) -> Comparison:
    """What other thresholds would do.

    Args:
        old: The run as it is.
        new: The same plan under the other thresholds.
    """
    before: dict[Key, str] = {}
    for shard, done in zip(old.shards, old.commits(), strict=True):
        for stage, commit in done.items():
            before |= {row.key: _fate(stage, row) for row in old.decided(stage, shard, commit)}
    results = recut(new)
    after: dict[Key, str] = {}
    for result in results:
        for stage, outcomes in result.outcomes.items():
            output = new.stages[stage].output
            after |= {key: _fate(stage, decided_row(output, key, outcome)) for key, outcome in outcomes.items()}
    last = new.order[-1]
    published = f"{last}: {Status.KEPT}"
    return Comparison(
        moves=[
            Move(key, before.get(key, "not owed"), after.get(key, "not owed"))
            for key in sorted({*before, *after})
            if before.get(key) != after.get(key)
        ],
        unmeasured={stage: [key for result in results for key in result.unmeasured[stage]] for stage in new.order},
        triplets_before=sum(fate == published for fate in before.values()),
        triplets_after=sum(fate == published for fate in after.values()),
    )


def _fate(stage: str, row: Any) -> str:
    return f"{stage}: {row.status} {row.reason or row.kind or ''}".strip()
