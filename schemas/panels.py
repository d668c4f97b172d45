"""Panels of voters: the ones that ship, by name, and what a name stands for in a config."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field

from schemas.routes import Route, deciding
from schemas.sections import Adapter, AdapterField, Adapters, Section

_FILE: Final = Path(__file__).parent / "panels.yaml"


class PanelSpec(Section):
    """A panel of models: who, and what they are asked for."""

    granularity: Literal["fine", "coarse"]
    voters: tuple[str, ...] = Field(min_length=1)


class Shipped(Section):
    """What `panels.yaml` holds.

    Attributes:
        models: Name → ways to the model.
        panels: Name → panel of these models.
    """

    models: dict[str, tuple[Route, ...]]
    panels: dict[str, PanelSpec]


@cache
def shipped() -> Shipped:
    """The panels and models that ship."""
    return Shipped.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))


def model(name: str) -> dict[str, Any]:
    """The parameters of a model that ships, for any adapter that asks one: its name and routes, as plain values."""
    routes = shipped().models[name]
    return {"name": name, "routes": [route.model_dump(mode="json", exclude_defaults=True) for route in routes]}


def panel(name: str) -> list[dict[str, Any]]:
    """The voters of a panel that ships, as a config spells them out."""
    spec = shipped().panels[name]
    return [{"name": "mllm", "params": model(voter) | {"granularity": spec.granularity}} for voter in spec.voters]


def _asked_model(value: Any) -> Any:
    """An `mllm` adapter with `model`, the name of a shipped one, spelled out; what is given besides counts for more."""
    if not isinstance(value, dict) or value.get("name") != "mllm" or not isinstance(value.get("params"), dict):
        return value
    params = dict(value["params"])
    name = params.pop("model", None)
    if name is None:
        return value
    if name not in shipped().models:
        raise ValueError(f"unknown model '{name}', choose one of: {', '.join(shipped().models)}; or give its `routes`")
    return value | {"params": model(name) | params}


def _named(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_asked_model(voter) for voter in value]
    if not isinstance(value, str):
        return value
    if value not in shipped().panels:
        raise ValueError(f"unknown panel '{value}', choose one of: {', '.join(shipped().panels)}; or list its voters")
    return panel(value)


def _told_apart(value: Sequence[Adapter]) -> Sequence[Adapter]:
    """Entries that differ only in an address or a price are one voter, asked once."""
    seen = [json.dumps(deciding(adapter.model_dump(mode="json")), sort_keys=True) for adapter in value]
    if len(set(seen)) != len(seen):
        raise ValueError("two entries are the same voter: give one another `repeat`, or leave it out")
    called = [(adapter.label, adapter.params.get("granularity"), adapter.params.get("repeat", 0)) for adapter in value]
    for one in called:
        if called.count(one) > 1:
            raise ValueError(
                f"two voters are both called '{one[0]}', so no vote could tell them apart: give one a `name`"
            )
    return value


# An adapter; of a multimodal model that ships, the name will do: {name: mllm, params: {model: Gemini-4-Argon}}.
ModelField = Annotated[AdapterField, BeforeValidator(_asked_model)]
# Voters, or the name of a panel that ships.
Panel = Annotated[Adapters, AfterValidator(_told_apart), BeforeValidator(_named)]
