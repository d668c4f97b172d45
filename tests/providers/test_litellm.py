"""Asking over real HTTP, through real litellm: what goes on the wire, what comes back, what an error means."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from schemas.outcomes import FailureKind
from tasks.engine.account import accounts, dollars_of, notes, runs_of
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, FatalError, ItemFailed, PermanentError, StoppedError, TransientError
from tasks.providers import loop, pictures
from tasks.providers.errors import classed
from tasks.providers.litellm import ask_model, request_of
from tests.providers.asking import KEY, KEY_ENV, Answer, ask_all, picture, question, route
from tests.providers.loopback import Loopback


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(key=KEY) as serving:
        yield serving


Opened = Callable[..., Calls]


def test_what_goes_on_the_wire_and_what_comes_back(provider: Loopback, opened: Opened) -> None:
    shown = (picture(1), picture(2, 2048))
    way = route(provider.url, extra_body={"thinking": {"type": "disabled"}}, temperature=0.5, max_tokens=99)
    said = ask_model(opened(), [way], question(pictures=shown, follow_up=("{bad", "JSON only, please")))
    asked = provider.asked[0]
    assert asked.text == "You judge.\nWhich polarity?\n{bad\nJSON only, please"
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user", "assistant", "user"]
    assert [data[:3] for data in asked.pictures] == [b"\xff\xd8\xff"] * 2
    assert (asked.body["model"], asked.body["temperature"], asked.body["max_tokens"]) == ("m-1", 0.5, 99)
    assert asked.body["thinking"] == {"type": "disabled"}
    assert (
        asked.body["response_format"]["json_schema"]["schema"]["properties"] == Answer.model_json_schema()["properties"]
    )
    assert (said.finish, said.refusal, said.model) == ("stop", "", "m-1")
    assert json.loads(said.text)["polarity"] in ("positive", "neutral", "negative")
    assert json.loads(said.raw)["text"] == said.text
    (total,) = opened().totals()
    assert (total.calls, total.tokens_in, total.tokens_out, total.images) == (1, 700, 12, 2)
    assert total.cost == pytest.approx((700 * 1 + 12 * 10) / 1e6)


def test_a_request_is_known_again_by_what_decides_its_answer() -> None:
    way, asked = route("http://localhost:1/v1"), question(1)
    key = request_of(way, asked).key()
    other_ways = [{"model": "openai/m-2"}, {"provider": "x"}, {"extra_body": {"seed": 1}}, {"temperature": None}]
    other_ways += [{"max_tokens": 9}, {"structured": "none"}, {"pictures": "png"}]
    others = [request_of(route("http://localhost:1/v1", **change), asked) for change in other_ways]
    changes: list[dict[str, Any]] = [{"role": "judge"}, {"prompt_sha256": "q" * 64}, {"system": ""}, {"text": "?"}]
    changes += [{"pictures": (picture(2),)}, {"pictures": ()}, {"repeat": 1}, {"side": 512}]
    changes += [{"follow_up": ("a", "b")}, {"follow_up": ("a", "c")}]
    others += [request_of(way, question(1, **change)) for change in changes]
    assert len({key, *(request.key() for request in others)}) == 1 + len(others)
    same = route("http://other:2/v1", timeout_s=1, price=None, limit={"concurrency": 1}, key_env=None, family="f")
    assert request_of(same, asked).key() == key
    held_to_nothing = request_of(route("http://localhost:1/v1", structured="none"), asked)
    assert request_of(way, question(1, schema=None)).key() == held_to_nothing.key()
    assert asked.pictures[0].digest in request_of(way, asked).images


def test_the_next_route_is_asked_where_one_stays_unreachable(opened: Opened, provider: Loopback) -> None:
    down, up = route("http://127.0.0.1:9/v1", provider="down"), route(provider.url)
    calls = opened(attempts=2)
    first = ask_model(calls, [down, up], question(1))
    assert [total.calls for total in calls.totals()] == [3]
    # It is this model's answer from now on, whichever route comes first.
    assert ask_model(calls, [down, up], question(1)) == first
    assert ask_model(calls, [up, down], question(1)) == first
    assert len(provider.met) == 1
    provider.always = "400 policy"
    with pytest.raises(ItemFailed) as caught:
        ask_model(calls, [up, down], question(2))
    assert (caught.value.kind, caught.value.retryable) == (FailureKind.REFUSED, False)
    provider.always = "503"
    with pytest.raises(ItemFailed) as caught:
        ask_model(calls, [up, down], question(3))
    assert (caught.value.kind, caught.value.retryable) == (FailureKind.PROVIDER, True)


def test_a_keyless_address_is_sent_nobody_elses_key(
    opened: Opened, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(StoppedError, match="key_env of the route"):
        ask_model(opened(), [route(provider.url, key_env=None)], question())
    assert provider.met == ["401"]


def test_a_missing_key_is_named_before_anything_is_sent(
    opened: Opened, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_ENV)
    with pytest.raises(ConfigError, match=KEY_ENV):
        ask_model(opened(), [route(provider.url)], question())
    assert provider.met == []


def test_a_replay_needs_no_key(opened: Opened, provider: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    said = ask_model(opened(), [route(provider.url)], question())
    monkeypatch.delenv(KEY_ENV)
    assert ask_model(opened(replay_only=True), [route(provider.url)], question()) == said
    with pytest.raises(StoppedError, match="no stored answer"):
        ask_model(opened(replay_only=True), [route(provider.url)], question(1))
    assert len(provider.met) == 1


def test_refusals_that_were_paid_are_answers(opened: Opened, provider: Loopback) -> None:
    said = {}
    for number, fault in enumerate(["filtered", "refusal field", "no content", "truncated"]):
        provider.always = fault
        said[fault] = ask_model(opened(), [route(provider.url)], question(number))
    assert (said["filtered"].text, said["filtered"].finish, said["filtered"].refusal) == ("", *["content_filter"] * 2)
    assert said["refusal field"].refusal == "I can't help with identifying people."
    assert (said["no content"].text, said["no content"].refusal) == ("", "")
    assert (said["truncated"].finish, said["truncated"].refusal) == ("length", "")
    assert opened().totals()[0].unpriced == 0


def test_a_word_for_a_key_is_left_where_it_is_a_word(
    opened: Opened, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ENV, "text")
    provider.key, provider.answer = "text", lambda _: "a text"
    said = ask_model(opened(), [route(provider.url)], question())
    assert (said.text, json.loads(said.raw)["text"]) == ("a text", "a text")


def test_without_a_price_the_cost_is_what_the_provider_says_else_unknown(opened: Opened, provider: Loopback) -> None:
    calls = opened()
    ask_model(calls, [route(provider.url, price=None)], question(1))
    provider.cost = 0.25
    ask_model(calls, [route(provider.url, price=None)], question(2))
    ask_model(calls, [route(provider.url)], question(3))
    (total,) = calls.totals()
    assert (total.unpriced, total.cost) == (1, pytest.approx(0.25 + 520e-6))


def test_the_account_tells_what_a_bill_may_differ_by(opened: Opened, provider: Loopback, tmp_path: Path) -> None:
    calls = opened()
    ask_all(calls, [route(provider.url)], range(20))
    ask_all(calls, [route(provider.url)], range(5))
    provider.always = "400 other"
    ask_all(calls, [route(provider.url)], [77])
    (held,) = accounts(tmp_path / "answers.sqlite", "run")
    assert (held.total.calls, held.total.cached, held.total.failed) == (21, 5, 1)
    assert (held.answered, held.refused, held.failed) == (20, 0, 1)
    assert (held.provider, held.priced) == ("loopback", ("2026-11-01",))
    assert held.dollars == held.total.cost > 0
    assert held.p50_s is not None
    assert held.p95_s is not None
    assert 0 < held.p50_s <= held.p95_s
    assert [note.split()[0] for note in notes([held])] == ["1", "costs"]
    assert accounts(tmp_path / "answers.sqlite", "another") == []
    assert notes([]) == []


def test_the_account_tells_providers_refusals_and_unknown_prices_apart(
    opened: Opened, provider: Loopback, tmp_path: Path
) -> None:
    calls = opened()
    free = route(provider.url, provider="elsewhere", price=None)
    ask_all(calls, [route(provider.url)], range(3))
    ask_all(calls, [free], range(10, 14))
    provider.always = "400 policy"
    ask_all(calls, [free], [77])
    ask_all(calls, [free], [77])
    elsewhere, loopback = accounts(tmp_path / "answers.sqlite", "run")
    assert (elsewhere.provider, loopback.provider) == ("elsewhere", "loopback")
    assert elsewhere.total.model == loopback.total.model
    assert (elsewhere.total.calls, elsewhere.answered, elsewhere.refused, elsewhere.total.cached) == (5, 4, 1, 1)
    assert elsewhere.troubles == {"refused": 1, "unpriced": 4}
    assert elsewhere.dollars is None, "an unknown price is no price of 0"
    assert elsewhere.plain()["dollars"] is None
    assert "cost" not in elsewhere.plain()
    assert dollars_of([elsewhere, loopback]) == loopback.dollars
    assert dollars_of([elsewhere]) is None
    assert runs_of(tmp_path / "answers.sqlite") == ["run"]


def test_a_picture_is_encoded_once_per_size(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures._cache.clear()
    encoded = []
    encode = pictures._encode
    monkeypatch.setattr(pictures, "_encode", lambda *args: encoded.append(args) or encode(*args))  # type: ignore[func-returns-value]
    shown, together = picture(5, 300), threading.Barrier(8)

    def ask() -> str:
        together.wait(30)
        return pictures.data_url(shown, 1024, "jpeg")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(encoded) == 1
    assert pictures.data_url(shown, 200, "png").startswith("data:image/png;base64,")
    assert len(encoded) == 2


def test_pictures_are_scaled_down_and_never_up() -> None:
    for side, wanted in ((1024, (60, 90)), (45, (30, 45))):
        tall = np.full((60, 90, 3), (200, 30, 90), np.uint8)
        shown = pictures._encode(type(picture(1))("0" * 64, tall), side, "png")
        pixels = cv2.imdecode(np.frombuffer(shown, np.uint8), cv2.IMREAD_COLOR)
        assert pixels.shape[:2] == wanted
        assert (pixels[0, 0] == (90, 30, 200)).all()


def test_threads_that_come_first_share_one_loop() -> None:
    loop._loop.cache_clear()
    together, loops = threading.Barrier(8), []

    async def here() -> None:
        import asyncio

        loops.append(asyncio.get_running_loop())

    def ask() -> None:
        together.wait(30)
        loop.run(here())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(loops), len(set(loops))) == (8, 1)


QUOTA = "You exceeded your current quota, please check your plan and billing details."
DAY = '{"code": 429, "status": "RESOURCE_EXHAUSTED", "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}'
MINUTE = '{"code": 429, "status": "RESOURCE_EXHAUSTED", "quotaId": "PerMinutePerProject", "retryDelay": "34s"}'


@pytest.mark.parametrize(
    ("status", "message", "headers", "wanted"),
    [
        (429, "Rate limit reached for requests", {}, (TransientError, None, True)),
        (429, "slow down", {"retry-after": "7"}, (TransientError, 7.0, True)),
        (429, "Please try again in 1.5s.", {}, (TransientError, 1.5, True)),
        (429, MINUTE + QUOTA, {}, (TransientError, 34.0, True)),
        (
            503,
            "busy",
            {"retry-after": "Mon, 30 Nov 2026 10:00:30 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"},
            (TransientError, 30.0, True),
        ),
        (503, "busy", {"retry-after": "soon"}, (TransientError, None, True)),
        (429, "daily limit", {"retry-after": "86400"}, FatalError),
        (None, "Connection error.", {}, (TransientError, None, False)),
        (408, "Request timed out", {}, (TransientError, None, False)),
        (200, "Unable to get json response - Expecting value", {}, (TransientError, None, False)),
        (500, "Internal server error", {}, (TransientError, None, False)),
        (529, "Overloaded", {}, (TransientError, None, True)),
        (429, QUOTA, {}, FatalError),
        (429, "insufficient_quota", {}, FatalError),
        (429, "余额不足或无可用资源包,请充值。", {}, FatalError),
        (429, DAY, {}, FatalError),
        (402, "Insufficient credits", {}, FatalError),
        (401, "Incorrect API key provided", {}, FatalError),
        (400, "API key not valid. Please pass a valid API key. API_KEY_INVALID", {}, FatalError),
        (403, "Your project does not have access", {}, FatalError),
        (404, "The model `m` does not exist", {}, FatalError),
        (400, "Unknown model: m. See the list", {}, FatalError),
        (400, "invalid temperature: only 1 is allowed for this model", {}, FatalError),
        (400, "'response_format.type' json_schema is unavailable", {}, FatalError),
        (400, "content_policy_violation: rejected by our safety system", {}, FailureKind.REFUSED),
        (400, "The response was filtered: triggering content management policy", {}, FailureKind.REFUSED),
        (403, "Input was flagged by moderation", {}, FailureKind.REFUSED),
        (400, "data_inspection_failed: inappropriate content", {}, FailureKind.REFUSED),
        (400, "系统检测到输入或生成内容可能包含不安全或敏感内容", {}, FailureKind.REFUSED),
        (400, "Image is too small", {}, FailureKind.PROVIDER),
        (413, "Request entity too large", {}, FailureKind.PROVIDER),
    ],
)
def test_what_an_error_means(status: int | None, message: str, headers: dict[str, str], wanted: Any) -> None:
    error = classed(route("http://localhost:1/v1"), status, message, headers)
    assert message in str(error)
    if isinstance(error, TransientError):
        assert (type(error), error.retry_after, error.overload) == wanted
    elif isinstance(error, PermanentError):
        assert error.kind is wanted
    else:
        assert isinstance(error, FatalError)
        assert wanted is FatalError
        assert error.hint
