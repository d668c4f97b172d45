"""Runs stages over shards: skip what is published, run what is due, check every key, publish.

For a stage and a shard the workspace holds two kinds of commit beside their Parquet parts: `measured-*.json` (what
models said, by row: a row measured once under the same parameters is never measured again) and `decided-*.json`
(what became of every owed key). A commit that is there is done; nothing else says so.
"""

import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar

from schemas.outcomes import FailureKind, Status
from schemas.records import Key
from tasks.engine.errors import ContractError, FedbenchError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.rows import Commit, MeasuredCommit, decided_row, decided_type, digest, measured_row, measured_type
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Scope, Stage
from tasks.engine.store import Store

# Sources that go through a segment together. Their decoded pictures should fit the image cache for every worker.
BLOCK: Final = 8

T = TypeVar("T")
AnyStage = Stage[Any, Any]


def settle(stage: str, half: str, owed: Sequence[Key], answers: Iterable[tuple[Key, T]]) -> dict[Key, T]:
    """The answers by key, if they are exactly one for every owed key.

    Raises:
        ContractError: A key was lost, doubled or invented; the first one is named.
    """
    settled: dict[Key, T] = {}
    expected = set(owed)
    for key, answer in answers:
        if key not in expected:
            raise ContractError(f"stage '{stage}' invented a key in {half}: {key}", "this is a bug of the stage")
        if key in settled:
            raise ContractError(f"stage '{stage}' doubled a key in {half}: {key}", "this is a bug of the stage")
        settled[key] = answer
    lost = [key for key in owed if key not in settled]
    if lost:
        raise ContractError(
            f"stage '{stage}' lost {len(lost)} of {len(owed)} keys in {half}: {lost[0]}", "this is a bug of the stage"
        )
    return settled


def _by_key(owed: dict[Key, tuple[str, Sequence[Key]]], stored: dict[tuple[Key, str], Any]) -> dict[Key, Any]:
    """The measurement or `Failed` of every owed key that has a stored row for its input."""
    return {
        key: Failed(row.kind, row.message, row.retryable) if row.kind else row.value
        for input_, keys in owed.values()
        for key in keys
        if (row := stored.get((key, input_))) is not None
    }


class Executor:
    """One run's stages over its shards.

    Args:
        store: The workspace.
        stages: In the order the data flows.
        shards: The plan.
        context: What measurements may use.
    """

    def __init__(self, store: Store, stages: Sequence[AnyStage], shards: Sequence[Shard], context: Context) -> None:
        self.store = store
        self.stages = {stage.name: stage for stage in stages}
        self.order = [stage.name for stage in stages]
        self.shards = list(shards)
        self.context = context
        self._measure_ids = {stage.name: fingerprint(stage.measure_identity(), context.run_seed) for stage in stages}

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
        """Digests of what a stage measures and decides on in a shard; None while that is not known."""
        place = self.order.index(name)
        if place == 0:
            return [digest(shard.sources)]
        before = self.order[place - 1]
        reads = self.stages[name].reads or before
        return [done[reads].kept_digest, done[before].kept_digest] if reads in done and before in done else None

    def fingerprint(self, name: str, inputs: Sequence[list[str] | None], place: int) -> str | None:
        """Fingerprint of a stage's decisions on the shard at `place`; None while its inputs are not known."""
        stage = self.stages[name]
        if stage.scope is not Scope.RUN:
            seen = inputs[place : place + 1]
        else:
            seen = inputs if stage.whole else inputs[: place + 1]
        if any(shard_inputs is None for shard_inputs in seen):
            return None
        return fingerprint(self._measure_ids[name], stage.cut_identity(), list(seen))

    def commit(self, name: str, shard: Shard, fingerprint_: str) -> Commit | None:
        """The published commit of that fingerprint."""
        value = self.store.read_json(f"{self.folder(name, shard)}/decided-{fingerprint_[:32]}.json")
        commit = Commit.model_validate(value) if value is not None else None
        return commit if commit and commit.fingerprint == fingerprint_ else None

    @staticmethod
    def folder(name: str, shard: Shard) -> str:
        return f"stages/{name}/{shard.id}"

    # -- doing it -----------------------------------------------------------------------------------------------

    def run_shard(self, shard: Shard, names: Sequence[str], done: dict[str, Commit]) -> dict[str, Commit]:
        """Measure and decide consecutive stages of row or source scope on one shard.

        Args:
            shard: The shard.
            names: The stages, in order.
            done: The shard's commits so far; those of the stages before are needed.

        Returns:
            `done` with the new commits.
        """
        done = dict(done)
        measured: dict[str, dict[Key, Any]] = {}
        for place, name in enumerate(names):
            fingerprint_ = self.fingerprint(name, [self.inputs(name, shard, done)], 0)
            assert fingerprint_ is not None, f"{name} runs after its inputs"
            commit = self.commit(name, shard, fingerprint_)
            if commit is None or commit.retryable:
                measured = measured or self._measure_blocks(shard, names[place:], done)
                rows = self.rows_to_decide(name, shard, done)
                commit = self.publish(name, shard, fingerprint_, self.decide(name, rows, measured[name]))
            done[name] = commit
        return done

    def _measure_blocks(self, shard: Shard, names: Sequence[str], done: dict[str, Commit]) -> dict[str, dict[Key, Any]]:
        """Everything that consecutive stages measure on a shard, by stage.

        A few sources go through all of them before the next few do, so that their pictures are still decoded. The
        cuts in between are those of the whole shard, since none of them looks beyond a source.
        """
        first = self.order.index(names[0])
        before = self.order[first - 1] if first else ""
        outside = {before, *(reads for name in names if (reads := self.stages[name].reads) and reads not in names)}
        rows_of = {
            name: (list(shard.sources) if not name else self.kept(name, shard, done)) for name in sorted(outside)
        }
        measured: dict[str, dict[Key, Any]] = {name: {} for name in names}
        for start in range(0, len(shard.sources), BLOCK):
            block = {source.key for source in shard.sources[start : start + BLOCK]}
            kept = {name: [row for row in rows if row.key.source() in block] for name, rows in rows_of.items()}
            for name, previous in zip(names, [before, *names], strict=False):
                answers = self.measure(name, shard, kept[self.stages[name].reads or previous])
                outcomes = self.decide(name, kept[previous], answers).values()
                kept[name] = [outcome.output for outcome in outcomes if isinstance(outcome, Kept)]
                measured[name] |= answers
        return measured

    def decide_run(self, name: str, done: Sequence[dict[str, Commit]]) -> list[Commit]:
        """The barrier of a run-scope stage, once it is measured: decide in plan order, publish shard by shard."""
        inputs = [self.inputs(name, shard, commits) for shard, commits in zip(self.shards, done, strict=True)]
        measured: dict[Key, Any] = {}
        rows = []
        for shard, commits in zip(self.shards, done, strict=True):
            measured |= self.measured(name, shard, self.rows_to_measure(name, shard, commits))
            rows.append(self.rows_to_decide(name, shard, commits))
        outcomes = self.decide(name, [row for shard_rows in rows for row in shard_rows], measured)
        published = []
        for place, (shard, shard_rows) in enumerate(zip(self.shards, rows, strict=True)):
            fingerprint_ = self.fingerprint(name, inputs, place)
            assert fingerprint_ is not None, f"{name} runs after its inputs"
            owed = [key for row in shard_rows for key in self.stages[name].owes(row)]
            published.append(self.publish(name, shard, fingerprint_, {key: outcomes[key] for key in owed}))
        return published

    def rows_to_measure(self, name: str, shard: Shard, done: dict[str, Commit]) -> list[Any]:
        place = self.order.index(name)
        return (
            list(shard.sources)
            if place == 0
            else self.kept(self.stages[name].reads or self.order[place - 1], shard, done)
        )

    def rows_to_decide(self, name: str, shard: Shard, done: dict[str, Commit]) -> list[Any]:
        place = self.order.index(name)
        return list(shard.sources) if place == 0 else self.kept(self.order[place - 1], shard, done)

    def kept(self, name: str, shard: Shard, done: dict[str, Commit]) -> list[Any]:
        """The rows a stage let pass, in order."""
        return [row.value for row in self.decided(name, shard, done[name]) if row.status is Status.KEPT]

    def decided(self, name: str, shard: Shard, commit: Commit) -> list[Any]:
        """All rows a commit decided."""
        return self.store.read_part(self.folder(name, shard), commit.part, decided_type(self.stages[name].output))

    def measured(self, name: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Any]:
        """The stored measurement or `Failed` of every owed key of `rows` that has one."""
        return _by_key(self._owed(name, rows), self._stored(name, shard))

    def measure(self, name: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Any]:
        """A measurement or `Failed` for every owed key of `rows`; what was measured before is read, not redone."""
        stage, stored, owed = self.stages[name], self._stored(name, shard), self._owed(name, rows)
        due = []
        for row, (input_, keys) in zip(rows, owed.values(), strict=True):
            known = [stored.get((key, input_)) for key in keys]
            if any(found is None or found.retryable for found in known):
                due.append((row, input_, keys))
        fresh = [measured_row(stage.measurement, *answer) for answer in self._measure(stage, due)]
        if fresh:
            folder = self.folder(name, shard)
            part = self.store.write_part(folder, measured_type(stage.measurement), fresh)
            commit = MeasuredCommit(parts=(*self._parts(name, shard), part))
            self.store.write_json(f"{folder}/{self._measured_name(name)}", commit.model_dump(mode="json"))
        return _by_key(owed, stored | {(row.key, row.input): row for row in fresh})

    def _owed(self, name: str, rows: Sequence[Any]) -> dict[Key, tuple[str, Sequence[Key]]]:
        """By the rows' keys: digest of what is measured of the row, and the keys it owes."""
        stage = self.stages[name]
        return {row.key: (digest([row], stage.ignores), stage.owes(row)) for row in rows}

    def _measured_name(self, name: str) -> str:
        return f"measured-{self._measure_ids[name][:32]}.json"

    def _parts(self, name: str, shard: Shard) -> tuple[str, ...]:
        value = self.store.read_json(f"{self.folder(name, shard)}/{self._measured_name(name)}")
        return MeasuredCommit.model_validate(value).parts if value is not None else ()

    def _stored(self, name: str, shard: Shard) -> dict[tuple[Key, str], Any]:
        kind: Any = measured_type(self.stages[name].measurement)
        rows = [
            row
            for part in self._parts(name, shard)
            for row in self.store.read_part(self.folder(name, shard), part, kind)
        ]
        return {(row.key, row.input): row for row in rows}

    def _measure(
        self, stage: AnyStage, due: Sequence[tuple[Any, str, Sequence[Key]]]
    ) -> Iterator[tuple[Key, str, Any]]:
        if not due:
            return
        input_of = {key: input_ for _, input_, keys in due for key in keys}
        rows = [row for row, _, _ in due]
        try:
            answers = list(stage.measure(rows, self.context))
        except FedbenchError:
            raise
        except Exception:  # noqa: BLE001 - one poisoned row must hurt only itself: the rows go one by one
            answers = [answer for row, _, keys in due for answer in self._measure_alone(stage, row, keys)]
        for key, answer in settle(stage.name, "measure", list(input_of), answers).items():
            yield key, input_of[key], answer

    def _measure_alone(self, stage: AnyStage, row: Any, keys: Sequence[Key]) -> list[tuple[Key, Any]]:
        try:
            return list(stage.measure([row], self.context))
        except FedbenchError:
            raise
        except Exception as error:  # noqa: BLE001 - an accident becomes a row with a kind, not the run's end
            self.context.log(f"{stage.name} crashed on {row.key}:\n{traceback.format_exc()}")
            kind = FailureKind.OUT_OF_MEMORY if isinstance(error, MemoryError) else FailureKind.CRASHED
            # The error's own text may hold a path of this machine, and this message is published.
            return [(key, Failed(kind, f"{type(error).__name__}; see crashes.log in the workspace")) for key in keys]

    def decide(self, name: str, rows: Sequence[Any], measured: dict[Key, Any]) -> dict[Key, Outcome]:
        """The outcome of every key that `rows` owe, in that order: failures as they are, the others cut.

        Each call of the stage's `cut` sees one group, as its scope says.
        """
        stage = self.stages[name]
        owed = [(key, row) for row in rows for key in stage.owes(row)]
        items = [Item(key, row, measured[key]) for key, row in owed if not isinstance(measured[key], Failed)]
        group_of: Callable[[Item[Any, Any]], Any] = {
            Scope.ROW: lambda item: item.key,
            Scope.SOURCE: lambda item: item.key.source(),
            Scope.RUN: lambda _: None,
        }[stage.scope]
        cut: dict[Key, Outcome] = {}
        for _, group in groupby(items, key=group_of):
            together = list(group)
            cut |= settle(name, "cut", [item.key for item in together], stage.cut(together))
        return {key: cut[key] if key in cut else measured[key] for key, _ in owed}

    def publish(self, name: str, shard: Shard, fingerprint_: str, outcomes: dict[Key, Outcome]) -> Commit:
        """Write the decided rows, then the commit that makes them count."""
        output = self.stages[name].output
        rows = [decided_row(output, key, outcome) for key, outcome in outcomes.items()]
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
