"""The life of a source: everything every stage measured and decided about it and its candidates, joined by key."""

from dataclasses import dataclass, field
from typing import Any

from schemas.outcomes import Status
from schemas.records import Key, Source
from tasks.engine.execute import Executor
from tasks.engine.rows import Commit
from tasks.engine.shards import Shard


@dataclass(frozen=True)
class Step:
    """How one row left one stage. `reason` is a `Reason` or `FailureKind`, empty for kept and waiting rows."""

    status: Status
    reason: str
    evidence: str


@dataclass
class Life:
    """One key across the stages.

    Attributes:
        key: Whose life.
        steps: By stage, in order: how it left; the last one is where it ended.
        measured: By stage: its measurement, or the `Failed` in its place. Can hold stages it never reached.
        by: By stage that measured it: the measure identity.
        outputs: By stage that kept it: the row it went on as.
    """

    key: Key
    steps: dict[str, Step] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> tuple[str, Step]:
        """The stage where it ended (or stands), and how."""
        return next(reversed(self.steps.items()))

    def reached(self, stage: str) -> bool:
        """Whether the stage kept it."""
        return stage in self.steps and self.steps[stage].status is Status.KEPT


@dataclass
class SourceLife(Life):
    """A source's life, with those of its candidates in the order they were owed."""

    source: Source = field(kw_only=True)
    candidates: list[Life] = field(default_factory=list)


def lives(executor: Executor, shard: Shard, done: dict[str, Commit]) -> list[SourceLife]:
    """The lives of a shard's sources, in plan order.

    Args:
        executor: The run.
        shard: One of its shards.
        done: The shard's commits; stages without one are left out.
    """
    sources = {source.key: SourceLife(source.key, source=source) for source in shard.sources}
    known: dict[Key, Life] = dict(sources)
    kept: dict[str, list[Any]] = {}
    before = ""
    for name in executor.order:
        if name not in done:
            break
        rows = executor.decided(name, shard, done[name])
        kept[name] = [row.value for row in rows if row.status is Status.KEPT]
        for row in rows:
            life = known.get(row.key)
            if life is None:
                life = known[row.key] = Life(row.key)
                sources[row.key.source()].candidates.append(life)
            life.steps[name] = Step(row.status, str(row.reason or row.kind or ""), row.evidence)
            if row.value is not None:
                life.outputs[name] = row.value
        measured = kept[executor.stages[name].reads or before] if before else list(shard.sources)
        for key, answer in executor.answers(name, shard, measured).items():
            known[key].measured[name] = answer.value
            known[key].by[name] = answer.by
        before = name
    return list(sources.values())
