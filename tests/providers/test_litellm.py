"""Asking over real HTTP, through real litellm: what goes on the wire, what comes back, what an error means."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from schemas.routes import CallSettings, Route
from tasks.engine.calls import Calls
from tasks.engine.decode import encode_png
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.providers.litellm import Question, ask_model
from tests.providers.loopback import Loopback

KEY = "planted-5f2a9c-key"


class Answer(BaseModel, extra="forbid"):
    """What is asked for."""

    polarity: str


def picture(number: int, side: int = 64) -> Picture:
    pixels = np.random.default_rng(number).integers(0, 256, (side, side, 3), np.uint8)
    return Picture(sha256(encode_png(pixels)), pixels)


def question(number: int = 0, **changes: Any) -> Question:
    values = {"role": "voter", "prompt_sha256": "p" * 64, "system": "You judge.", "text": "Which polarity?"}
    return Question(**values | {"pictures": (picture(number),), "schema": Answer} | changes)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPBACK_CRED", KEY)  # a name that says nothing


def route(provider: Loopback, **changes: Any) -> Route:
    values = {"model": "openai/m-1", "provider": "loopback", "api_base": provider.url, "key_env": "LOOPBACK_CRED"}
    price = {"input_per_mtok": 1.0, "output_per_mtok": 10.0, "on": "2026-11-01"}
    return Route.model_validate(values | {"price": price, "timeout_s": 5} | changes)


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(key=KEY) as serving:
        yield serving


Opened = Callable[..., Calls]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Open the one store of the test, as a new session would; closes the one before."""
    held: list[Calls] = []

    def make(**settings: Any) -> Calls:
        for calls in held:
            calls.close()
        held.append(Calls(tmp_path / "answers.sqlite", CallSettings(backoff_s=0.01, **settings), "run"))
        return held[-1]

    yield make
    for calls in held:
        calls.close()


def test_what_goes_on_the_wire_and_what_comes_back(provider: Loopback, opened: Opened) -> None:
    shown = (picture(1), picture(2, 2048))
    way = route(provider, extra_body={"thinking": {"type": "disabled"}}, temperature=0.5, max_tokens=99)
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
