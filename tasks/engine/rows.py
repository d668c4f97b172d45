"""The rows a stage leaves in the workspace: what was measured, what was decided, and the commits that say so."""

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from pydantic import Field, create_model

from schemas.outcomes import FailureKind, Reason, Status
from schemas.records import Key, KeyField, Record
from tasks.engine.fingerprint import sha256
from tasks.engine.stage import Failed, Kept, Outcome, Rejected
from tasks.engine.store import arrow_schema


class Commit(Record):
    """What a `decided-*.json` says: where the rows are, how many left in which way, and what went on."""

    fingerprint: str
    part: str
    owed: int
    statuses: dict[Status, int]
    reasons: dict[str, int]
    retryable: int
    kept_digest: str


class MeasuredCommit(Record):
    """What a `measured-*.json` says.

    Attributes:
        parts: In the order they were written; a later row replaces an earlier.
        by: The measure identity of the parts that another one gave than the file is named after.
        rows, seconds: How many rows were measured for them, and how long that took by the clock on the wall: for
            forecasts, and for nothing that is published.
    """

    parts: tuple[str, ...]
    by: dict[str, str] = Field(default_factory=dict)
    rows: int = 0
    seconds: float = 0.0


@cache
def measured_type(measurement: Any) -> type[Record]:
    """The row type of a measured part: a measurement or a failure, by key and digest of the input row."""
    return create_model(
        f"Measured{measurement.__name__}",
        __base__=Record,
        key=(KeyField, ...),
        input=(str, ...),
        kind=(FailureKind | None, None),
        message=(str, ""),
        retryable=(bool, False),
        value=(measurement | None, None),
    )


@cache
def decided_type(output: Any) -> type[Record]:
    """The row type of a decided part: one owed key, how it left, why, and as what."""
    return create_model(
        f"Decided{output.__name__}",
        __base__=Record,
        key=(KeyField, ...),
        status=(Status, ...),
        reason=(Reason | None, None),
        kind=(FailureKind | None, None),
        evidence=(str, ""),
        retryable=(bool, False),
        value=(output | None, None),
    )


@cache
def shape(output: Any) -> str:
    """The columns of a decided part: decisions of another shape are taken anew, which asks no model."""
    return str(arrow_schema(decided_type(output)))


def measured_row(measurement: type[Record], key: Key, input_: str, answer: Any) -> Any:
    """A measurement or `Failed` as a row of a measured part."""
    failed = answer if isinstance(answer, Failed) else None
    return measured_type(measurement).model_construct(
        key=key,
        input=input_,
        kind=failed.kind if failed else None,
        message=failed.message if failed else "",
        retryable=failed.retryable if failed else False,
        value=None if failed else answer,
    )


def decided_row(output: type[Record], key: Key, outcome: Outcome) -> Any:
    """An outcome as a row of a decided part."""
    value = outcome.output if isinstance(outcome, Kept) else None
    return decided_type(output).model_construct(
        key=key,
        status=outcome.status,
        reason=outcome.reason if isinstance(outcome, Rejected) else None,
        kind=outcome.kind if isinstance(outcome, Failed) else None,
        evidence=outcome.message if isinstance(outcome, Failed) else outcome.evidence,
        retryable=isinstance(outcome, Failed) and outcome.retryable,
        value=value,
    )


def digest(rows: Iterable[Record], without: Collection[str] = ()) -> str:
    """Digest of rows in order, but for the fields named in `without`."""
    return sha256("\n".join(row.model_dump_json(exclude=set(without)) for row in rows).encode())
