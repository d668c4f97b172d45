"""Runs stages over shards: skip what is published, run what is due, check every key, publish.

For a stage and a shard the workspace holds two kinds of commit beside their Parquet parts: `measured-*.json` (what
models said, by row: a row measured once under the same parameters is never measured again) and `decided-*.json`
(what became of every owed key). A commit that is there is done; nothing else says so.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from schemas.outcomes import Status
from schemas.records import Key
from tasks.engine.errors import Postponed
from tasks.engine.fingerprint import fingerprint
from tasks.engine.lineage import Lineage
from tasks.engine.measure import AnyStage, Measurer
from tasks.engine.rows import Commit, decided_row, decided_type, digest, shape
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Cutter, Failed, Item, Kept, Outcome, Scope, settle
from tasks.engine.store import Store

_log: Final = logging.getLogger("fedbench")
# Sources that go through a segment together. Their decoded pictures should fit the image cache for every worker.
BLOCK: Final = 8
_NOTHING: Final = digest(())


class Executor(Measurer):
    """One run's stages over its shards.

    Args:
        store: The workspace.
        stages: In the order the data flows.
        shards: The plan.
        context: What measurements may use.
        taken: As `Measurer` has it.
    """

    def __init__(
        self,
        store: Store,
        stages: Sequence[AnyStage],
        shards: Sequence[Shard],
        context: Context,
        taken: Lineage | None = None,
    ) -> None:
        super().__init__(store, stages, context, taken)
        self.order = [stage.name for stage in stages]
        self.shards = list(shards)

    # -- what is done -------------------------------------------------------------------------------------------

    def commits(self, retry: Collection[str] = ()) -> list[dict[str, Commit]]:
        """Per shard, the commits that hold now. A stage is missing where it is due or waits for one before it.

        Args:
            retry: Stages that are also due where a failure may go away by itself.
        """
        found: list[dict[str, Commit]] = [{} for _ in self.shards]
        for name in self.order:
            inputs = [self.inputs(name, shard, done) for shard, done in zip(self.shards, found, strict=True)]
            for place, (shard, done) in enumerate(zip(self.shards, found, strict=True)):
                fingerprint_ = self.fingerprint(name, inputs, place)
                commit = self.commit(name, shard, fingerprint_) if fingerprint_ else None
                if commit is not None and not (name in retry and commit.retryable):
                    done[name] = commit
        return found

    def inputs(self, name: str, shard: Shard, done: dict[str, Commit]) -> list[str] | None:
        """Whose answers a stage takes, and digests of what it measures and decides on; None while they are not known.

        Where there is nothing to measure, it does not matter whose.
        """
        place = self.order.index(name)
        if place == 0:
            return [*self.homes(name, shard), digest(shard.sources)]
        before = self.order[place - 1]
        reads = self.stages[name].reads or before
        if reads not in done or before not in done:
            return None
        digests = [done[reads].kept_digest, done[before].kept_digest]
        homes = self.homes(name, shard) if digests[0] != _NOTHING else ()
        return [*homes, *digests, *self.stages[name].told(shard.sources)]

    def fingerprint(self, name: str, inputs: Sequence[list[str] | None], place: int) -> str | None:
        """Fingerprint of a stage's decisions on the shard at `place`; None while its inputs are not known."""
        stage = self.stages[name]
        if stage.scope is not Scope.RUN:
            seen = inputs[place : place + 1]
        else:
            seen = inputs if stage.whole else inputs[: place + 1]
        if any(shard_inputs is None for shard_inputs in seen):
            return None
        return fingerprint(stage.cut_identity(), shape(stage.output), list(seen))

    def commit(self, name: str, shard: Shard, fingerprint_: str) -> Commit | None:
        """The published commit of that fingerprint, if what it was decided on is there as well."""
        commit = self.store.read_as(f"{self.folder(name, shard)}/decided-{fingerprint_[:32]}.json", Commit)
        if commit is None or commit.fingerprint != fingerprint_:
            return None
        return commit if not commit.owed or self.is_measured(name, shard) else None

    # -- doing it -----------------------------------------------------------------------------------------------

    def run_shard(self, shard: Shard, names: Sequence[str], done: dict[str, Commit]) -> dict[str, Commit]:
        """Measure and decide consecutive stages of row or source scope on one shard.

        Args:
            shard: The shard.
            names: The stages, in order.
            done: The shard's commits so far; those of the stages before are needed.

        Returns:
            `done` with the new commits; those are missing that wait for a batch (`Calls.finish_batches`).
        """
        done = dict(done)
        measured: dict[str, dict[Key, Any]] = {}
        for place, name in enumerate(names):
            fingerprint_ = self.fingerprint(name, [self.inputs(name, shard, done)], 0)
            assert fingerprint_ is not None, f"{name} runs after its inputs"
            commit = self.commit(name, shard, fingerprint_)
            if commit is None or commit.retryable:
                try:
                    measured = measured or self._measure_blocks(shard, names[place:], done)
                except Postponed:
                    return done
                rows = self.rows_to_decide(name, shard, done)
                commit = self.publish(name, shard, fingerprint_, self.decide(name, rows, measured[name]))
            done[name] = commit
        return done

    def _measure_blocks(self, shard: Shard, names: Sequence[str], done: dict[str, Commit]) -> dict[str, dict[Key, Any]]:
        """Everything that consecutive stages measure on a shard, by stage.

        A few sources go through all of them before the next few do, so that their pictures are still decoded. The
        cuts in between are those of the whole shard, since none of them looks beyond a source.

        Raises:
            Postponed: After the last block, where in one of them somebody waits for a batch.
        """
        first = self.order.index(names[0])
        before = self.order[first - 1] if first else ""
        outside = {before, *(reads for name in names if (reads := self.stages[name].reads) and reads not in names)}
        rows_of = {
            name: (list(shard.sources) if not name else self.kept(name, shard, done)) for name in sorted(outside)
        }
        measured: dict[str, dict[Key, Any]] = {name: {} for name in names}
        postponed: Postponed | None = None
        for start in range(0, len(shard.sources), BLOCK):
            block = {source.key for source in shard.sources[start : start + BLOCK]}
            kept = {name: [row for row in rows if row.key.source() in block] for name, rows in rows_of.items()}
            try:
                for name, previous in zip(names, [before, *names], strict=False):
                    answers = self.measure(name, shard, kept[self.stages[name].reads or previous])
                    outcomes = self.decide(name, kept[previous], answers).values()
                    kept[name] = [outcome.output for outcome in outcomes if isinstance(outcome, Kept)]
                    measured[name] |= answers
            except Postponed as error:
                postponed = error
        if postponed:
            raise postponed
        return measured

    def decide_run(self, name: str, done: Sequence[dict[str, Commit]]) -> list[Commit]:
        """The barrier of a run-scope stage, once it is measured: decide in plan order, publish shard by shard."""
        inputs = [self.inputs(name, shard, commits) for shard, commits in zip(self.shards, done, strict=True)]
        groups = (
            (
                self.rows_to_decide(name, shard, commits),
                self.measured(name, shard, self.rows_to_measure(name, shard, commits)),
            )
            for shard, commits in zip(self.shards, done, strict=True)
        )
        published = []
        for place, (shard, outcomes) in enumerate(zip(self.shards, self.decide_shards(name, groups), strict=True)):
            fingerprint_ = self.fingerprint(name, inputs, place)
            assert fingerprint_ is not None, f"{name} runs after its inputs"
            published.append(self.publish(name, shard, fingerprint_, outcomes))
        return published

    def decide_shards(
        self, name: str, groups: Iterable[tuple[Sequence[Any], dict[Key, Any]]]
    ) -> Iterator[dict[Key, Outcome]]:
        """The outcomes of a stage's shards, in plan order. Only a `whole` stage holds more than one shard at once.

        Args:
            name: The stage.
            groups: Per shard, the rows to decide on and what was measured of them.
        """
        stage = self.stages[name]
        if not stage.whole:
            cut = stage.cutter()
            for rows, measured in groups:
                yield self.decide(name, rows, measured, cut)
            return
        held = list(groups)
        together = {key: value for _, measured in held for key, value in measured.items()}
        outcomes = self.decide(name, [row for rows, _ in held for row in rows], together)
        for rows, _ in held:
            yield {key: outcomes[key] for row in rows for key in stage.owes(row)}

    def rows_to_measure(self, name: str, shard: Shard, done: dict[str, Commit]) -> list[Any]:
        """What a stage measures in a shard: the first one its sources, the others what an earlier one kept."""
        place = self.order.index(name)
        reads = self.stages[name].reads or self.order[place - 1]
        return list(shard.sources) if place == 0 else self.kept(reads, shard, done)

    def rows_to_decide(self, name: str, shard: Shard, done: dict[str, Commit]) -> list[Any]:
        """What a stage decides on in a shard: all that the stage before kept."""
        place = self.order.index(name)
        return list(shard.sources) if place == 0 else self.kept(self.order[place - 1], shard, done)

    def kept(self, name: str, shard: Shard, done: dict[str, Commit]) -> list[Any]:
        """The rows a stage let pass, in order."""
        return [row.value for row in self.decided(name, shard, done[name]) if row.status is Status.KEPT]

    def decided(self, name: str, shard: Shard, commit: Commit) -> list[Any]:
        """All rows a commit decided."""
        return self.store.read_part(self.folder(name, shard), commit.part, decided_type(self.stages[name].output))

    def decide(
        self, name: str, rows: Sequence[Any], measured: dict[Key, Any], cut: Cutter | None = None
    ) -> dict[Key, Outcome]:
        """The outcome of every key that `rows` owe, in that order: failures as they are, the others cut.

        Each call of the stage's `cut`, or of the cutter given in its place, sees one group, as its scope says.
        """
        stage = self.stages[name]
        cut = cut or stage.cut
        owed = [(key, row) for row in rows for key in stage.owes(row)]
        items = [Item(key, row, measured[key]) for key, row in owed if not isinstance(measured[key], Failed)]
        group_of: Callable[[Item[Any, Any]], Any] = {
            Scope.ROW: lambda item: item.key,
            Scope.SOURCE: lambda item: item.key.source(),
            Scope.RUN: lambda _: None,
        }[stage.scope]
        decided: dict[Key, Outcome] = {}
        for _, group in groupby(items, key=group_of):
            together = list(group)
            decided |= settle(name, "cut", [item.key for item in together], cut(together))
        return {key: decided[key] if key in decided else measured[key] for key, _ in owed}

    def publish(self, name: str, shard: Shard, fingerprint_: str, outcomes: dict[Key, Outcome]) -> Commit:
        """Write the decided rows, then the commit that makes them count."""
        output = self.stages[name].output
        rows = [decided_row(output, key, outcome) for key, outcome in outcomes.items()]
        for row in rows:
            if row.status is Status.FAILED:
                about = {"stage": name, "shard": shard.index, "key": str(row.key)}
                _log.info("%s of %s failed: %s", name, row.key, row.evidence or row.kind, extra=about)
        commit = Commit(
            fingerprint=fingerprint_,
            part=self.store.write_part(self.folder(name, shard), decided_type(output), rows),
            owed=len(rows),
            statuses=dict(sorted(Counter(row.status for row in rows).items())),
            reasons=dict(
                sorted(Counter(str(row.reason or row.kind) for row in rows if row.reason or row.kind).items())
            ),
            retryable=sum(row.retryable for row in rows),
            kept_digest=digest(row.value for row in rows if row.status is Status.KEPT),
        )
        path = f"{self.folder(name, shard)}/decided-{fingerprint_[:32]}.json"
        value = commit.model_dump(mode="json")
        if self.store.read_json(path) != value:
            self.store.write_json(path, value)
        return commit
