"""Editors behind an address: the ones that ship, by name, and what a name stands for in a config."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import BeforeValidator, Field

from schemas.routes import Route
from schemas.sections import AdapterField, Section

NAME: Final = "api"
_FILE: Final = Path(__file__).parent / "hosted_editors.yaml"


class HostedEditor(Section):
    """One row of `hosted_editors.yaml`."""

    routes: tuple[Route, ...] = Field(min_length=1, description="Ways to the model, the preferred one first.")
    watermark: str = Field(default="", description="What its pictures are marked with; empty if nothing is known.")
    seeded: bool = Field(default=False, description="Whether the providers take a seed.")
    side: int = Field(default=1024, ge=64, le=4096, description="Pixels of the longer side that is sent, at most.")
    note: str = Field(default="", description="What a user should know: sizes it gives, terms, traps.")


@cache
def shipped_editors() -> dict[str, HostedEditor]:
    """The hosted editors that ship, by name."""
    rows = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["editors"]
    return {name: HostedEditor.model_validate(row) for name, row in rows.items()}


def spelled_out(params: Mapping[str, Any]) -> dict[str, Any]:
    """An `api` editor's parameters with `model`, the name of a shipped one, spelled out; what is given counts for more.

    Raises:
        ValueError: No editor of that name ships.
    """
    name = params.get("model")
    if not name:
        return dict(params)
    known = shipped_editors()
    if name not in known:
        raise ValueError(f"unknown hosted editor '{name}', choose one of: {', '.join(known)}; or give its `routes`")
    row = known[name].model_dump(mode="json", exclude_defaults=True, exclude={"note", "routes"})
    ways = [route.model_dump(mode="json", exclude_defaults=True) for route in known[name].routes]
    return {"name": name, "routes": ways, **row} | {key: value for key, value in params.items() if key != "model"}


def _named(value: Any) -> Any:
    if isinstance(value, dict) and value.get("name") == NAME and isinstance(value.get("params"), dict):
        return value | {"params": spelled_out(value["params"])}
    return value


# An editor; of a hosted one that ships, the name will do: {name: api, params: {model: nano-banana}}.
EditorField = Annotated[AdapterField, BeforeValidator(_named)]
