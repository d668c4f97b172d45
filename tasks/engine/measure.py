"""The measuring half of a run: what models said of every row, stored by row and asked for once.

A key that was measured under the same parameters is never measured again, whatever else changes in its shard, nor
because its row comes to owe further ones. Where older identities count too (`tasks.engine.lineage`), a shard's answers
stay with the first of them that measured there: what is missing is added to its file, each part with the identity that
gave it.
"""

import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from schemas.outcomes import FailureKind
from schemas.records import Key
from tasks.engine.errors import FedbenchError, WorkspaceError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.lineage import Answers, AnyStage, Identity, Lineage, choice_id, measure_id
from tasks.engine.rows import MeasuredCommit, digest, measured_row, measured_type
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed, settle
from tasks.engine.store import Store

__all__ = ["Answer", "AnyStage", "Measurer", "ModelsNeeded"]


class ModelsNeeded(Exception):
    """Something has to be measured, and this executor may not."""


class Answer(NamedTuple):
    """A measurement or `Failed` (or, as stored, its row), and the measure identity that gave it."""

    value: Any
    by: str


# An owed key and the digest of the row that it is measured of.
Place = tuple[Key, str]


class Measurer:
    """Measures the rows of stages, shard by shard.

    Attributes:
        store: The workspace.
        stages: By name.
        context: What measurements may use.
        measure_ids: By stage and group of keys: fingerprint of everything but the rows that decides a measurement.
        taken: By stage and group: the measure identities whose answers count, in order; None for the present ones'
            alone.
        may_measure: Whether models may run; without, a stage that needs one raises `ModelsNeeded`.
    """

    def __init__(
        self, store: Store, stages: Sequence[AnyStage], context: Context, taken: Lineage | None = None
    ) -> None:
        self.store = store
        self.stages = {stage.name: stage for stage in stages}
        self.context = context
        self.measure_ids = {
            stage.name: {group: measure_id(stage, group, context.run_seed) for group in stage.groups()}
            for stage in stages
        }
        self.taken = taken
        self.may_measure = True

    @staticmethod
    def folder(name: str, shard: Shard) -> str:
        return f"stages/{name}/{shard.id}"

    def measured(self, name: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Any]:
        """The stored measurement or `Failed` of every owed key of `rows` that has one."""
        return {key: answer.value for key, answer in self.answers(name, shard, rows).items()}

    def answers(self, name: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Answer]:
        """As `measured`, with the identity that gave each."""
        stored = self._at_home(name, shard)
        return {
            place[0]: Answer(_value(found.value), found.by)
            for place in _places(self._owed(name, rows))
            if (found := stored.get(place)) is not None
        }

    def measure(self, name: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Any]:
        """A measurement or `Failed` for every owed key of `rows`; what was measured before is read, not redone."""
        stage, owed, stored = self.stages[name], self._owed(name, rows), self._at_home(name, shard)
        for group, ids in (self.taken or {}).get(name, {}).items():
            home = self.home(name, shard, group)
            for id_ in ids:
                missing = [place for place in _missing(owed, stored) if stage.group(place[0]) == group]
                if id_ != home and missing:
                    stored |= self._copy(name, shard, id_, home, missing)
        wanted = set(_missing(owed, stored))
        due = [
            (row, {key: input_ for key in keys if (key, input_) in wanted})
            for row, (input_, keys) in zip(rows, owed.values(), strict=True)
        ]
        began = time.perf_counter()
        fresh = [
            measured_row(stage.measurement, *answer) for answer in self._measure(stage, [one for one in due if one[1]])
        ]
        seconds = (time.perf_counter() - began) / max(1, len(fresh))
        for group, own in self.measure_ids[name].items():
            mine = [row for row in fresh if stage.group(row.key) == group]
            if mine:
                self._add(name, shard, self.home(name, shard, group), own, mine, seconds=seconds)
            stored |= {(row.key, row.input): Answer(row, own) for row in mine}
        return {place[0]: _value(stored[place].value) for place in _places(owed)}

    def is_measured(self, name: str, shard: Shard) -> bool:
        """Whether there is a file of a shard's answers."""
        return any(self.store.exists(self._path(name, shard, home)) for home in self.homes(name, shard))

    def homes(self, name: str, shard: Shard) -> list[str]:
        """The identities whose files hold a shard's answers, one for each group of keys."""
        return [self.home(name, shard, group) for group in sorted(self.measure_ids[name])]

    def home(self, name: str, shard: Shard, group: str) -> str:
        """The identity whose file holds a shard's answers: of those that count, the first that measured there."""
        own = self.measure_ids[name][group]
        if self.taken is None:
            # Its file may have been continued under another identity, when an older program was brought back.
            mixed = bool(self._commit(name, shard, own).by)
            return fingerprint(own, "its own answers alone") if mixed else own
        ids = self.taken[name][group]
        if len(ids) == 1:
            return own
        return next((id_ for id_ in ids if self.store.exists(self._path(name, shard, id_))), own)

    def identity(self, name: str, id_: str) -> Identity:
        """What a measure identity stands for.

        Raises:
            WorkspaceError: The workspace does not know it.
        """
        stage = self.stages[name]
        for group, own in self.measure_ids[name].items():
            if id_ == own:
                return Identity(version=stage.version, group=group, uses=stage.groups()[group])
        found = self.store.read_as(f"stages/{name}/identity-{id_[:32]}.json", Identity)
        if found is None:
            folder = self.store.path(f"stages/{name}")
            raise WorkspaceError(
                f"{folder} lacks identity-{id_[:32]}.json", "delete the folder; the next run makes it anew"
            )
        return found

    def throughput(self, name: str) -> tuple[int, float]:
        """How many rows a stage measured, in all shards of the workspace, and the seconds that took of one worker."""
        rows, seconds = 0, 0.0
        for group, own in self.measure_ids[name].items():
            for id_ in self.taken[name][group] if self.taken else (own,):
                for path in self.store.root.glob(f"stages/{name}/*/measured-{id_[:32]}.json"):
                    commit = self.store.read_as(path.relative_to(self.store.root).as_posix(), MeasuredCommit)
                    rows, seconds = rows + (commit.rows if commit else 0), seconds + (commit.seconds if commit else 0.0)
        return rows, seconds

    def taken_answers(self) -> Answers:
        """By stage and choice: whose answers count here, in order."""
        seed = self.context.run_seed
        return {
            name: {
                choice_id(self.stages[name], group, seed): tuple(self.taken[name][group]) if self.taken else (own,)
                for group, own in groups.items()
            }
            for name, groups in self.measure_ids.items()
        }

    def parts(self, name: str, shard: Shard) -> tuple[str, ...]:
        """The parts that hold a shard's answers; a later row replaces one."""
        return tuple(part for home in self.homes(name, shard) for part in self._commit(name, shard, home).parts)

    def _copy(self, name: str, shard: Shard, id_: str, home: str, wanted: Sequence[Place]) -> dict[Place, Answer]:
        """Take answers over from an older identity's file."""
        older = self._stored(name, shard, id_)
        found = {place: older[place] for place in wanted if place in older and not older[place].value.retryable}
        for by in sorted({answer.by for answer in found.values()}):
            self._add(name, shard, home, by, [answer.value for answer in found.values() if answer.by == by])
        return found

    def _add(
        self, name: str, shard: Shard, home: str, by: str, rows: Sequence[Any], *, seconds: float | None = None
    ) -> None:
        """Add a part to a shard's answers. What its identity stands for is written first, so that all are known.

        Args:
            name: The stage.
            shard: The shard.
            home: The identity whose file holds the answers.
            by: The identity that gave these.
            rows: The answers.
            seconds: That each of them took just now; None for answers that are copied.
        """
        described = f"stages/{name}/identity-{by[:32]}.json"
        if not self.store.exists(described):
            self.store.write_json(described, self.identity(name, by).model_dump(mode="json"))
        before = self._commit(name, shard, home)
        part = self.store.write_part(self.folder(name, shard), measured_type(self.stages[name].measurement), rows)
        commit = MeasuredCommit(
            parts=(*before.parts, part),
            by=before.by | ({part: by} if by != home else {}),
            rows=before.rows + (0 if seconds is None else len(rows)),
            seconds=before.seconds + len(rows) * (seconds or 0.0),
        )
        self.store.write_json(self._path(name, shard, home), commit.model_dump(mode="json"))

    def _owed(self, name: str, rows: Sequence[Any]) -> dict[Key, tuple[str, Sequence[Key]]]:
        """By the rows' keys: digest of what is measured of the row, and the keys it owes."""
        stage = self.stages[name]
        return {row.key: (digest([row], stage.ignores), stage.owes(row)) for row in rows}

    def _path(self, name: str, shard: Shard, id_: str) -> str:
        return f"{self.folder(name, shard)}/measured-{id_[:32]}.json"

    def _commit(self, name: str, shard: Shard, id_: str) -> MeasuredCommit:
        return self.store.read_as(self._path(name, shard, id_), MeasuredCommit) or MeasuredCommit(parts=())

    def _at_home(self, name: str, shard: Shard) -> dict[Place, Answer]:
        stage = self.stages[name]
        stored: dict[Place, Answer] = {}
        for group in self.measure_ids[name]:
            found = self._stored(name, shard, self.home(name, shard, group))
            stored |= {place: answer for place, answer in found.items() if stage.group(place[0]) == group}
        return stored

    def _stored(self, name: str, shard: Shard, id_: str) -> dict[Place, Answer]:
        """The rows of an identity's file by key and input, with who gave each."""
        kind: Any = measured_type(self.stages[name].measurement)
        commit = self._commit(name, shard, id_)
        return {
            (row.key, row.input): Answer(row, commit.by.get(part, id_))
            for part in commit.parts
            for row in self.store.read_part(self.folder(name, shard), part, kind)
        }

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


def _places(owed: dict[Key, tuple[str, Sequence[Key]]]) -> Iterator[Place]:
    return ((key, input_) for input_, keys in owed.values() for key in keys)


def _missing(owed: dict[Key, tuple[str, Sequence[Key]]], stored: dict[Place, Answer]) -> list[Place]:
    """The owed keys that have no answer, or a failure that may go away."""
    return [place for place in _places(owed) if (found := stored.get(place)) is None or found.value.retryable]


def _value(row: Any) -> Any:
    """The measurement or `Failed` of a stored row."""
    return Failed(row.kind, row.message, row.retryable) if row.kind else row.value
