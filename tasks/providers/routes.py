"""Whether routes can be asked at all, before anything is."""

import importlib.util
from collections.abc import Sequence
from typing import Final

from schemas.routes import Route
from tasks.engine.errors import ConfigError
from tasks.engine.secrets import secret

INSTALL: Final = "pip install --no-deps -r requirements/api.txt"


def key_of(route: Route) -> str | None:
    """The route's key, or None where it needs none.

    Raises:
        ConfigError: Names the variable that should hold it.
    """
    if route.key_env is None:
        return None
    key = secret(route.key_env)
    if not key:
        raise ConfigError(
            f"{route.model} needs a key, and the variable {route.key_env} is empty or not set",
            f"export {route.key_env}=... or {route.key_env}_FILE=PATH (its value is never written down)",
        )
    return key


def takes_batches(route: Route) -> bool:
    """Whether the route's batches are of the one shape that is known here."""
    return route.model.startswith("openai/")


def check_routes(routes: Sequence[Route]) -> None:
    """Refuse, before anything is asked, routes that cannot work.

    Raises:
        ConfigError: litellm is not installed, a key is missing, one provider has two limits, or one whose batches
            are not OpenAI's is to be asked in them.
    """
    if routes and importlib.util.find_spec("litellm") is None:
        raise ConfigError(f"{routes[0].model} is asked through litellm, which is not installed", INSTALL)
    limits = {route.provider: route.limit for route in reversed(routes)}
    for route in routes:
        key_of(route)
        if route.batch and not takes_batches(route):
            raise ConfigError(
                f"{route.model} cannot be asked in batches: only OpenAI's files and batches are known here",
                "leave `batch` out of its route, or choose an openai/ route of a provider that has /v1/batches",
            )
        if limits[route.provider] != route.limit:
            raise ConfigError(
                f"two routes of provider '{route.provider}' have different limits", "give both the same `limit`"
            )
