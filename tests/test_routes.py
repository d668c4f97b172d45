"""Routes: what of them is identity, what is refused before anything is asked."""

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.routes import NOT_IDENTITY, Route, deciding, routes_in
from tasks.engine.errors import ConfigError
from tasks.providers.routes import check_routes

WAY: dict[str, Any] = {"model": "openai/m-1", "provider": "acme", "api_base": "http://localhost:1/v1"}
OTHER: dict[str, Any] = {
    "model": "openai/m-2",
    "provider": "other",
    "api_base": "http://localhost:2/v1",
    "key_env": "OTHER_KEY",
    "extra_body": {"seed": 1},
    "temperature": None,
    "max_tokens": 9,
    "structured": "none",
    "pictures": "png",
    "timeout_s": 1.0,
    "limit": {"concurrency": 1},
    "batch": True,
    "price": {"input_per_mtok": 1, "output_per_mtok": 2, "as_of": "2026-11-01"},
    "retires": "2026-12-01",
    "family": "m",
}


def test_only_what_decides_an_answer_is_identity() -> None:
    assert set(OTHER) == set(Route.model_fields)
    for field, value in OTHER.items():
        config = {"panel": [{"name": "mllm", "params": {"routes": [WAY]}}], "route": WAY}
        changed = copy.deepcopy(config)
        changed["panel"][0]["params"]["routes"][0][field] = value
        changed["route"][field] = value
        assert (deciding(changed) == deciding(config)) == (field in NOT_IDENTITY), field


def test_routes_are_found_at_any_depth() -> None:
    config = {"a": [{"params": {"routes": [WAY, OTHER]}}], "judge": {"route": OTHER}, "route": None}
    assert [route.provider for route in routes_in(config)] == ["acme", "other", "other"]


def test_the_provider_is_the_models_own_unless_named() -> None:
    assert Route(model="gemini/gemini-2.5-pro", key_env="K").provider == "gemini"
    with pytest.raises(ValidationError, match="must name its provider"):
        Route(model="openai/m", api_base="http://localhost/v1")
    with pytest.raises(ValidationError, match="must name the variable of its key"):
        Route(model="gemini/gemini-2.5-pro")


@pytest.mark.parametrize(
    "wrong",
    [
        {"key_env": "sk-1234-secret"},
        {"api_base": "http://user:sk-1234-secret@localhost:1/v1"},
        {"api_base": "http://sk-1234-secret@localhost:1/v1"},
        {"api_base": "http://localhost:1/v1?key=sk-1234-secret"},
        {"api_base": "localhost:1/v1"},
        {"api_base": "ftp://localhost/v1"},
        {"api_base": ""},
    ],
)
def test_a_route_has_a_variables_name_and_an_address_and_no_secret(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Route.model_validate(WAY | wrong)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", " ")
    with pytest.raises(ConfigError, match="the variable OTHER_KEY is empty or not set"):
        check_routes([Route.model_validate(OTHER)])
    monkeypatch.setenv("OTHER_KEY", "k")
    check_routes([Route.model_validate(WAY), Route.model_validate(OTHER)])


def test_batches_of_another_shape_are_refused_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K", "k")
    with pytest.raises(ConfigError, match=r"gemini/m cannot be asked in batches.*leave `batch` out"):
        check_routes([Route(model="gemini/m", key_env="K", batch=True)])


def test_a_price_says_what_a_batch_costs() -> None:
    price = Route.model_validate(OTHER).price
    assert price is not None
    assert (price.cost(10**6, 10**6, 0), price.cost(10**6, 10**6, 0, batch=True)) == (3, 1.5)


def test_two_limits_of_one_provider_are_refused() -> None:
    check_routes([])
    with pytest.raises(ConfigError, match="provider 'acme' have different limits"):
        check_routes([Route.model_validate(WAY), Route.model_validate(WAY | {"limit": {"concurrency": 2}})])
