"""The measuring half of a run: what models said of every row, stored by row and asked for once.

A key that was measured under the same parameters is never measured again, whatever else changes in its shard, nor
because its row comes to owe further ones.
"""

import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from schemas.outcomes import FailureKind
from schemas.records import Key
from tasks.engine.errors import FedbenchError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.rows import MeasuredCommit, digest, measured_row, measured_type
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed, Stage, settle
from tasks.engine.store import Store

AnyStage = Stage[Any, Any]


class ModelsNeeded(Exception):
    """Something has to be measured, and this executor may not."""


class Measurer:
    """Measures the rows of stages, shard by shard.

    Attributes:
        store: The workspace.
        stages: By name.
        context: What measurements may use.
        measure_ids: By stage: fingerprint of everything but the rows that decides a measurement.
        may_measure: Whether models may run; without, a stage that needs one raises `ModelsNeeded`.
    """

    def __init__(self, store: Store, stages: Sequence[AnyStage], context: Context) -> None:
        self.store = store
        self.stages = {stage.name: stage for stage in stages}
        self.context = context
        self.measure_ids = {stage.name: fingerprint(stage.measure_identity(), context.run_seed) for stage in stages}
        self.may_measure = True

    @staticmethod
    def folder(name: str, shard: Shard) -> str:
        return f"stages/{name}/{shard.id}"

    def measured(self, name: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Any]:
        """The stored measurement or `Failed` of every owed key of `rows` that has one."""
        return _by_key(self._owed(name, rows), self._stored(name, shard))

    def measure(self, name: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Any]:
        """A measurement or `Failed` for every owed key of `rows`; what was measured before is read, not redone."""
        stage, stored, owed = self.stages[name], self._stored(name, shard), self._owed(name, rows)
        due = []
        for row, inputs in zip(rows, owed.values(), strict=True):
            missing = {
                key: input_
                for key, input_ in inputs.items()
                if (found := stored.get((key, input_))) is None or found.retryable
            }
            if missing:
                due.append((row, missing))
        fresh = [measured_row(stage.measurement, *answer) for answer in self._measure(stage, due)]
        if fresh:
            folder = self.folder(name, shard)
            part = self.store.write_part(folder, measured_type(stage.measurement), fresh)
            commit = MeasuredCommit(parts=(*self.parts(name, shard), part))
            self.store.write_json(f"{folder}/{self._measured_name(name)}", commit.model_dump(mode="json"))
        return _by_key(owed, stored | {(row.key, row.input): row for row in fresh})

    def _owed(self, name: str, rows: Sequence[Any]) -> dict[Key, dict[Key, str]]:
        """By the rows' keys: the keys a row owes, each with a digest of what is measured for it."""
        stage, owed = self.stages[name], {}
        for row in rows:
            input_ = digest([row], stage.ignores)
            own = {key: stage.key_identity(key) for key in stage.owes(row)}
            owed[row.key] = {key: input_ if one is None else fingerprint(input_, one) for key, one in own.items()}
        return owed

    def _measured_name(self, name: str) -> str:
        return f"measured-{self.measure_ids[name][:32]}.json"

    def parts(self, name: str, shard: Shard) -> tuple[str, ...]:
        """The parts that hold what a stage measured in a shard under these parameters; a later row replaces one."""
        commit = self.store.read_as(f"{self.folder(name, shard)}/{self._measured_name(name)}", MeasuredCommit)
        return commit.parts if commit else ()

    def _stored(self, name: str, shard: Shard) -> dict[tuple[Key, str], Any]:
        kind: Any = measured_type(self.stages[name].measurement)
        rows = [
            row
            for part in self.parts(name, shard)
            for row in self.store.read_part(self.folder(name, shard), part, kind)
        ]
        return {(row.key, row.input): row for row in rows}

    def _measure(self, stage: AnyStage, due: Sequence[tuple[Any, dict[Key, str]]]) -> Iterator[tuple[Key, str, Any]]:
        if not due:
            return
        if not self.may_measure:
            raise ModelsNeeded(stage.name)
        input_of = {key: input_ for _, missing in due for key, input_ in missing.items()}
        context = replace(self.context, due=frozenset(input_of))
        try:
            answers = list(stage.measure([row for row, _ in due], context))
        except FedbenchError:
            raise
        except Exception:  # noqa: BLE001 - one poisoned row must hurt only itself: the rows go one by one
            answers = [answer for row, missing in due for answer in self._measure_alone(stage, row, missing, context)]
        for key, answer in settle(stage.name, "measure", list(input_of), answers).items():
            yield key, input_of[key], answer

    def _measure_alone(self, stage: AnyStage, row: Any, keys: Iterable[Key], context: Context) -> list[tuple[Key, Any]]:
        try:
            return list(stage.measure([row], context))
        except FedbenchError:
            raise
        except Exception as error:  # noqa: BLE001 - an accident becomes a row with a kind, not the run's end
            self.context.log(f"{stage.name} crashed on {row.key}:\n{traceback.format_exc()}")
            kind = FailureKind.OUT_OF_MEMORY if isinstance(error, MemoryError) else FailureKind.CRASHED
            # The error's own text may hold a path of this machine, and this message is published.
            return [(key, Failed(kind, f"{type(error).__name__}; see crashes.log in the workspace")) for key in keys]


def _by_key(owed: dict[Key, dict[Key, str]], stored: dict[tuple[Key, str], Any]) -> dict[Key, Any]:
    """The measurement or `Failed` of every owed key that has a stored row for its input."""
    return {
        key: Failed(row.kind, row.message, row.retryable) if row.kind else row.value
        for inputs in owed.values()
        for key, input_ in inputs.items()
        if (row := stored.get((key, input_))) is not None
    }
