"""What may leave this machine: faces of restricted pools go to an outside service only if the user says so."""

from collections.abc import Iterable
from typing import Any, Final

from schemas.config import BuildConfig
from tasks.boards import BOARDS
from tasks.describers import DESCRIBERS
from tasks.editors import EDITORS
from tasks.engine.errors import ConfigError
from tasks.engine.registry import Registry
from tasks.engine.stage import Stage
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.sources import redistributable
from tasks.voters import VOTERS

BY_KIND: Final[dict[str, Registry[Any]]] = {
    registry.kind: registry for registry in (ANALYZERS, EMBEDDERS, EDITORS, VOTERS, DESCRIBERS, BOARDS)
}


def check_outside(config: BuildConfig, stages: Iterable[Stage[Any, Any]]) -> None:
    """Refuse a build that would send pictures of a restricted pool to an outside service without a word.

    Raises:
        ConfigError: Names the adapter, the pool and the switch. Nothing was called before.
    """
    restricted = [pool.name for pool in config.pools if not redistributable(pool.name)]
    if config.acknowledge_external_api or not restricted:
        return
    for stage in stages:
        for used in stage.identities():
            kind, name = (used.get("kind"), used.get("name")) if isinstance(used, dict) else (None, None)
            if kind in BY_KIND and BY_KIND[kind].adapter_class(str(name)).sends_pictures_outside:
                raise ConfigError(
                    f"{kind} '{name}' of stage '{stage.name}' sends pictures to an outside service, and the licence of "
                    f"pool '{restricted[0]}' does not allow them to be passed on",
                    "if yours does, set acknowledge_external_api: true; else choose a local adapter",
                )
