"""The contract of a stage: it says what it owes, measures, then cuts.

`owes` names the output keys before any work. `measure` is the only dear part: one measurement or `Failed` for every
owed key. `cut` is a pure function of measurements and thresholds. The executor checks all three by key.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from schemas.outcomes import FailureKind, Reason, Status
from schemas.records import Key, Record, Source
from schemas.routes import deciding
from tasks.engine.calls import Calls
from tasks.engine.errors import ContractError
from tasks.engine.fingerprint import seed_of
from tasks.engine.images import ImageStore


@dataclass(frozen=True, slots=True)
class Failed:
    """An accident: time-out, refusal, out of memory. `retryable` ones are tried again by the next run."""

    kind: FailureKind
    message: str
    retryable: bool = False
    status: ClassVar = Status.FAILED


@dataclass(frozen=True, slots=True)
class Kept:
    """The row goes on, as `output`."""

    output: Record
    evidence: str = ""
    status: ClassVar = Status.KEPT


@dataclass(frozen=True, slots=True)
class Rejected:
    """A decision against the row. `evidence` says the numbers in a person's words."""

    reason: Reason
    evidence: str
    status: ClassVar = Status.REJECTED


@dataclass(frozen=True, slots=True)
class Waiting:
    """A person has yet to decide (review only)."""

    evidence: str = ""
    status: ClassVar = Status.WAITING


Outcome = Kept | Rejected | Failed | Waiting
Row = TypeVar("Row", bound=Record)
M = TypeVar("M", bound=Record)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item(Generic[Row, M]):
    """What a cut sees of one owed key: the input row and its measurement."""

    key: Key
    row: Row
    measurement: M


Cutter = Callable[[Sequence[Item[Any, Any]]], Iterable[tuple[Key, Outcome]]]


class Scope(StrEnum):
    """Which items a cut sees together: one, those of one source, or all of the run in plan order."""

    ROW = "row"
    SOURCE = "source"
    RUN = "run"


@dataclass(frozen=True)
class Context:
    """All that a measurement may use beside its row: no clock, no environment, no paths.

    Attributes:
        run_seed: The run's seed; `seed` derives one per key.
        images: The picture store.
        call: Every paid or outside call.
        log: One line for the log.
        due: The owed keys that are asked for; None for all of the rows'.
    """

    run_seed: int
    images: ImageStore
    call: Calls
    log: Callable[[str], None]
    due: frozenset[Key] | None = None

    def seed(self, key: Key) -> int:
        """A seed for one key, equal on every worker and in every batch."""
        return seed_of(self.run_seed, list(key))


class Stage(Generic[Row, M]):
    """Base of the stages. Subclasses set the class variables and the three methods.

    Class variables:
        name: The stage's name, also its folder in the workspace.
        version: Rises when the same input and parameters would give another result.
        scope: What `cut` sees at once.
        whole: A run-scope cut that needs all shards at once; otherwise decisions depend on earlier shards alone.
        measurement: The record type that `measure` yields.
        output: The record type of kept rows.
        reads: The stage whose kept rows are measured ("" for the one before). Measuring more than is decided
            lets a threshold of the stage in between move without a model run.
        ignores: Fields of the input row that no measurement depends on: a row that differs in them alone (after a
            threshold moved) is not measured again.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    scope: ClassVar[Scope] = Scope.ROW
    whole: ClassVar[bool] = False
    measurement: ClassVar[type[Record]]
    output: ClassVar[type[Record]]
    reads: ClassVar[str] = ""
    ignores: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, measure_params: BaseModel, cut_params: BaseModel) -> None:
        self.measure_params: Any = measure_params
        self.cut_params: Any = cut_params

    def identities(self) -> list[Any]:
        """Adapters, prompts and weights that decide the measurement, as plain values for the fingerprint."""
        return []

    def choice(self) -> Any:
        """What the user chose that decides every measurement, as plain values."""
        return deciding(self.measure_params.model_dump(mode="json"))

    def groups(self) -> dict[str, list[Any]]:
        """By group of owed keys, what decides its measurements beside row and `choice`: adapters, prompts, weights.

        Keys that the user chose different adapters for are different groups, named by that choice. Most stages have
        one group, without a name.
        """
        return {"": self.identities()}

    def group(self, key: Key) -> str:
        """The group of an owed key."""
        return ""

    def cut_identity(self) -> list[Any]:
        """Everything but the measurements that decides a cut."""
        return [self.name, self.version, self.cut_params.model_dump(mode="json")]

    def told(self, sources: Sequence[Source]) -> list[str]:
        """Digests of what the cut takes from outside about these sources, beside measurements: people's answers."""
        return []

    def owes(self, row: Row) -> Sequence[Key]:
        """The keys this row will leave the stage as."""
        return [row.key]  # type: ignore[attr-defined]

    def measure(self, rows: Sequence[Row], ctx: Context) -> Iterator[tuple[Key, M | Failed]]:
        """One measurement or `Failed` for every owed key of `rows` that is in `ctx.due`, in any order.

        An answer depends on its row alone, whatever rows are beside it: rows come in any batches.
        """
        raise NotImplementedError

    def cut(self, items: Sequence[Item[Row, M]]) -> Iterable[tuple[Key, Outcome]]:
        """One outcome for every item. Pure: measurements and `cut_params` in, outcomes out."""
        raise NotImplementedError

    def cutter(self) -> "Cutter":
        """A `cut` for one run, which is given one shard after another, in plan order.

        A run-scope stage that is not `whole` gives one that remembers of earlier shards what it needs, so that
        nobody has to hold the items of all; together its answers are those of `cut` over all items.
        """
        return self.cut


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
