"""What was run, in rows for people: every adapter by its role, and every threshold of every cut."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from schemas.config import BuildConfig
from schemas.sections import Adapter
from tasks.editors import EDITORS

STAGES: Final = ("screen", "generate", "verify", "rank", "caption", "review", "instruct", "publish")


@dataclass(frozen=True)
class Part:
    """An adapter at work: `role` is its place ("editor"), `params` its parameters as "name=value" words."""

    stage: str
    role: str
    name: str
    params: str


@dataclass(frozen=True)
class Limit:
    """A parameter that is no adapter. `half` is "measure" or "cut"; `changed` says it is not the default."""

    stage: str
    half: str
    name: str
    value: str
    changed: bool
    about: str


def parts(config: BuildConfig) -> list[Part]:
    """Every adapter of a build, in the order the data flows."""
    found = [Part("sources", "pool", pool.name, _words(pool.params)) for pool in config.pools]
    for stage in STAGES:
        measure = getattr(config, stage).measure
        for role in type(measure).model_fields:
            # Top-ups may bring further editors.
            value = tuple(measure.editors.values()) if role == "editor" else getattr(measure, role)
            adapters = value if isinstance(value, tuple) else (value,)
            found += [
                Part(stage, role.replace("_", " "), adapter.name, _words(adapter.params))
                for adapter in adapters
                if isinstance(adapter, Adapter)
            ]
    return found


def limits(config: BuildConfig) -> list[Limit]:
    """Every other parameter of a build, in the order the data flows."""
    found: list[Limit] = []
    for stage in STAGES:
        section = getattr(config, stage)
        found += _limits(stage, "measure", section.measure)
        found += _limits(stage, "cut", section.cut)
    return found


def tries_out(config: BuildConfig) -> bool:
    """Whether an editor was tuned against a voter that judges it, so that no pass rate says anything of quality."""
    editors = [EDITORS.adapter_class(editor.name) for editor in config.generate.measure.editors.values()]
    return any(voter.name in editor.tuned_against for voter in config.verify.measure.panel for editor in editors)


def _limits(stage: str, half: str, section: BaseModel) -> Iterator[Limit]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Adapter) or (isinstance(value, tuple) and any(isinstance(one, Adapter) for one in value)):
            continue
        if "Adapter" in str(field.annotation):
            continue  # an empty list of adapters
        if name == "top_up" and not value:
            continue
        yield Limit(stage, half, name, _word(value), value != field.default, field.description or "")


def _words(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={_word([route['model'] for route in value] if name == 'routes' else value)}"
        for name, value in sorted(params.items())
    )


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple | list):
        return ", ".join(str(one) for one in value) or "all"
    return f"{value:g}" if isinstance(value, float) else str(value)
