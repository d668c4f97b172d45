"""What prefect.yaml promises: the deployments, and parameters that a server takes and that mean the presets."""

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.options import load_config
from flows.places import CPU, GPU
from schemas.config import BuildConfig
from schemas.score_config import ScoreConfig

ROOT = Path(__file__).parents[2]
DEPLOYED = {one["name"]: one for one in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]}


def entry(name: str) -> Any:
    module, _, flow = DEPLOYED[name]["entrypoint"].partition(":")
    return getattr(importlib.import_module(module), flow)


def test_what_is_promised_is_there() -> None:
    promised = {"rebuild-benchmark", "grow-training-set", "open-review", "collect-review", "score-editors"}
    assert promised <= DEPLOYED.keys()
    for one in DEPLOYED.values():
        assert "fedbench" in one["tags"]  # by which the automations know our runs
        assert one["concurrency_limit"]["limit"] == 1  # a workspace has one builder
        assert one["work_pool"]["name"] in (CPU, GPU)
    assert DEPLOYED["rebuild-benchmark"]["schedules"][0]["cron"]
    assert DEPLOYED["collect-review"]["schedules"][0]["interval"]
    assert DEPLOYED["grow-training-set"]["work_pool"]["name"] == GPU


@pytest.mark.parametrize("name", sorted(DEPLOYED))
def test_a_server_takes_the_parameters(name: str) -> None:
    """A server knows the schema alone: where a config may have a bare name, a form must have it spelled out."""
    from prefect.utilities.schema_tools.validation import validate

    schema = entry(name).parameters.model_dump_for_openapi()
    errors = validate(DEPLOYED[name]["parameters"], schema, raise_on_error=False)
    assert errors == []


def test_the_training_deployment_is_the_preset() -> None:
    config = BuildConfig.model_validate(DEPLOYED["grow-training-set"]["parameters"]["config"])
    assert config == load_config("training")


def test_the_scores_need_no_key_and_no_extra() -> None:
    config = ScoreConfig.model_validate(DEPLOYED["score-editors"]["parameters"]["config"])
    assert not config.judges
    assert config.measure.distance is None


def test_the_automation_knows_all_flows() -> None:
    """A lost run of a flow that it does not know would be running for ever."""
    from flows.automations import FLOWS
    from flows.parts import Part, Where
    from tasks.pipeline import CANDIDATES, SCREENING

    assert {entry(name).name for name in DEPLOYED} <= set(FLOWS)
    assert {Part(segment, Where.HERE).name for segment in (SCREENING, CANDIDATES)} <= set(FLOWS)


def test_no_parameter_is_a_secret() -> None:
    words = yaml.safe_dump([one["parameters"] for one in DEPLOYED.values()]).lower()
    assert not [word for word in ("api_key", "token", "password", "secret") if word in words]


def fields(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """All fields of a form, with the dotted name they have."""
    return [
        (f"{name}.{field}", values)
        for name, definition in schema["definitions"].items()
        for field, values in definition.get("properties", {}).items()
    ]


def test_the_form_shows_every_default() -> None:
    """A field whose default is made at run time shows as empty in the UI."""
    schema = entry("grow-training-set").parameters.model_dump_for_openapi()
    required = {f"{name}.{one}" for name, value in schema["definitions"].items() for one in value.get("required", ())}
    assert [name for name, values in fields(schema) if "default" not in values and name not in required] == []
