"""A scoring config from the command line: editors and judges by name, a file, `--set`; every mistake in one line."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from flows.options import assign, merge, read_yaml
from schemas.panels import model, shipped
from schemas.score_config import ScoreConfig
from tasks.editors import EDITORS
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.places import shown

_CALLED = re.compile(r"^([\w.+-]+)=([a-z_]+)(?=$|:)")
_SLUG = 40


def score_config(
    dataset: Path,
    *,
    editors: Sequence[str] = (),
    judges: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    file: Path | None = None,
    sets: Sequence[str] = (),
) -> ScoreConfig:
    """The config that a file, then the options, then `--set` make.

    Args:
        dataset: The published data set.
        editors: As `--editor` takes them.
        judges: As `--judge` takes them.
        options: Fields of `ScoreConfig` that were given; dotted names lie deeper.
        file: A YAML file.
        sets: `a.b=value` options.

    Raises:
        ConfigError: Says which and where.
    """
    values: dict[str, Any] = {"name": "unnamed", "editors": [], "measure": {}, "cut": {}, "calls": {}}
    values |= {"dataset": str(dataset.absolute())}
    if file is not None:
        values = merge(values, read_yaml(file))
    if editors:
        values["editors"] = [editor_of(text) for text in editors]
    if judges:
        values["judges"] = [judge_of(text) for text in judges]
    for name, value in (options or {}).items():
        assign(values, f"{name}={yaml.safe_dump(value, default_flow_style=True).strip().removesuffix('...').strip()}")
    for option in sets:
        assign(values, option)
    if not values["editors"]:
        raise ConfigError("nothing says which editor is scored", "give --editor, such as warp or copy")
    config = _valid(values)
    return config if values["name"] != "unnamed" else config.model_copy(update={"name": _name(config)})


def editor_of(text: str) -> dict[str, Any]:
    """`warp`, `warp:intensity=0.3,shading=false`, `lazy=warp:intensity=0.3`, or YAML with `name` and `params`.

    Raises:
        ConfigError: It is none of them.
    """
    if text.lstrip().startswith("{"):
        adapter = _yaml(text, "--editor")
        return {"called": str(adapter.pop("called", "")) or _called(adapter), "adapter": adapter}
    match = _CALLED.match(text)
    name, _, told = (text[match.end(1) + 1 :] if match else text).partition(":")
    params: dict[str, Any] = {}
    for pair in filter(None, re.split(r",(?=\w+=)", told)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--editor {text}: '{pair}' is no parameter", "write --editor warp:intensity=0.3")
        assign(params, f"{key}={value}")
    adapter = {"name": name, "params": params}
    return {"called": match[1] if match else _called(adapter), "adapter": adapter}


def judge_of(text: str) -> dict[str, Any]:
    """A model that ships, by name, or YAML with `name` and `params` of a judge.

    Raises:
        ConfigError: It is neither.
    """
    if text.lstrip().startswith("{"):
        return _yaml(text, "--judge")
    if text not in shipped().models:
        known = ", ".join(sorted(shipped().models))
        raise ConfigError(f"unknown judge '{text}'", f"choose one of: {known}; or spell out its routes in YAML")
    return {"name": "mllm", "params": model(text)}


def _called(adapter: Mapping[str, Any]) -> str:
    """What tables call an editor: by name and parameters, but for those that say where things lie on this machine."""
    name, params = str(adapter.get("name", "")), dict(adapter.get("params", {}))
    local = EDITORS.adapter_class(name).local
    label = str(params.pop("name", "") or name)
    told = [
        f"{key}={value}"
        for key, value in sorted(params.items())
        if key not in local and not isinstance(value, list | dict)
    ]
    return f"{label}:{','.join(told)}" if told else label


def _name(config: ScoreConfig) -> str:
    """A run's name: of the data set's folder, which is name and edition, and of the editors."""
    folder = Path(shown(config.dataset))
    called = "-".join(editor.called for editor in config.editors)
    slug = re.sub(r"[^a-z0-9.]+", "-", called.lower()).strip("-.")
    if len(slug) > _SLUG or not slug:
        slug = fingerprint([editor.model_dump(mode="json") for editor in config.editors])[:8]
    of = re.sub(r"[^a-z0-9.]+", "-", f"{folder.parent.name}-{folder.name}".lower()).strip("-.")
    return f"score-{of[-30:].strip('-.')}-{slug}"


def _yaml(text: str, option: str) -> dict[str, Any]:
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # a date that is none is a ValueError
        raise ConfigError(f"{option} {text}: it is not YAML", "write {name: NAME, params: {KEY: VALUE}}") from None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise ConfigError(f"{option} {text}: it has no name", "write {name: NAME, params: {KEY: VALUE}}")
    if not isinstance(value.get("params", {}), dict):
        raise ConfigError(f"{option} {text}: its params are no mapping", "write {name: NAME, params: {KEY: VALUE}}")
    return value


def _valid(values: dict[str, Any]) -> ScoreConfig:
    try:
        return ScoreConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"unknown key '{where}'", "the sections are in docs/scoring.md") from None
        wrong = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{where}: {wrong}" if where else wrong, "see docs/scoring.md") from None
