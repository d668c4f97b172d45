"""The answer store in a bucket: what was stored is stored for every machine, and what was not is asked again."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.routes import CallSettings
from tasks.engine import journal
from tasks.engine.bucket import Bucket, Listed
from tasks.engine.calls import Calls
from tasks.engine.errors import NotSent, WorkspaceError
from tasks.engine.ledger import Ledger, Reply, Request
from tasks.engine.places import _settle, place
from tasks.engine.store import Store
from tests.objects.conftest import elsewhere

pytestmark = pytest.mark.s3
DUMP = "SELECT * FROM answers ORDER BY key", "SELECT * FROM ledger ORDER BY id"


@pytest.fixture
def door(bucket: Bucket) -> Iterator[Calls]:
    store = Store(place(bucket.url))
    with store.lock():
        calls = Calls(store.path("answers.sqlite"), CallSettings(), "run")
        yield calls
        calls.close()


def ask(calls: Calls, number: int, **reply: Any) -> str:
    return calls.ask(Request("voter", "p", "m", {"n": number}), lambda: Reply(f"answer {number}", cost=0.25, **reply))


def dumped(path: Path) -> list[list[Any]]:
    with sqlite3.connect(path) as db:
        return [db.execute(sql).fetchall() for sql in DUMP]


def test_an_answer_is_known_on_another_machine(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(place(bucket.url))
    with store.lock():
        door = Calls(store.path("answers.sqlite"), CallSettings(), "run")
        for number in range(5):
            ask(door, number, tokens_in=3)
        ask(door, 2)
        door.close()
    here = dumped(place(bucket.url) / "answers.sqlite")
    elsewhere(monkeypatch, tmp_path / "other")
    root = place(bucket.url)
    assert dumped(root / "answers.sqlite") == here
    replaying = Calls(root / "answers.sqlite", CallSettings(replay_only=True), "run")
    assert ask(replaying, 3) == "answer 3"
    with pytest.raises(NotSent):
        ask(replaying, 7)
    (total,) = replaying.totals()
    assert (total.calls, total.cached, total.cost) == (5, 2, 1.25)
    replaying.close()
    _settle()


def test_no_question_is_sent_before_its_intent_lies_in_the_bucket(bucket: Bucket, door: Calls) -> None:
    def send() -> Reply:
        (name,) = [name for name in bucket.listing("journal") if name.endswith(".json")]
        assert b'"unknown"' in (bucket.get(name) or pytest.fail("gone")).data
        return Reply("yes")

    assert door.ask(Request("voter", "p", "m"), send) == "yes"
    assert len(bucket.listing("journal")) == 2


def test_what_cannot_be_put_is_not_stored(door: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    put, fails = Bucket.put, threading.Event()

    def failing(self: Bucket, name: str, data: Any, **condition: Any) -> Listed:
        if fails.is_set() and name.startswith("journal/"):
            raise WorkspaceError("no way through")
        return put(self, name, data, **condition)

    monkeypatch.setattr(Bucket, "put", failing)
    ask(door, 1)

    def send() -> Reply:
        fails.set()
        return Reply("lost on the way")

    with pytest.raises(WorkspaceError, match="no way through"):
        door.ask(Request("voter", "p", "m", {"n": 2}), send)
    fails.clear()
    assert ask(door, 1) == "answer 1"
    assert ask(door, 2) == "answer 2", "an answer that lies nowhere was taken for stored"
    assert [total.unknown for total in door.totals()] == [1]


def test_a_commit_that_was_put_without_an_answer_counts(door: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Bucket.put

    def unheard(self: Bucket, name: str, data: Any, **condition: Any) -> Listed:
        done = put(self, name, data, **condition)
        if name.startswith("journal/") and b"INSERT OR REPLACE INTO answers" in bytes(data):
            raise WorkspaceError("nothing was heard")
        return done

    sent: list[int] = []

    def send() -> Reply:
        sent.append(1)
        return Reply("yes")

    monkeypatch.setattr(Bucket, "put", unheard)
    with pytest.raises(WorkspaceError, match="nothing was heard"):
        door.ask(Request("voter", "p", "m"), send)
    monkeypatch.setattr(Bucket, "put", put)
    assert door.ask(Request("voter", "p", "m"), send) == "yes"
    assert len(sent) == 1


def test_many_threads_share_commits(bucket: Bucket, door: Calls) -> None:
    assert door.gather([lambda number=number: ask(door, number) for number in range(200)])
    commits = len(bucket.listing("journal"))
    print(f"200 calls: {commits} commits")
    assert commits < 300


def test_a_long_journal_becomes_a_file(
    bucket: Bucket, door: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_LEAST", 20_000)
    for number in range(60):
        ask(door, number)
    held = sorted(bucket.listing("journal"))
    assert len(held) < 100
    assert [name for name in held if name.endswith(".sqlite")]
    door.close()
    here = dumped(place(bucket.url) / "answers.sqlite")
    elsewhere(monkeypatch, tmp_path / "other")
    assert dumped(place(bucket.url) / "answers.sqlite") == here


def test_what_is_forgotten_is_in_no_object(
    bucket: Bucket, door: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = "ab" * 32
    door.ask(Request("voter", "p", "m", images=(picture,)), lambda: Reply("a very private answer"))
    ask(door, 1)
    door.close()
    root = place(bucket.url)
    ledger = Ledger(root / "answers.sqlite", "")
    assert ledger.forget([picture]) == ["p"]
    ledger.close()
    for name in bucket.listing("journal"):
        assert b"private answer" not in (bucket.get(name) or pytest.fail("gone")).data, name
    elsewhere(monkeypatch, tmp_path / "other")
    assert Ledger(place(bucket.url) / "answers.sqlite", "").count([picture]) == 0


def test_a_gap_is_told(bucket: Bucket, door: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        ask(door, number)
    door.close()
    bucket.delete(["journal/000000000002.json"])
    elsewhere(monkeypatch, tmp_path / "other")
    with pytest.raises(WorkspaceError, match=r"lacks journal/000000000002\.json"):
        place(bucket.url)


def test_another_writer_is_found_out(bucket: Bucket, door: Calls) -> None:
    ask(door, 1)
    bucket.put("journal/000000000003.json", json.dumps({"by": "x", "did": []}).encode())
    with pytest.raises(WorkspaceError, match="another run writes the answers"):
        ask(door, 2)
