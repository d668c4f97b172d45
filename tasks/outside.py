"""The adapters a build uses: whether each can work, and which send faces of restricted pools to an outside service."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import BaseModel

from schemas.config import BuildConfig
from schemas.sections import Adapter
from tasks.boards import BOARDS
from tasks.describers import CHECKERS, DESCRIBERS
from tasks.editors import EDITORS
from tasks.engine.errors import ConfigError
from tasks.engine.registry import Registry
from tasks.engine.stage import Stage
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.sources import redistributable
from tasks.voters import VOTERS

# Where the adapters of a stage's config are registered, by the field that names them.
BY_FIELD: Final[dict[str, Registry[Any]]] = {
    "faces": ANALYZERS,
    "identity": EMBEDDERS,
    "label_panel": VOTERS,
    "editor": EDITORS,
    "panel": VOTERS,
    "describer": DESCRIBERS,
    "board": BOARDS,
    "checker": CHECKERS,
}


def adapters_in(params: BaseModel) -> Iterator[tuple[str, Adapter]]:
    """Every adapter of a stage's `measure` section, however deep in it, with the field that names it."""
    for field in type(params).model_fields:
        value = getattr(params, field)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Adapter):
                yield field, one
            elif isinstance(one, BaseModel):
                yield from adapters_in(one)


def check_adapters(stages: Iterable[Stage[Any, Any]]) -> None:
    """Refuse, before anything is spent, what no adapter could be made of.

    Raises:
        ConfigError: What the adapter's own check says.
    """
    for stage in stages:
        for field, spec in adapters_in(stage.measure_params):
            BY_FIELD[field].check(spec.name, spec.params)


def check_outside(config: BuildConfig, stages: Iterable[Stage[Any, Any]]) -> None:
    """Refuse a build that would send pictures of a restricted pool to an outside service without a word.

    Raises:
        ConfigError: Names the adapter, the pool and the switch. Nothing was called before.
    """
    restricted = [pool.name for pool in config.pools if not redistributable(pool.name)]
    if config.acknowledge_external_api or not restricted:
        return
    for stage in stages:
        for field, spec in adapters_in(stage.measure_params):
            if BY_FIELD[field].sends_outside(spec.name, spec.params):
                raise ConfigError(
                    f"{BY_FIELD[field].kind} '{spec.label}' of stage '{stage.name}' sends pictures to an outside "
                    f"service, and the licence of pool '{restricted[0]}' does not allow them to be passed on",
                    "if yours does, set acknowledge_external_api: true; else choose a local adapter",
                )
