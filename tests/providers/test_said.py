"""A provider that says its caller's key wherever it can, and counts what nobody can count."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tasks.engine.calls import Calls
from tasks.providers.litellm import ask_model
from tasks.providers.said import dollars_in, tokens_in, without_key
from tests.providers.asking import KEY, question, route, settle
from tests.providers.drawing import edit_all, editor, way
from tests.providers.loopback import Asked, Loopback
from tests.providers.loopback_images import ImageLoopback

Opened = Callable[..., Calls]
FALSE: Final = (None, "12", "x", True, -1, 0, 1.5, math.nan, math.inf, 10**30, [400], {"n": 400})


class Odd(Loopback):
    """Answers as ever, but for `changes` of the body and `usage` of what it counts."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.changes: dict[str, Any] = {}
        self.usage: dict[str, Any] = {}

    def _body(self, asked: Asked, met: str) -> dict[str, Any]:
        body = super()._body(asked, met)
        return body | self.changes | {"usage": body["usage"] | self.usage}


def test_a_key_is_blotted_out_wherever_it_stands() -> None:
    said = {"id": f"a-{KEY}", KEY: [KEY, {"deep": KEY}, 7, None], "n": 1.5}
    assert without_key(said, KEY) == {"id": "a-***", "***": ["***", {"deep": "***"}, 7, None], "n": 1.5}
    assert without_key(said, None) == without_key(said, "short") == said


def test_a_count_that_cannot_be_true_is_none() -> None:
    assert [tokens_in({"n": value}, "n") for value in FALSE] == [None] * len(FALSE)
    assert (tokens_in({"n": 0}, "n", least=0), tokens_in({"b": 3}, "a", "b"), tokens_in({}, "a")) == (0, 3, None)
    false = [value for value in FALSE if value not in (0, 1.5, 10**30)]
    assert [dollars_in({"cost": value}) for value in false] == [None] * len(false)
    assert [dollars_in({"cost": value}) for value in (0, 1.5)] == [0.0, 1.5]
    assert dollars_in({}) is None


def test_the_key_that_a_provider_says_is_not_in_its_stored_answer(opened: Opened, tmp_path: Path) -> None:
    with Odd(key=KEY) as provider:
        provider.changes, provider.usage = {"id": f"for {KEY}", "model": f"m of {KEY}"}, {"note": KEY}
        said = ask_model(opened(), [route(provider.url)], question())
        assert said.model == "m of ***"
    with ImageLoopback(key=KEY) as drawer:
        drawer.dated, drawer.usage = f"m of {KEY}", drawer.usage | {"note": KEY}
        edit_all(opened(), editor(way(drawer.url)), [1])
        assert drawer.met == ["ok"]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"m of ***" in written
    assert KEY.encode() not in written


@pytest.mark.parametrize("usage", [{"cost": "abc"}, {"cost": -5.0}, {"cost": math.nan}, {"cost": math.inf}])
def test_a_price_that_is_none_makes_no_budget_grow(opened: Opened, usage: dict[str, Any]) -> None:
    with Odd(key=KEY) as provider:
        provider.usage = usage
        calls = opened()
        assert settle(calls, [route(provider.url, price=None)], 1).startswith("{")
        (total,) = calls.totals()
        assert (total.cost, total.unpriced, total.tokens_in) == (0.0, 1, 400)


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": None, "completion_tokens": None}, {"completion_tokens": None}, {"prompt_tokens": -(10**6)},
     {"prompt_tokens": 10**30}],
)  # fmt: skip
def test_an_answer_of_unknown_length_has_no_known_price(opened: Opened, usage: dict[str, Any]) -> None:
    with Odd(key=KEY) as provider:
        provider.usage = usage
        calls = opened()
        assert settle(calls, [route(provider.url)], 1).startswith("{")
        (total,) = calls.totals()
        assert (total.cost, total.unpriced) == (0.0, 1)


def test_a_picture_whose_tokens_nobody_counts_has_no_known_price(opened: Opened) -> None:
    with ImageLoopback(key=KEY) as drawer:
        drawer.usage = {"input_tokens": "many", "output_tokens": -1}
        calls = opened()
        by_token = {"input_per_mtok": 1.0, "output_per_mtok": 10.0, "as_of": "2026-11-29"}
        (end,) = edit_all(calls, editor(way(drawer.url, price=by_token)), [1])
        assert len(end) == 64
        assert calls.totals()[0].unpriced == 1
