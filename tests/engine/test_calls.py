"""Calls: never paid twice, never past a limit or budget, and a ledger that agrees with the provider's own count."""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.outcomes import FailureKind
from schemas.routes import CallSettings, ProviderLimit
from tasks.engine.calls import Calls
from tasks.engine.errors import (
    ConfigError,
    FatalError,
    ItemFailed,
    PermanentError,
    ProviderError,
    StoppedError,
    TransientError,
    WorkspaceError,
)
from tasks.engine.ledger import Reply, Request, Total, clean
from tasks.engine.limiter import Limiter

ASK = Request("voter", "acme", "m-1", {"temperature": 0}, "p" * 64, ("a" * 64,), 0)


class Provider:
    """A fake provider: plays a script of replies and errors (the last for ever) and keeps its own count."""

    def __init__(self, *script: Reply | Exception, hold_s: float = 0.0) -> None:
        self.script, self.hold_s = list(script), hold_s
        self.calls = self.active = self.peak = 0
        self._lock = threading.Lock()

    def send(self) -> Reply:
        with self._lock:
            self.calls += 1
            self.active += 1
            self.peak = max(self.peak, self.active)
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        time.sleep(self.hold_s)
        with self._lock:
            self.active -= 1
        if isinstance(step, Exception):
            raise step
        return step


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(round(seconds, 6))
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Calls]]:
    """Open the one store of the test, as a new session would; closes the one before."""
    opened: list[Calls] = []

    def _make(run: str = "", **settings: object) -> Calls:
        for calls in opened:
            calls.close()
        opened.append(
            Calls(
                tmp_path / "calls" / "calls.sqlite",
                CallSettings.model_validate(settings),
                run,
                clock=clock,
                sleep=clock.sleep,
                uniform=lambda: 1.0,
            )
        )
        return opened[-1]

    yield _make
    for calls in opened:
        calls.close()


def total(calls: Calls) -> Total:
    (only,) = calls.totals()
    return only


def test_every_field_moves_the_key() -> None:
    others = [
        replace(ASK, role="judge"),
        replace(ASK, provider="other"),
        replace(ASK, model="m-2"),
        replace(ASK, params={"temperature": 1}),
        replace(ASK, params={}),
        replace(ASK, prompt_sha256="q" * 64),
        replace(ASK, images=("b" * 64,)),
        replace(ASK, images=("a" * 64, "b" * 64)),
        replace(ASK, images=("b" * 64, "a" * 64)),
        replace(ASK, repeat=1),
    ]
    assert len({request.key() for request in [ASK, *others]}) == 1 + len(others)
    moved = {name for other in others for name in Request.__slots__ if getattr(other, name) != getattr(ASK, name)}
    assert moved == set(Request.__slots__)
    assert replace(ASK, params={"a": 1, "b": 2}).key() == replace(ASK, params={"b": 2, "a": 1}).key()


def test_no_call_no_file(make: Callable[..., Calls], tmp_path: Path) -> None:
    calls = make()
    assert calls.totals() == []
    calls.close()
    assert list(tmp_path.iterdir()) == []


def test_a_stored_answer_is_not_paid_again(make: Callable[..., Calls]) -> None:
    provider = Provider(Reply("{raw", 10, 2, 1, 0.04, "2026-11-01"))
    assert make().ask(ASK, provider.send) == "{raw"
    calls = make(refresh=True)
    assert [calls.ask(ASK, provider.send) for _ in range(2)] == ["{raw"] * 2
    assert provider.calls == 1
    assert total(calls) == Total("voter", "m-1", 1, 2, 0, 0, 0, 0.04, 10, 2, 1)


def test_the_same_question_from_many_threads_is_sent_once(make: Callable[..., Calls]) -> None:
    provider, calls = Provider(Reply("yes"), hold_s=0.05), make()
    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(lambda _: calls.ask(ASK, provider.send), range(64))) == {"yes"}
    assert provider.calls == 1
    assert (total(calls).calls, total(calls).cached, total(calls).unpriced) == (1, 63, 1)


def test_waiting_threads_get_the_error_of_the_one_that_asked(make: Callable[..., Calls]) -> None:
    provider, calls = Provider(TransientError("busy"), hold_s=0.2), make(attempts=1)
    together = threading.Barrier(4)

    def ask(_: int) -> str:
        together.wait()
        with pytest.raises(ItemFailed) as caught:
            calls.ask(ASK, provider.send)
        return str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(4))) == {"busy (1 attempts)"}
    assert provider.calls == 1


@pytest.mark.parametrize("when", ["sent", "answered"])
def test_killed(make: Callable[..., Calls], when: str) -> None:
    """Between intent and answer: counted unknown and asked again. After the answer: not asked again."""
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            if when == "sent":
                make().ask(ASK, lambda: os.kill(os.getpid(), signal.SIGKILL))  # type: ignore[arg-type, return-value]
            make().ask(ASK, lambda: Reply("before", cost=0.5))
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    calls, provider = make(), Provider(Reply("after", cost=0.25))
    before = total(calls)
    answer = calls.ask(ASK, provider.send)
    after = total(calls)
    if when == "sent":
        assert (answer, provider.calls) == ("after", 1)
        assert (before.calls, before.unknown) == (1, 1)
        assert (after.calls, after.unknown, after.cached, after.cost) == (2, 1, 0, 0.25)
    else:
        assert (answer, provider.calls) == ("before", 0)
        assert (after.calls, after.unknown, after.cached, after.cost) == (1, 0, 1, 0.5)


def test_a_crash_of_the_adapter_is_unknown_and_asked_again(make: Callable[..., Calls]) -> None:
    provider, calls = Provider(KeyError("choices"), Reply("ok")), make()
    with pytest.raises(KeyError):
        calls.ask(ASK, provider.send)
    assert calls.ask(ASK, provider.send) == "ok"
    assert (total(calls).calls, total(calls).unknown, total(calls).failed) == (2, 1, 0)


@pytest.mark.parametrize("kind", [FailureKind.REFUSED, FailureKind.PROVIDER])
def test_a_permanent_error_is_kept(make: Callable[..., Calls], kind: FailureKind) -> None:
    provider = Provider(PermanentError("no faces of minors", kind=kind))
    for _session in range(2):
        calls = make()
        with pytest.raises(ItemFailed, match="no faces of minors") as caught:
            calls.ask(ASK, provider.send)
        assert (caught.value.kind, caught.value.retryable) == (kind, False)
    assert provider.calls == 1
    assert (total(calls).calls, total(calls).failed, total(calls).cached) == (1, 1, 1)


def test_refresh_asks_a_refused_request_once_more(make: Callable[..., Calls]) -> None:
    provider = Provider(PermanentError("no"), PermanentError("still no"), Reply("yes"))
    with pytest.raises(ItemFailed, match="no"):
        make().ask(ASK, provider.send)
    calls = make(refresh=True)
    for _ in range(2):
        with pytest.raises(ItemFailed, match="still no"):
            calls.ask(ASK, provider.send)
    assert provider.calls == 2
    assert make(refresh=True).ask(ASK, provider.send) == "yes"
    assert make().ask(ASK, provider.send) == "yes"
    assert provider.calls == 3


def test_transient_errors_back_off_then_fail_for_now(make: Callable[..., Calls], clock: Clock) -> None:
    provider = Provider(TransientError("503"))
    calls = make(attempts=5, backoff_s=1, max_backoff_s=3)
    with pytest.raises(ItemFailed, match=r"503 \(5 attempts\)") as caught:
        calls.ask(ASK, provider.send)
    assert (caught.value.kind, caught.value.retryable) == (FailureKind.PROVIDER, True)
    assert clock.sleeps == [1, 2, 3, 3]
    assert (provider.calls, total(calls).calls, total(calls).failed) == (5, 5, 5)
    provider.script = [Reply("ok")]
    assert calls.ask(ASK, provider.send) == "ok"


def test_retry_after_is_honoured_by_the_whole_provider(make: Callable[..., Calls], clock: Clock) -> None:
    provider = Provider(TransientError("429", retry_after=17.5), Reply("ok"))
    calls = make(backoff_s=1)
    sent_at: list[float] = []

    def send() -> Reply:
        sent_at.append(clock.now)
        return provider.send()

    assert calls.ask(ASK, send) == "ok"
    assert sent_at == [100.0, 117.5]
    # Shorter than the back-off: the back-off counts.
    provider.script = [TransientError("429", retry_after=0), Reply("ok")]
    assert calls.ask(replace(ASK, repeat=1), send) == "ok"
    assert clock.sleeps == [17.5, 1]


def test_one_request_told_to_wait_pauses_the_others() -> None:
    clock = Clock()
    limiter = Limiter(ProviderLimit(), clock, clock.sleep)
    with pytest.raises(TransientError), limiter.turn():
        raise TransientError("429", retry_after=9)
    with limiter.turn():
        assert clock.now == 109
    with limiter.turn():
        assert clock.sleeps == [9]


def test_a_fatal_error_stops_all_but_stored_answers(make: Callable[..., Calls]) -> None:
    provider = Provider(Reply("known"), FatalError("401 wrong key", "set ACME_KEY"))
    calls = make()
    calls.ask(ASK, provider.send)
    for repeat in (1, 2):
        with pytest.raises(StoppedError, match=r"acme: 401 wrong key \(set ACME_KEY\)") as caught:
            calls.ask(replace(ASK, repeat=repeat), provider.send)
        assert caught.value.exit_code == 4
    assert calls.ask(ASK, provider.send) == "known"
    assert provider.calls == 2
    provider.script = [Reply("resumed")]
    assert make().ask(replace(ASK, repeat=1), provider.send) == "resumed"


def test_concurrency_is_never_exceeded(make: Callable[..., Calls]) -> None:
    provider = Provider(Reply("ok"), hold_s=0.002)
    calls, limit = make(), ProviderLimit(concurrency=3)
    together = threading.Barrier(3)

    def send() -> Reply:
        # Nobody gets an answer before three are in flight, so the limit is reached, too.
        together.wait(30)
        return provider.send()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: calls.ask(replace(ASK, repeat=n), send, limit=limit), range(60)))
    assert provider.calls == 60
    assert provider.peak <= 3


def test_the_window_halves_once_an_overload_and_grows_back() -> None:
    clock = Clock()
    limiter = Limiter(ProviderLimit(concurrency=8), clock, clock.sleep)
    together = threading.Barrier(8)

    def overloaded(_: int) -> None:
        with suppress(TransientError), limiter.turn():
            together.wait()
            raise TransientError("429", overload=True)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(overloaded, range(8)))
    assert limiter.window == 4
    seen = []
    for _ in range(4 + 5 + 6 + 7 + 8):
        with limiter.turn():
            seen.append(limiter.window)
    assert (seen, limiter.window) == ([4] * 4 + [5] * 5 + [6] * 6 + [7] * 7 + [8] * 8, 8)
    with pytest.raises(TransientError), limiter.turn():
        raise TransientError("time-out")
    assert limiter.window == 8
    for _ in range(5):
        with pytest.raises(TransientError), limiter.turn():
            raise TransientError("429", overload=True)
    assert limiter.window == 1


def test_requests_per_minute_are_queued(make: Callable[..., Calls], clock: Clock) -> None:
    calls, provider, limit = make(), Provider(Reply("ok")), ProviderLimit(requests_per_minute=30)
    for repeat in range(4):
        calls.ask(replace(ASK, repeat=repeat), provider.send, limit=limit)
    calls.ask(replace(ASK, provider="other"), provider.send)
    assert clock.now == 106
    with pytest.raises(ConfigError, match="two routes of provider 'acme' have different limits"):
        calls.ask(replace(ASK, repeat=9), provider.send)


def test_tokens_per_minute_are_queued_and_corrected(make: Callable[..., Calls], clock: Clock) -> None:
    calls, limit = make(), ProviderLimit(tokens_per_minute=600)
    for repeat, really in enumerate([100, None, 40]):
        provider = Provider(Reply("ok", really, 0 if really else None))
        calls.ask(replace(ASK, repeat=repeat), provider.send, limit=limit, tokens=50)
    # Forecast 50 (5 s), really 100: the second waits 10 s; it does not say, so the third waits 5 s more.
    assert clock.now == 115
    calls.ask(replace(ASK, repeat=3), Provider(Reply("ok")).send, limit=limit, tokens=50)
    assert clock.now == 119


def test_gather_keeps_the_order_and_asks_at_once(make: Callable[..., Calls]) -> None:
    calls, together = make(in_flight=4), threading.Barrier(4)

    def job(number: int) -> int:
        together.wait(30)
        return number * number

    assert calls.gather([lambda n=n: job(n) for n in range(8)]) == [n * n for n in range(8)]  # type: ignore[misc]
    nested = calls.gather([lambda: calls.gather([lambda: 1, lambda: 2]) for _ in range(9)])
    assert nested == [[1, 2]] * 9
    assert calls.gather([]) == []


def test_gather_begins_nothing_after_a_stop(make: Callable[..., Calls]) -> None:
    calls, begun, provider = make(in_flight=2), [], Provider(Reply("ok"), FatalError("401"))

    def job(number: int) -> str:
        begun.append(number)
        return calls.ask(replace(ASK, repeat=number), provider.send)

    with pytest.raises(StoppedError, match="401"):
        calls.gather([lambda n=n: job(n) for n in range(200)])  # type: ignore[misc]
    assert provider.calls <= 3
    assert len(begun) <= 6, "two in flight: what each had begun, and at most what it took before the word came"
    assert total(calls).unknown == 0


def test_replay_only_sends_nothing(make: Callable[..., Calls]) -> None:
    provider = Provider(Reply("stored"))
    make().ask(ASK, provider.send)
    calls = make(replay_only=True)
    assert calls.ask(ASK, provider.send) == "stored"
    with pytest.raises(StoppedError, match="no stored answer"):
        calls.ask(replace(ASK, repeat=1), provider.send)
    assert provider.calls == 1


def test_budget_stops_before_the_call(make: Callable[..., Calls]) -> None:
    provider = Provider(Reply("ok", cost=0.1))
    for _session in range(2):
        calls = make(budget=0.3)
        for repeat in range(3):
            assert calls.ask(replace(ASK, repeat=repeat), provider.send) == "ok"
        with pytest.raises(StoppedError) as caught:
            calls.ask(replace(ASK, repeat=3), provider.send)
        assert "budget: $0.3000 of $0.3000 is spent" in str(caught.value)
        assert "raise budget and run again" in str(caught.value)
    assert provider.calls == 3
    assert make(budget=0.4).ask(replace(ASK, repeat=3), provider.send) == "ok"
    assert make(budget=0.4, run="another").ask(replace(ASK, repeat=4), provider.send) == "ok"


def test_role_budget_estimate_and_unknown_prices(make: Callable[..., Calls]) -> None:
    provider = Provider(Reply("ok"))
    calls = make(role_budgets={"voter": 1.0})
    for repeat in range(3):
        calls.ask(replace(ASK, repeat=repeat), provider.send)
    with pytest.raises(StoppedError, match=r"role_budgets\.voter: .* may cost \$1\.5000 \(3 answers of unknown price"):
        calls.ask(replace(ASK, repeat=3), provider.send, estimate=1.5)
    assert calls.ask(replace(ASK, role="judge"), provider.send, estimate=1.5) == "ok"
    assert [each.unpriced for each in calls.totals()] == [1, 3]


def test_budget_holds_under_threads(make: Callable[..., Calls]) -> None:
    """Forecasts in flight are set aside; a cheaper bill frees them, so that the whole budget is used."""
    provider = Provider(Reply("ok", cost=0.1), hold_s=0.002)
    calls = make(budget=1.0)

    def ask(repeat: int) -> bool:
        try:
            return bool(calls.ask(replace(ASK, repeat=repeat), provider.send, estimate=0.2 if repeat < 4 else 0.1))
        except StoppedError:
            return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(ask, range(40))) == 10
    assert provider.calls == 10
    assert total(calls).cost == pytest.approx(1.0)


def test_the_ledger_agrees_with_the_provider(make: Callable[..., Calls], tmp_path: Path) -> None:
    lock, counts = threading.Lock(), {"calls": 0, "errors": 0, "tokens": 0, "cost": 0.0, "unpriced": 0}

    def sender(repeat: int) -> Callable[[], Reply]:
        tries = iter(range(9))

        def send() -> Reply:
            first = next(tries) == 0
            with lock:
                counts["calls"] += 1
                fault: ProviderError | None = None
                if repeat % 3 == 0 and first:
                    fault = TransientError("503", overload=True)
                elif repeat % 7 == 1:
                    fault = PermanentError("no")
                if fault:
                    counts["errors"] += 1
                    raise fault
                priced = repeat % 5 != 0
                counts["tokens"] += repeat
                counts["unpriced"] += not priced
                counts["cost"] += 0.01 if priced else 0
            return Reply("ok", repeat, 1, 0, 0.01 if priced else None, "2026-11-01" if priced else None)

        return send

    calls = make()

    def ask(repeat: int) -> str:
        try:
            return calls.ask(replace(ASK, repeat=repeat), sender(repeat))
        except ItemFailed:
            return ""

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(100)))
    sums = total(calls)
    assert (sums.calls, sums.failed, sums.unknown) == (counts["calls"], counts["errors"], 0)
    assert (sums.tokens_in, sums.unpriced) == (counts["tokens"], counts["unpriced"])
    assert sums.cost == pytest.approx(counts["cost"])
    assert sums.tokens_out == sum(map(bool, answers))
    rows = sqlite3.connect(tmp_path / "calls/calls.sqlite").execute("SELECT count(*), max(attempt) FROM ledger")
    assert rows.fetchone() == (counts["calls"], 2)


def test_secrets_stay_out(make: Callable[..., Calls], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-abcdef")
    monkeypatch.setenv("acme_token", "sk-abcdef-and-more")
    monkeypatch.setenv("EMPTY_SECRET", "")
    message = "bad key sk-abcdef-and-more,\n not sk-abcdef. " + "x" * 240 + " then sk-abcdef " + "y" * 99
    calls = make(attempts=1)
    for repeat, error in enumerate([PermanentError(message), TransientError(message), FatalError(message, message)]):
        with pytest.raises((ItemFailed, StoppedError)) as caught:
            calls.ask(replace(ASK, repeat=repeat), Provider(error).send)
        assert "sk-abc" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
    files = list((tmp_path / "calls").iterdir())
    assert len(files) == 4
    assert not any(b"sk-abc" in file.read_bytes() for file in files)
    assert any(b"bad key ***, not ***." in file.read_bytes() for file in files)
    assert len(clean(message)) == 300


def test_an_unusable_store_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a database, however long one reads it" * 99)
    (tmp_path / "folder").mkdir()
    for path in ("file", "folder", "file/below"):
        calls, provider = Calls(tmp_path / path, CallSettings()), Provider(Reply("ok"))
        with pytest.raises(WorkspaceError, match=str(tmp_path)) as caught:
            calls.ask(ASK, provider.send)
        assert "\n" not in str(caught.value)
        assert caught.value.hint
        assert provider.calls == 0


def test_a_second_writer_is_turned_away_and_a_reader_is_not(make: Callable[..., Calls], tmp_path: Path) -> None:
    first = make()
    first.ask(ASK, Provider(Reply("ok")).send)
    second = Calls(tmp_path / "calls" / "calls.sqlite", CallSettings())
    with pytest.raises(WorkspaceError, match="in use"):
        second.ask(ASK, Provider(Reply("ok")).send)
    assert second.totals() == first.totals()
    first.close()
    assert second.ask(ASK, Provider(Reply("other")).send) == "ok"
    second.close()
