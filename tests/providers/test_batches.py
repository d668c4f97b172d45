"""Batches over real HTTP: the same answers as asked singly, never sent twice, every question settled and counted."""

import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from schemas.routes import Route
from tasks.engine import batch_courier
from tasks.engine.batch_file import batches
from tasks.engine.calls import Calls
from tasks.engine.errors import BatchesWaiting, Postponed, StoppedError
from tests.providers.asking import KEY, ask_all, question, route, settle
from tests.providers.loopback import Asked
from tests.providers.loopback_batches import Batching
from tests.providers.test_trouble import ledger, start, wait_for

Opened = Callable[..., Calls]
COST = (400 * 1 + 12 * 10) / 1e6


@pytest.fixture
def provider() -> Iterator[Batching]:
    with Batching(key=KEY) as held:
        yield held


@pytest.fixture
def batched(opened: Opened) -> Opened:
    def make(**settings: Any) -> Calls:
        own = {"poll_s": 0.01} | settings.pop("batches", {})
        return opened(batches=own, **settings)

    return make


def way(provider: Batching, **changes: Any) -> Route:
    return route(provider.url, batch=True, **changes)


def stored(folder: Path) -> list[Any]:
    """All that is stored of answers, but for when."""
    with sqlite3.connect(folder / "answers.sqlite") as db:
        return db.execute("SELECT key, request, raw, kind, message FROM answers ORDER BY key").fetchall()


def left(folder: Path) -> list[Path]:
    return list((folder / "batches").glob("*"))


def trouble(asked: Asked) -> str:
    """What an answer meets, by its picture."""
    return ("ok", "400 policy", "ok", "truncated", "400 other", "filtered", "ok", "ok")[asked.pictures[0][-20] % 8]


def test_a_batch_stores_what_single_calls_store(batched: Opened, provider: Batching, tmp_path: Path) -> None:
    provider.meets, provider.odd = trouble, True
    calls = batched()
    ended = ask_all(calls, [way(provider)], range(40))
    assert len(provider.batches) == 1
    assert Counter(provider.met) == Counter(trouble(asked) for asked in provider.asked)
    assert len(set(provider.met)) == 5
    by_batch, (total,) = stored(tmp_path), calls.totals()
    assert provider.calls.count("create") == 1
    assert provider.files == {}, "faces stay at the provider"
    assert left(tmp_path) == []
    calls.close()
    (tmp_path / "answers.sqlite").unlink()

    calls = batched()
    assert ask_all(calls, [route(provider.url)], range(40)) == ended
    assert stored(tmp_path) == by_batch
    (single,) = calls.totals()
    assert (total.calls, total.cached, total.failed, total.unknown) == (single.calls, 0, single.failed, 0)
    assert (total.tokens_in, total.tokens_out, total.images) == (single.tokens_in, single.tokens_out, single.images)
    assert total.cost == pytest.approx(single.cost / 2)


def test_the_ledger_names_the_batch_and_a_second_run_asks_nothing(
    batched: Opened, provider: Batching, tmp_path: Path
) -> None:
    told: list[str] = []
    calls = batched()
    calls.tell_of_batches(told.append)
    provider.polls = 3
    ended = ask_all(calls, [way(provider)], range(10))
    (batch,) = batches(tmp_path / "answers.sqlite", "run")
    assert (batch.service, batch.state, batch.requests, batch.id) == ("loopback openai/m-1", "done", 10, "batch-0")
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        assert db.execute("SELECT DISTINCT batch, outcome, latency_s FROM ledger").fetchall() == [
            (batch.name, "answered", None)
        ]
        assert db.execute("SELECT count(*) FROM batched").fetchone() == (0,)
    assert told[0].startswith(f"loopback openai/m-1: batch {batch.name} is sent, 10 requests")
    assert "in_progress, 0 of 10 after 0 s" in told[1]
    assert told[-1].endswith("is completed: 10 answered")
    again = batched()
    assert ask_all(again, [way(provider)], range(10)) == ended
    assert (len(provider.batches), again.totals()[0].cached) == (1, 10)


def test_the_file_has_what_would_be_sent_and_no_key(batched: Opened, provider: Batching) -> None:
    ask_all(batched(), [way(provider, extra_body={"thinking": {"type": "disabled"}})], range(3))
    (upload,) = provider.uploads
    assert KEY.encode() not in upload
    lines = [json.loads(line) for line in upload.splitlines()]
    ask_all(batched(), [route(provider.url, temperature=0.5)], [0])
    sent = provider.asked[-1].body
    first = next(line for line in lines if line["body"]["messages"] == sent["messages"])
    assert first["body"] == sent | {"temperature": 0.0, "thinking": {"type": "disabled"}}
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}


def test_each_model_and_each_full_file_is_a_batch_of_its_own(batched: Opened, provider: Batching) -> None:
    calls = batched(batches={"max_requests": 8})
    ways = [way(provider), way(provider, model="openai/m-2")]
    jobs = [partial(settle, calls, [one], number) for one in ways for number in range(20)]
    assert all(end.startswith("{") for end in calls.gather(jobs))
    sizes = Counter((sent.lines[0]["body"]["model"], len(sent.lines)) for sent in provider.batches)
    assert sizes == {(model, size): count for model in ("m-1", "m-2") for size, count in ((8, 2), (4, 1))}
    calls = batched(batches={"max_mb": 0.005})
    del provider.batches[:]
    ask_all(calls, [way(provider)], range(100, 110))
    assert len(provider.batches) > 1
    assert all(len(upload) <= 5000 for upload in provider.uploads[-len(provider.batches) :])


def test_equal_questions_are_asked_once_and_an_answer_is_used_again(batched: Opened, provider: Batching) -> None:
    calls = batched()
    ended = ask_all(calls, [way(provider)], [1, 1, 2, 1])
    assert len(set(ended)) == 2
    (total,) = calls.totals()
    assert (len(provider.batches[0].lines), total.calls, total.cached) == (2, 2, 2)


def test_out_of_a_gather_a_question_waits_for_its_own_batch(batched: Opened, provider: Batching) -> None:
    assert settle(batched(), [way(provider)], 1).startswith("{")
    assert len(provider.batches) == 1


@pytest.mark.parametrize("ends", ["expired", "cancelled", "completed"])
@pytest.mark.parametrize("missing", ["singly", "fail"])
def test_what_a_batch_leaves_out_is_asked_singly_or_fails_for_now(
    batched: Opened, provider: Batching, tmp_path: Path, ends: str, missing: str
) -> None:
    provider.ends, provider.forgets = ends, lambda asked: asked.pictures[0][-20] % 5 == 0
    ended = ask_all(batched(batches={"missing": missing}), [way(provider)], range(30))
    without = 30 - sum(end.startswith("{") for end in ended)
    counts = ledger(tmp_path)
    assert provider.calls.count("create") == 1
    assert counts["answered"] + without == 30
    if missing == "singly":
        assert (without, len(provider.met)) == (0, 30)
        assert counts["transient"] > 0
        return
    assert 0 < counts["transient"] == without
    kinds = {end.partition(": batch")[0].partition(": batch_")[0] for end in ended if not end.startswith("{")}
    assert kinds == {"provider for now"}
    # A later run asks for what is missing, and for nothing else.
    provider.ends, provider.forgets = "completed", lambda _: False
    assert all(end.startswith("{") for end in ask_all(batched(), [way(provider)], range(30)))
    assert [len(sent.lines) for sent in provider.batches] == [30, without]


def test_after_its_deadline_a_batch_is_cancelled_and_what_it_answered_is_kept(
    batched: Opened, provider: Batching, tmp_path: Path
) -> None:
    provider.polls = 2
    calls = batched(batches={"deadline_h": 1e-9})
    assert all(end.startswith("{") for end in ask_all(calls, [way(provider)], range(12)))
    assert "cancel" in provider.calls
    assert ledger(tmp_path) == {"answered": 12, "transient": 6}
    assert calls.totals()[0].cost == pytest.approx(6 * COST / 2 + 6 * COST)


def test_what_does_not_end_though_it_was_cancelled_stops_and_is_never_asked_twice(
    batched: Opened, provider: Batching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_courier, "GRACE_S", 0.0)
    provider.polls = 10**6
    for _ in range(2):
        with pytest.raises(StoppedError, match="was cancelled and has not ended"):
            ask_all(batched(batches={"deadline_h": 1e-9}), [way(provider)], range(5))
    assert (len(provider.batches), provider.met) == (1, [])


def test_nobody_waits_where_nobody_is_to(batched: Opened, provider: Batching, tmp_path: Path) -> None:
    provider.polls = 3
    for _ in range(2):
        with pytest.raises(BatchesWaiting, match="1 batches with 9 requests are in flight") as caught:
            ask_all(batched(batches={"wait": False}), [way(provider)], range(9))
        assert caught.value.exit_code == 6
    (batch,) = batches(tmp_path / "answers.sqlite", "run")
    assert (batch.state, batch.told) == ("sent", "in_progress, 0 of 9 answered")
    # Asked singly, they still wait for the batch that has them.
    with pytest.raises(BatchesWaiting):
        ask_all(batched(batches={"wait": False}), [route(provider.url)], range(9))
    ended = ask_all(batched(batches={"wait": False}), [way(provider)], range(9))
    assert all(end.startswith("{") for end in ended)
    assert (len(provider.batches), len(provider.met)) == (1, 9)


def test_postponed_until_a_whole_run_has_asked(batched: Opened, provider: Batching) -> None:
    calls = batched()
    calls.postpones = True
    assert not calls.finish_batches()
    for numbers in (range(5), range(5, 9)):
        with pytest.raises(Postponed):
            ask_all(calls, [way(provider)], numbers)
    with pytest.raises(Postponed):
        settle(calls, [way(provider)], 9)
    assert calls.finish_batches()
    assert [len(sent.lines) for sent in provider.batches] == [10]
    assert all(end.startswith("{") for end in ask_all(calls, [way(provider)], range(10)))
    assert not calls.finish_batches()


def test_a_budget_cuts_batches_to_what_fits_then_stops(batched: Opened, provider: Batching) -> None:
    ways = [way(provider, max_tokens=100)]
    # Half the price of what 8 tokens of prompt, 1,600 of a picture and 100 of answer cost.
    forecast = (1_600 + 16 + 1_000) / 2e6
    calls = batched(budget=10 * forecast)
    ended: list[str] = []
    with pytest.raises(StoppedError, match=r"budget: \$0\.0.* is spent, and the next voter call may cost"):
        ended += ask_all(calls, ways, range(200))
    sizes = [len(sent.lines) for sent in provider.batches]
    assert 8 <= sizes[0] <= 10
    assert sum(sizes) < 200
    (total,) = calls.totals()
    assert total.cost == pytest.approx(sum(sizes) * COST / 2)
    assert 9 * forecast < total.cost <= 10 * forecast
    with pytest.raises(StoppedError, match="the next voter call may cost"):
        ask_all(batched(budget=forecast / 2), ways, [1_000])
    assert [len(sent.lines) for sent in provider.batches] == sizes


@pytest.mark.parametrize(
    ("refuses", "words"),
    [
        ({"upload": "401"}, "check the key in LOOPBACK_CRED"),
        ({"create": "402"}, "top up the account"),
        ({"create": "400 other"}, "unset `batch` of its routes"),
        ({"upload": "no model"}, "unset `batch` of its routes"),
        ({"upload": "503"}, "unset `batch` of its routes"),
    ],
)
def test_what_no_provider_takes_stops_in_one_line_and_is_resumed(
    batched: Opened, provider: Batching, tmp_path: Path, refuses: dict[str, str], words: str
) -> None:
    provider.refuses = refuses
    with pytest.raises(StoppedError) as caught:
        ask_all(batched(attempts=2), [way(provider)], range(6))
    assert words in str(caught.value)
    assert KEY not in str(caught.value)
    assert ledger(tmp_path) == {"fatal": 6}
    assert (provider.files, left(tmp_path), provider.met) == ({}, [], [])
    provider.refuses = {}
    assert all(end.startswith("{") for end in ask_all(batched(), [way(provider)], range(6)))


def test_a_batch_that_fails_as_a_whole_stops_with_the_providers_words(
    batched: Opened, provider: Batching, tmp_path: Path
) -> None:
    provider.ends = "failed"
    with pytest.raises(StoppedError, match="it failed: Enqueued token limit reached"):
        ask_all(batched(), [way(provider)], range(6))
    assert ledger(tmp_path) == {"fatal": 6}
    provider.ends = "completed"
    assert all(end.startswith("{") for end in ask_all(batched(), [way(provider)], range(6)))


def test_an_error_of_every_item_stops_once_all_are_settled(batched: Opened, provider: Batching, tmp_path: Path) -> None:
    provider.meets = lambda asked: "quota" if asked.pictures[0][-20] % 2 else "ok"
    with pytest.raises(StoppedError, match="top up the account"):
        ask_all(batched(), [way(provider)], range(12))
    counts = ledger(tmp_path)
    assert counts == {"answered": provider.met.count("ok"), "fatal": provider.met.count("quota")}
    provider.meets = None
    assert all(end.startswith("{") for end in ask_all(batched(), [way(provider)], range(12)))
    assert len(provider.batches[1].lines) == counts["fatal"]


def test_the_word_that_a_batch_began_is_lost_and_it_is_found(batched: Opened, provider: Batching) -> None:
    provider.stick = "create"
    calls = batched(attempts=2)
    assert all(end.startswith("{") for end in ask_all(calls, [way(provider, timeout_s=2)], range(7)))
    assert (len(provider.batches), calls.totals()[0].unknown) == (1, 0)


def killed(provider: Batching, folder: Path, when: Callable[[], bool]) -> None:
    """A process that asks 20 questions, killed."""
    order = {"settings": {"batches": {"poll_s": 0.05}}, "route": {"batch": True}, "questions": 20, "first": False}
    child = start(folder, url=provider.url, **order)
    wait_for(lambda: when() or child.poll() is not None)
    assert child.poll() is None, child.communicate()
    child.send_signal(signal.SIGKILL)
    child.communicate()


def test_killed_after_sending_the_next_run_polls_the_same_batch(
    batched: Opened, provider: Batching, tmp_path: Path
) -> None:
    provider.polls = 10**6
    killed(provider, tmp_path, lambda: provider.calls.count("look") > 2)
    assert ledger(tmp_path) == {"unknown": 20}
    provider.polls = 1
    ended = ask_all(batched(), [way(provider)], range(20))
    assert all(end.startswith("{") for end in ended)
    assert (len(provider.batches), len(provider.uploads), ledger(tmp_path)) == (1, 1, {"answered": 20})
    assert left(tmp_path) == []


def test_killed_before_its_id_was_known_a_batch_is_found_by_its_name(
    batched: Opened, provider: Batching, tmp_path: Path
) -> None:
    provider.stick = "create"
    killed(provider, tmp_path, lambda: len(provider.batches) == 1)
    assert [batch.state for batch in batches(tmp_path / "answers.sqlite", "run")] == ["sending"]
    provider.stick = ""
    assert all(end.startswith("{") for end in ask_all(batched(), [way(provider)], range(20)))
    assert (len(provider.batches), ledger(tmp_path)) == (1, {"answered": 20})


@pytest.mark.parametrize("case", ["never begun", "not listed"])
def test_killed_and_not_found_its_calls_are_unknown_and_asked_again(
    batched: Opened, provider: Batching, tmp_path: Path, case: str
) -> None:
    provider.stick = "upload" if case == "never begun" else "create"
    killed(provider, tmp_path, lambda: bool(provider.uploads if case == "never begun" else provider.batches))
    assert left(tmp_path) != []
    provider.stick, provider.refuses = "", {} if case == "never begun" else {"list": "no model"}
    assert all(end.startswith("{") for end in ask_all(batched(), [way(provider)], range(20)))
    assert ledger(tmp_path) == {"unknown": 20, "answered": 20}
    assert [batch.state for batch in batches(tmp_path / "answers.sqlite", "run")] == ["lost", "done"]
    assert left(tmp_path) == []


def test_killed_while_answers_come_in_all_are_settled_by_the_next_run(
    batched: Opened, provider: Batching, tmp_path: Path
) -> None:
    provider.stick = "fetch"
    killed(provider, tmp_path, lambda: "fetch" in provider.calls)
    provider.stick = ""
    assert all(end.startswith("{") for end in ask_all(batched(), [way(provider)], range(20)))
    assert (len(provider.batches), ledger(tmp_path)) == (1, {"answered": 20})


def test_a_batch_that_the_provider_forgot_stops_till_its_deadline(batched: Opened, provider: Batching) -> None:
    provider.polls = 3
    with pytest.raises(BatchesWaiting):
        ask_all(batched(batches={"wait": False}), [way(provider)], range(4))
    del provider.batches[:]
    with pytest.raises(StoppedError, match=r"does not know batch .*is it the account that sent it"):
        ask_all(batched(), [way(provider)], range(4))
    calls = batched(batches={"deadline_h": 1e-9})
    provider.polls = 0
    assert all(end.startswith("{") for end in ask_all(calls, [way(provider)], range(4)))
    assert (calls.totals()[0].unknown, len(provider.batches)) == (4, 1)


def test_withdrawn_while_in_flight_nothing_of_the_answer_is_kept(
    batched: Opened, provider: Batching, tmp_path: Path
) -> None:
    provider.polls = 3
    calls = batched(batches={"wait": False})
    with pytest.raises(BatchesWaiting):
        ask_all(calls, [way(provider)], range(4))
    gone = question(2).pictures[0].digest
    assert calls._ledger.forget([gone]) == ["loopback"]
    provider.polls = 0
    ask_all(batched(), [way(provider)], [0, 1, 3])
    assert len(stored(tmp_path)) == 3
    assert gone.encode() not in (tmp_path / "answers.sqlite").read_bytes()


def test_an_older_file_of_answers_learns_of_batches(batched: Opened, provider: Batching, tmp_path: Path) -> None:
    ask_all(batched(), [route(provider.url)], range(3))
    batched().close()
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        db.execute("ALTER TABLE ledger DROP COLUMN batch")
        db.execute("DROP TABLE batches")
        db.execute("DROP TABLE batched")
    assert batches(tmp_path / "answers.sqlite", "run") == []
    calls = batched()
    assert all(end.startswith("{") for end in ask_all(calls, [way(provider)], range(5)))
    assert (len(provider.batches[0].lines), calls.totals()[0].cached) == (2, 3)


@pytest.mark.slow
def test_pictures_are_never_all_in_memory(provider: Batching, tmp_path: Path) -> None:
    """150 pictures of 1.5 MB are 300 MB as a file."""
    order = {"questions": 150, "side": 708, "settings": {"in_flight": 4, "batches": {"poll_s": 0.1}}}
    way_of = {"batch": True, "pictures": "png", "timeout_s": 300}
    child = start(tmp_path, url=provider.url, route=way_of, **order)
    ended = json.loads(child.communicate(timeout=500)[0])
    assert all(end.startswith("{") for end in ended["ended"])
    assert sum(map(len, provider.uploads)) > 290e6
    assert len(provider.batches) == 1 + 3
    assert ended["grown_mib"] < 280
