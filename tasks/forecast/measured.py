"""What a workspace has measured that a forecast can rest on: survival, throughput, sizes of pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from schemas.forecasts import Number
from schemas.outcomes import FailureKind, Status
from schemas.records import Key
from tasks.engine.execute import Executor
from tasks.engine.recut import Recut, recut
from tasks.engine.shards import Shard, plan
from tasks.engine.stage import Failed, Kept
from tasks.pipeline import Run

PICTURES: Final = 200  # whose sizes are looked up


@dataclass
class Balance:
    """One stage's owed rows, over shards: those decided, by how they left, and those a model has yet to see."""

    kept: int = 0
    waiting: int = 0
    refused: int = 0
    decided: int = 0
    unmeasured: int = 0

    @property
    def settled(self) -> int:
        """Rows that a rate can rest on."""
        return self.decided - self.waiting

    @property
    def rate(self) -> Number | None:
        """Share kept; None without a row to rest on."""
        if not self.settled:
            return None
        return Number(value=self.kept / self.settled, basis="measured", rows=self.settled)

    @property
    def refusals(self) -> Number | None:
        """Share refused; None without a row to rest on."""
        if not self.decided:
            return None
        return Number(value=self.refused / self.decided, basis="measured", rows=self.decided)


@dataclass
class Survival:
    """What became of the sources of one run under the thresholds at hand, as far as they are measured.

    Attributes:
        run: Its name.
        balances: By stage.
        shards: Its shards.
        results: The decisions, shard by shard.
    """

    run: str
    shards: Sequence[Shard] = ()
    balances: dict[str, Balance] = field(default_factory=dict)
    results: Sequence[Recut] = ()

    def outputs(self, stage: str) -> list[Any]:
        """What a stage let pass."""
        outcomes = [outcome for result in self.results for outcome in result.outcomes[stage].values()]
        return [outcome.output for outcome in outcomes if isinstance(outcome, Kept)]

    def sources(self, stage: str) -> set[Key]:
        """The sources of the rows that a stage decided on."""
        return {key.source() for result in self.results for key in result.outcomes[stage]}


def survival(run: Run) -> Survival:
    """What the run's own plan holds, decided anew in memory as `fedbench recut` does."""
    return _survival(run.config.name, run.executor)


def survival_elsewhere(run: Run) -> list[Survival]:
    """The same of other plans of this workspace with sources of the same pools, measured under the same parameters.

    The best measured plan comes first.
    """
    pools = {source.key.pool for source in run.listed}
    own = {shard.id for shard in run.executor.shards}
    stages, context, taken = list(run.executor.stages.values()), run.executor.context, run.executor.taken
    found = []
    for folder in sorted(run.store.root.glob("runs/*/plan-*")):
        shards = plan(run.store, folder.relative_to(run.store.root).as_posix(), (), 1, None, extend=False)
        if {source.key.pool for shard in shards for source in shard.sources} & pools and own != {s.id for s in shards}:
            found.append(_survival(folder.parent.name, Executor(run.store, stages, shards, context, taken)))
    return sorted(found, key=lambda one: -sum(balance.decided for balance in one.balances.values()))


def _survival(name: str, executor: Executor) -> Survival:
    results = recut(executor)
    found = Survival(name, executor.shards, {stage: Balance() for stage in executor.order}, results)
    for result in results:
        for stage, outcomes in result.outcomes.items():
            balance = found.balances[stage]
            balance.unmeasured += len(result.unmeasured[stage])
            balance.decided += len(outcomes)
            for outcome in outcomes.values():
                balance.kept += outcome.status is Status.KEPT
                balance.waiting += outcome.status is Status.WAITING
                balance.refused += isinstance(outcome, Failed) and outcome.kind is FailureKind.REFUSED
    return found


def seconds_per_row(executor: Executor, stage: str) -> Number | None:
    """What a measured row of a stage took of one worker, over all runs with these parameters; None without one."""
    rows, seconds = executor.throughput(stage)
    return Number(value=seconds / rows, basis="measured", rows=rows) if rows else None


def picture_bytes(run: Run, digests: Sequence[str]) -> Number | None:
    """Mean size of stored pictures in bytes, of the first few; None where none is there."""
    sizes = (run.store.size(run.images.path(digest)) for digest in digests)
    known = list(islice((size for size in sizes if size is not None), PICTURES))
    return Number(value=sum(known) / len(known), basis="measured", rows=len(known)) if known else None
