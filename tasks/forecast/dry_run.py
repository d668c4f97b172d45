"""The dry run: screening alone. Nothing is generated, nobody outside is asked, and what is measured stays measured."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from schemas.records import Key, Source, SourceFacts
from tasks.engine.errors import NotSent
from tasks.engine.recut import recut
from tasks.engine.shards import Shard
from tasks.engine.stage import Failed, Kept, Rejected
from tasks.forecast.asks import asks
from tasks.pipeline import Run
from tasks.voters.labels import label_of


@dataclass
class Screened:
    """What screening made of the sources of one pool and expression ("" where nobody could tell).

    Attributes:
        unasked: Sources that only an outside label panel could decide; a dry run does not ask it.
    """

    pool: str
    expression: str
    owed: int = 0
    kept: int = 0
    unasked: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


def outside_labellers(run: Run) -> list[str]:
    """Voters of the label panel that are asked by calls, wherever they answer: a dry run makes none."""
    labellers = [ask for ask in asks(run.config) if ask.role == "label"]
    return [ask.name for ask in labellers if ask.adapter.remote or ask.adapter.sends_outside(ask.params)]


def needing_labels(run: Run) -> set[Key]:
    """The planned sources that the label panel looks at."""
    every = run.config.screen.measure.check_labels
    return {source.key for shard in run.executor.shards for source in shard.sources if every or source.label is None}


def screen_only(run: Run, tell: Callable[[str, int, int], None]) -> list[Screened]:
    """Screen every source that needs no outside call, and say what would pass.

    Args:
        run: Opened for building: a later build goes on from what is measured here.
        tell: Told after every shard: "screen", shards done, shards in all.

    Returns:
        By pool and expression, in order.
    """
    outside = needing_labels(run) if outside_labellers(run) else set()
    shards, calls = run.executor.shards, run.executor.context.call
    calls.may_send = False
    try:
        with ThreadPoolExecutor(run.config.workers) as pool:
            tell("screen", 0, len(shards))
            for number, _ in enumerate(pool.map(lambda shard: _measure(run, shard, outside), shards), 1):
                tell("screen", number, len(shards))
    finally:
        calls.may_send = True
    return _counted(run)


def _measure(run: Run, shard: Shard, outside: set[Key]) -> None:
    """Measure a shard; sources whose label nobody has told yet, and nobody here can, are left as they are."""
    run.executor.measure("screen", shard, [row for row in shard.sources if row.key not in outside])
    asking = [row for row in shard.sources if row.key in outside]
    try:
        run.executor.measure("screen", shard, asking)
    except NotSent:
        for row in asking:
            with suppress(NotSent):
                run.executor.measure("screen", shard, [row])


def _counted(run: Run) -> list[Screened]:
    table: dict[tuple[str, str], Screened] = {}
    for shard, result in zip(run.executor.shards, recut(run.executor), strict=True):
        facts = run.executor.measured("screen", shard, shard.sources)
        outcomes = result.outcomes["screen"]
        for source in shard.sources:
            place = (source.key.pool, _expression(source, facts.get(source.key)))
            row = table.setdefault(place, Screened(*place))
            row.owed += 1
            outcome = outcomes.get(source.key)
            row.kept += isinstance(outcome, Kept)
            row.unasked += outcome is None
            if isinstance(outcome, Rejected):
                row.rejected[outcome.reason] += 1
            if isinstance(outcome, Failed):
                row.failed[outcome.kind] += 1
    return [table[place] for place in sorted(table)]


def _expression(source: Source, facts: SourceFacts | Failed | None) -> str:
    """What a source shows by its pool or the label panel."""
    votes = facts.votes if isinstance(facts, SourceFacts) else ()
    return str(label_of(source, votes)[0] or "")
