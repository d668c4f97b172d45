"""The panels that ship: whole, priced where known, chosen by a bare name, and refused before anything is spent."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.options import load_config
from schemas.panels import model, panel, shipped
from schemas.sections import Adapter
from tasks.engine.errors import ConfigError
from tasks.outside import check_outside
from tasks.pipeline import make_stages, open_run
from tasks.voters import VOTERS
from tests import fakes


def listed(voters: Sequence[Any]) -> str:
    """The option that lists a panel."""
    return f"verify.measure.panel={yaml.safe_dump(list(voters), default_flow_style=True, width=10_000)}"


PAPER = ["Gemini-2.5-Pro", "GLM-4.6V", "Kimi-K2.5", "ERNIE-5.0"]


@pytest.mark.parametrize("name", shipped().panels)
def test_a_panel_parses_and_is_odd(name: str) -> None:
    voters = panel(name)
    assert len(voters) % 2 == 1, "so that a majority is possible"
    for voter in voters:
        params = VOTERS.parse("mllm", voter["params"])
        assert params.granularity == shipped().panels[name].granularity  # type: ignore[attr-defined]
        for route in params.routes:  # type: ignore[attr-defined]
            assert route.family
            assert route.api_base or route.key_env
    families = [VOTERS.family("mllm", voter["params"]) for voter in voters]
    assert len(set(families)) == len(families), "five of one family would be one"


def test_the_papers_two_panels_differ_in_one_model() -> None:
    fine, coarse = ([voter["params"]["name"] for voter in panel(name)] for name in ("paper-fine", "paper-coarse"))
    assert fine == [*PAPER, "Step-3"]
    assert coarse == [*PAPER, "Doubao-Seed-1.6-Vision"]


def test_what_is_known_is_dated_and_what_is_not_is_not_made_up() -> None:
    models = shipped().models
    assert models["Gemini-2.5-Pro"][0].retires == date(2026, 12, 1)
    assert models["Kimi-K2.5"][0].retires == date(2026, 8, 31)
    assert models["ERNIE-5.0"][0].price is None
    for routes in models.values():
        for route in routes:
            assert route.price is None or route.price.as_of == date(2026, 11, 29)


@pytest.mark.parametrize("size", [1, 3, 5, 7, 9])
def test_panels_of_any_size_mixed_with_local_voters(size: int) -> None:
    names = list(shipped().models)
    remote = [{"name": "mllm", "params": model(name)} for name in names[: size - 1]]
    config = load_config("demo", None, [listed(["fer", *remote])])
    assert [voter.label for voter in config.verify.measure.panel] == ["fer", *names[: size - 1]]


def test_a_bare_name_is_spelled_out_and_can_be_changed() -> None:
    changes = ["verify.measure.panel.1.params.side=512", "screen.measure.label_panel=local-fine"]
    config = load_config("demo", None, ["verify.measure.panel=current", *changes])
    assert [voter.params.get("side") for voter in config.verify.measure.panel] == [None, 512, None, None, None]
    assert {voter.params["granularity"] for voter in config.screen.measure.label_panel} == {"fine"}
    assert load_config(None, None, ["verify.measure.panel=current"]) == load_config(
        None, None, [listed(panel("current"))]
    )


def test_an_unknown_panel_is_one_line_with_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("demo", None, ["verify.measure.panel=paper"])
    assert "unknown panel 'paper'" in str(caught.value)
    assert "paper-coarse" in str(caught.value)


def test_one_voter_at_two_addresses_is_one_voter() -> None:
    ways = [model("Qwen3-VL-8B at vLLM") for _ in range(2)]
    ways[1]["routes"][0] |= {"api_base": "http://127.0.0.1:9000/v1"}
    with pytest.raises(ConfigError, match="the same voter"):
        load_config("demo", None, [listed([{"name": "mllm", "params": way} for way in ways])])
    ways[1]["repeat"] = 1
    assert (
        len(load_config("demo", None, [listed([{"name": "mllm", "params": way} for way in ways])]).verify.measure.panel)
        == 2
    )


def test_a_missing_key_is_named_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = fakes.install()
    monkeypatch.setenv("GEMINI_API_KEY", "planted")
    monkeypatch.delenv("ZHIPU_API_KEY", raising=False)
    config = fakes.config("verify.measure.panel=paper-coarse", "acknowledge_external_api=true")
    with pytest.raises(ConfigError, match="ZHIPU_API_KEY") as caught:
        open_run(tmp_path, config)
    assert "planted" not in str(caught.value)
    assert world.asked == []
    assert not (tmp_path / "runs").exists()


def test_restricted_faces_go_to_a_local_server_only() -> None:
    fakes.install()
    for name, outside in (("local", False), ("paper-coarse", True), ("openrouter", True)):
        config = fakes.config(f"verify.measure.panel={name}")
        if outside:
            with pytest.raises(ConfigError, match="acknowledge_external_api"):
                check_outside(config, make_stages(config, {}))
        else:
            check_outside(config, make_stages(config, {}))


def test_a_voters_label_is_the_models_name() -> None:
    assert Adapter(name="fer").label == "fer"
    assert Adapter(name="mllm", params=model("GLM-4.6V")).label == "GLM-4.6V"
