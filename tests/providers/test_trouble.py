"""A provider that fails as real ones do, over real HTTP through real litellm: all settles, every call is counted."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.engine.calls import Calls
from tasks.engine.errors import StoppedError
from tests.providers.asking import KEY, KEY_ENV, ask_all, picture, route, settle
from tests.providers.loopback import ANSWERED, FAULTS, PERMANENT, TRANSIENT, Loopback

Opened = Callable[..., Calls]


def ledger(folder: Path) -> Counter[str]:
    """Attempts by what became of them."""
    with sqlite3.connect(folder / "answers.sqlite") as db:
        return Counter(outcome for (outcome,) in db.execute("SELECT outcome FROM ledger WHERE NOT cached"))


def start(folder: Path, **order: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.providers.asking", str(folder), json.dumps(order)]
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.Popen(command, cwd=root, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(condition: Callable[[], bool], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


def test_a_fifth_of_all_calls_fails_and_every_question_settles(opened: Opened, tmp_path: Path) -> None:
    questions = range(400)
    with Loopback(seed=1, share=0.2) as provider:
        ways = [route(provider.url, timeout_s=6)]
        ended = ask_all(opened(), ways, questions)
        met = Counter(provider.met)
        assert set(met) == {"ok", *FAULTS}, "the seed leaves a fault out"
        # The ledger is the provider's own count, to the call.
        assert ledger(tmp_path) == {
            "answered": met["ok"] + sum(met[fault] for fault in ANSWERED),
            "transient": sum(met[fault] for fault in TRANSIENT),
            "permanent": sum(met[fault] for fault in PERMANENT),
        }
        kinds = Counter("answer" if end.startswith("{") else end.partition(":")[0] for end in ended)
        assert kinds == {
            "answer": met["ok"] + sum(met[fault] for fault in ANSWERED),
            "refused": met["400 policy"],
            "provider": met["400 other"],
        }
        (total,) = opened().totals()
        assert (total.calls, total.unknown) == (len(provider.met), 0)
        assert total.tokens_in == 400 * kinds["answer"]
        # Again: nothing is asked.
        assert ask_all(opened(), ways, questions) == ended
        assert len(provider.met) == total.calls
    # And without the provider, whatever was answered; a stored error is an answer, too.
    replay = opened(replay_only=True)
    assert ask_all(replay, ways, questions) == ended
    with pytest.raises(StoppedError, match="no stored answer"):
        settle(replay, ways, 10_000)


def test_what_stays_down_fails_for_now_and_is_asked_by_the_next_run(opened: Opened, tmp_path: Path) -> None:
    with Loopback() as provider:
        provider.always = "503"
        ways = [route(provider.url)]
        assert settle(opened(attempts=3), ways, 0).startswith("provider for now: 503")
        assert (len(provider.met), ledger(tmp_path)["transient"]) == (3, 3)
        provider.always = None
        assert settle(opened(), ways, 0).startswith("{")


def test_killed_with_500_in_flight_only_those_without_an_answer_are_asked_again(tmp_path: Path, opened: Opened) -> None:
    with Loopback() as provider:
        provider.stick_after = 101
        child = start(tmp_path, url=provider.url, questions=700, settings={"in_flight": 500})
        wait_for(lambda: provider.active >= 500 or child.poll() is not None)
        assert child.poll() is None, child.communicate()
        # All answers that were sent are also stored.
        wait_for(lambda: ledger(tmp_path)["answered"] == 101)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        calls = opened()
        (total,) = calls.totals()
        assert (total.calls, total.unknown) == (len(provider.met), 500)
        before = {asked.pictures for asked in provider.asked[:101]}
        provider.stick_after = None
        del provider.asked[:]
        ended = ask_all(calls, [route(provider.url)], range(700))
        assert all(end.startswith("{") for end in ended)
        assert len(provider.asked) == 700 - 100
        assert not before & {asked.pictures for asked in provider.asked}
        (total,) = calls.totals()
        assert (total.calls, total.unknown, total.cached) == (len(provider.met), 500, 100)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("401", KEY_ENV),
        ("402", "top up the account"),
        ("quota", "top up the account"),
        ("no model", "openai/m-1"),
        ("temperature", "temperature, structured and extra_body"),
        ("long wait", "asks to wait 86400 s"),
    ],
)
def test_what_no_retry_mends_stops_in_one_line_and_is_resumed(
    opened: Opened, tmp_path: Path, fault: str, words: str
) -> None:
    with Loopback() as provider:
        ways = [route(provider.url)]
        calls = opened(in_flight=8)
        ask_all(calls, ways, range(20))
        provider.always = fault
        with pytest.raises(StoppedError) as caught:
            ask_all(calls, ways, range(200))
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert len(provider.met) <= 20 + 2 * 8
        assert ledger(tmp_path)["fatal"] == len(provider.met) - 20
        provider.always = None
        assert all(end.startswith("{") for end in ask_all(opened(), ways, range(60)))
        assert Counter(provider.met)["ok"] == 60


def test_the_budget_holds_with_64_in_flight(opened: Opened) -> None:
    cost, budget = (400 * 1 + 12 * 10) / 1e6, 0.25
    with Loopback(delay_s=1) as provider:
        ways = [route(provider.url, max_tokens=100)]
        calls = opened(budget=budget)
        with pytest.raises(StoppedError, match=r"budget: \$0\.24.* of \$0\.2500 is spent"):
            ask_all(calls, ways, range(700))
        paid = len(provider.met) * cost
        # The forecast of one call is all that may be left.
        assert budget - 0.003 <= paid <= budget
        (total,) = calls.totals()
        assert total.cost == pytest.approx(paid)
        # A stored answer costs nothing, and the next new one would pass the budget still.
        assert settle(opened(budget=budget), ways, 0).startswith("{")
        with pytest.raises(StoppedError, match="budget"):
            settle(opened(budget=budget), ways, 9_999)
        assert provider.peak > 16


def test_a_planted_key_is_written_nowhere(tmp_path: Path) -> None:
    """The provider says it in errors, answers and headers; a run of many faults ends with a revoked key."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    with Loopback(seed=3, share=0.4, answer=lambda _: json.dumps({"polarity": KEY}), key=KEY) as provider:
        first = start(folder, url=provider.url, questions=60, settings={"backoff_s": 0.01}, route={"timeout_s": 2})
        out = [*first.communicate(timeout=120)]
        provider.always = "401"
        second = start(folder, url=provider.url, questions=70)
        out += second.communicate(timeout=60)
        assert KEY_ENV in json.loads(out[2])["stopped"]
        assert Counter(provider.met)["401"] >= 1
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file()) + "".join(out).encode()
    assert b"Incorrect API key provided: ***" in written
    assert b"polarity" in written
    assert KEY.encode() not in written


@pytest.mark.slow
def test_memory_is_bounded_by_what_is_in_flight(tmp_path: Path) -> None:
    """64 in flight, pictures of 1.5 MB: the 500 that are asked in all would be 2 GB on the wire."""
    with Loopback(delay_s=0.3) as provider:
        assert len(provider.met) == 0
        child = start(tmp_path, url=provider.url, questions=500, side=708, route={"pictures": "png", "timeout_s": 300})
        ended = json.loads(child.communicate(timeout=500)[0])
        assert len(provider.asked[0].pictures[0]) > 1_500_000
        assert provider.peak > 32
    assert all(end.startswith("{") for end in ended["ended"])
    assert ended["grown_mib"] < 600


def test_pictures_are_told_apart() -> None:
    assert picture(1).digest != picture(2).digest
