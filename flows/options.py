"""A config from a preset, a file and `--set` options, with every mistake in one line."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args

import yaml
from pydantic import BaseModel, ValidationError

import schemas
from schemas.config import BuildConfig
from schemas.panels import panel, shipped
from schemas.screening import SCREEN_PROFILES
from schemas.sections import Adapter
from tasks.engine.errors import ConfigError
from tasks.sources import POOLS

PRESETS: Final = Path(schemas.__file__).parent / "presets"


def presets() -> list[str]:
    """The presets that ship."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def load_config(preset: str | None = None, file: Path | None = None, sets: Sequence[str] = ()) -> BuildConfig:
    """The config that a preset, then a file, then `--set a.b.c=value` options make; later ones win key by key.

    Raises:
        ConfigError: Unknown preset or key, unreadable file, wrong type or impossible value: says which and where.
    """
    values: dict[str, Any] = BuildConfig().model_dump(mode="json")
    if preset is not None:
        if preset not in presets():
            raise ConfigError(f"unknown preset '{preset}'", f"choose one of: {', '.join(presets())}")
        values = merge(values, read_yaml(PRESETS / f"{preset}.yaml"))
    if file is not None:
        values = merge(values, read_yaml(file))
    for option in sets:
        assign(values, option)
    return anchored(validate(values))


def anchored(config: BuildConfig) -> BuildConfig:
    """The config with its paths (pools, `exclude`) made absolute, so that it means the same wherever it is read."""
    pools = []
    for pool in config.pools:
        local = POOLS.adapter_class(pool.name).local
        paths = {name: str(Path(value).absolute()) for name, value in pool.params.items() if name in local and value}
        pools.append(pool.model_copy(update={"params": pool.params | paths}))
    exclude = tuple(str(Path(place).absolute()) for place in config.exclude)
    return config.model_copy(update={"pools": tuple(pools), "exclude": exclude})


def validate(values: Any) -> BuildConfig:
    """A `BuildConfig` of plain values.

    Raises:
        ConfigError: The first mistake: its key, what is wrong, and the keys that are known there.
    """
    try:
        return BuildConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(
                f"unknown key '{where}'", f"known there: {', '.join(_known(first['loc'][:-1]))}"
            ) from None
        wrong = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{where}: {wrong}", f"it is {first['input']!r}"[:120]) from None


class _Strict(yaml.SafeLoader):
    """YAML in which a key that stands twice is a mistake, where PyYAML lets the later one win in silence.

    And a key is a word: PyYAML would read `on` as True.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set[str]()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"'{key.value}' stands twice", key.start_mark)
            seen.add(key.value)
            if key.tag == "tag:yaml.org,2002:bool":
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, or a ConfigError with the line."""
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), _Strict)
    except OSError as error:
        raise ConfigError(f"cannot read the config {path}: {error.strerror}", "check --config") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: bad bytes, a 13th month
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}", "check that line") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path} holds no mapping", "see the presets in schemas/presets")
    return value


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`; mappings merge, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def assign(values: dict[str, Any], option: str) -> None:
    """Carry out one `a.b.0.c=value` option in place; the value is YAML, so `null`, `3` and `[a, b]` work.

    Raises:
        ConfigError: It has no `=`, is no YAML, or steps into something that is not there.
    """
    path, equals, text = option.partition("=")
    if not equals or not path:
        raise ConfigError(f"--set {option}: no '='", "write --set rank.cut.top_k=3")
    try:
        value = yaml.load(text, _Strict)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(f"--set {option}: the value is not YAML", "quote it") from None
    node: Any = values
    *parents, last = path.split(".")
    for step, following in pairwise([*parents, last]):
        place = _place(node, step, option)
        if isinstance(node, dict) and place not in node:
            node[place] = {}
        if isinstance(node[place], str):
            node[place] = _spelled_out(node[place], following)
        node = node[place]
        if not isinstance(node, dict | list):
            raise ConfigError(f"--set {option}: '{step}' is a plain value, nothing lies below it", "see --print-config")
    node[_place(node, last, option)] = value


def _spelled_out(name: str, following: str) -> Any:
    """What a bare name stands for: an adapter, a panel, or a profile of screening."""
    if following in Adapter.model_fields:
        return {"name": name}
    if following.isdecimal() and name in shipped().panels:
        return panel(name)
    return dict(SCREEN_PROFILES[name]) if name in SCREEN_PROFILES else name


def _place(node: dict[str, Any] | list[Any], step: str, option: str) -> Any:
    if isinstance(node, dict):
        return step
    if not step.isdecimal() or int(step) >= len(node):
        raise ConfigError(f"--set {option}: '{step}' is no place in a list of {len(node)}", "places start at 0")
    return int(step)


def _known(location: Sequence[int | str]) -> list[str]:
    model: Any = BuildConfig
    for part in location:
        if isinstance(part, int) and get_args(model):
            model = get_args(model)[0]  # what a list is of
            continue
        field = model.model_fields.get(str(part)) if isinstance(model, type) and issubclass(model, BaseModel) else None
        if field is None:
            return sorted(Adapter.model_fields)
        model = field.annotation
    is_section = isinstance(model, type) and issubclass(model, BaseModel)
    return sorted(model.model_fields if is_section else Adapter.model_fields)
