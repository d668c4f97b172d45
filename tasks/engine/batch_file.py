"""Batches of requests in the file of answers and ledger: written before they are sent, kept until they are settled."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tasks.engine.answer_file import AnswerFile, usable
from tasks.engine.errors import ProviderError
from tasks.engine.fingerprint import canonical
from tasks.engine.ledger import Reply, Request, close_answered, close_failed, insert


class BatchState(StrEnum):
    """Where a batch is. `SENDING`: written down, and its id is not known (yet, or since a kill).

    `LOST`: the provider does not know it; its calls stay `unknown` and are asked again.
    """

    SENDING = "sending"
    SENT = "sent"
    DONE = "done"
    REFUSED = "refused"
    LOST = "lost"


OPEN: Final = (BatchState.SENDING, BatchState.SENT)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch.

    Attributes:
        name: Ours; the provider has it among the batch's metadata.
        run: Who sent it.
        service: Whose it is: provider and model.
        id: The provider's; None while it is not known.
        state: Where it is.
        requests: How many were sent.
        sent: Seconds since 1970.
        told: What the provider last said of it, in words.
    """

    name: str
    run: str
    service: str
    id: str | None
    state: str
    requests: int
    sent: float
    told: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A request in a batch, its row in the ledger, and the dollars that are set aside for it."""

    key: str
    request: Request
    forecast: float
    row: int = 0


Settled = tuple[Member, Reply | ProviderError]


class BatchRows:
    """The batches of a file. Thread-safe; every change survives a kill and a power cut.

    Raises:
        WorkspaceError: On every method, as `AnswerFile` says.
    """

    def __init__(self, file: AnswerFile, run: str) -> None:
        self.run, self._file = run, file

    def open(self) -> list[Batch]:
        """What is not settled yet, of all runs."""
        return self._file.do(lambda db: _batches(db, "state IN (?, ?)", *OPEN), durable=False)

    def begin(self, batch: Batch, members: Sequence[Member]) -> None:
        """Write the batch and an intent for each of its requests, before anything is sent."""

        def write(db: sqlite3.Connection) -> None:
            values = [batch.name, batch.run, batch.service, batch.state, batch.requests, batch.sent]
            columns = "name, run, service, state, requests, sent"
            db.execute(f"INSERT INTO batches ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)
            for member in members:
                row = insert(db, self.run, member.key, member.request, attempt=1, batch=batch.name)
                text = canonical(member.request.plain()).decode()
                sql = "INSERT INTO batched (key, batch, row, request, forecast) VALUES (?, ?, ?, ?, ?)"
                db.execute(sql, [member.key, batch.name, row, text, member.forecast])

        self._file.do(write)

    def sent(self, name: str, id_: str) -> None:
        """Write down the id that the provider gave it."""
        sql = "UPDATE batches SET id = ?, state = ? WHERE name = ?"
        self._file.do(lambda db: db.execute(sql, [id_, BatchState.SENT, name]))

    def tell(self, name: str, told: str) -> None:
        """Note what the provider says of it."""
        sql = "UPDATE batches SET told = ? WHERE name = ?"
        self._file.do(lambda db: db.execute(sql, [told, name]), durable=False, aside=True)

    def members(self, name: str) -> dict[str, Member]:
        """What is not settled of a batch, by key."""

        def read(db: sqlite3.Connection) -> dict[str, Member]:
            rows = db.execute("SELECT key, row, request, forecast FROM batched WHERE batch = ?", [name])
            return {key: Member(key, _request(text), forecast, row) for key, row, text, forecast in rows}

        return self._file.do(read, durable=False)

    def keys(self, name: str) -> set[str]:
        """The keys of all that was sent in a batch."""
        sql = "SELECT key FROM ledger WHERE batch = ?"
        return self._file.do(lambda db: {key for (key,) in db.execute(sql, [name])}, durable=False)

    def settle(self, name: str, settled: Sequence[Settled]) -> None:
        """Store answers and errors and close their rows, in one transaction. Nobody waited for a single one."""

        def write(db: sqlite3.Connection) -> None:
            for member, outcome in settled:
                if isinstance(outcome, Reply):
                    close_answered(db, member.row, member.key, member.request, outcome, latency_s=None)
                else:
                    close_failed(db, member.row, member.key, member.request, outcome, latency_s=None)
                db.execute("DELETE FROM batched WHERE key = ? AND batch = ?", [member.key, name])

        self._file.do(write)

    def end(self, name: str, state: BatchState, told: str) -> None:
        """Nothing more comes of it; requests that are not settled stay `unknown`."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM batched WHERE batch = ?", [name])
            db.execute("UPDATE batches SET state = ?, told = ? WHERE name = ?", [state, told, name])

        self._file.do(write)


def batches(path: Path, run: str) -> list[Batch]:
    """A run's batches, the oldest first. Reads beside a writer, and makes no file."""
    if not path.exists():
        return []
    with usable(path), closing(sqlite3.connect(path)) as reader:
        # A file from before there were batches has none.
        if not reader.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
            return []
        return _batches(reader, "run = ?", run)


def _batches(db: sqlite3.Connection, which: str, *values: str) -> list[Batch]:
    columns = "name, run, service, id, state, requests, sent, told"
    return [Batch(*row) for row in db.execute(f"SELECT {columns} FROM batches WHERE {which} ORDER BY sent", values)]


def _request(text: str) -> Request:
    values = json.loads(text)
    return Request(**values | {"images": tuple(values["images"])})
