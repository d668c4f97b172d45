"""Whether routes can be asked at all, before anything is."""

import importlib.util
import os
from collections.abc import Sequence
from typing import Final

from schemas.routes import Route
from tasks.engine.errors import ConfigError

INSTALL: Final = "pip install --no-deps -r requirements/api.txt"


def key_of(route: Route) -> str | None:
    """The route's key, or None where it needs none.

    Raises:
        ConfigError: Names the variable that should hold it.
    """
    if route.key_env is None:
        return None
    key = os.environ.get(route.key_env, "").strip()
    if not key:
        raise ConfigError(
            f"{route.model} needs a key, and the variable {route.key_env} is empty or not set",
            f"export {route.key_env}=... (its value is never written down)",
        )
    return key


def check_routes(routes: Sequence[Route]) -> None:
    """Refuse, before anything is asked, routes that cannot work.

    Raises:
        ConfigError: litellm is not installed, a key is missing, or one provider has two limits.
    """
    if routes and importlib.util.find_spec("litellm") is None:
        raise ConfigError(f"{routes[0].model} is asked through litellm, which is not installed", INSTALL)
    limits = {route.provider: route.limit for route in reversed(routes)}
    for route in routes:
        key_of(route)
        if limits[route.provider] != route.limit:
            raise ConfigError(
                f"two routes of provider '{route.provider}' have different limits", "give both the same `limit`"
            )
