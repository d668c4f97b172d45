"""What is asked through routes: the adapter's side of it, where a route leads, and which of several ways is taken."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from schemas.routes import Route
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.engine.ledger import Request
from tasks.engine.registry import Adapter


class Routed(Adapter):
    """Base of the adapters whose parameters hold `routes` to one model. Subclasses say what one answer may cost."""

    remote = True
    device = "outside"

    @classmethod
    def estimate(cls, route: Route) -> float:
        """About what one answer costs by a route with a price, in dollars."""
        raise NotImplementedError

    @classmethod
    def family_of(cls, params: Any) -> str:
        return str(params.routes[0].family)

    @classmethod
    def model(cls, params: Any) -> str:
        return str(params.routes[0].model)

    @classmethod
    def dollars(cls, params: Any) -> float | None:
        route = params.routes[0]
        if route.price is None:
            return 0.0 if stays_here(route) else None
        return cls.estimate(route)

    @classmethod
    def sends_outside(cls, params: Any) -> bool:
        return not all(stays_here(route) for route in params.routes)


def stays_here(route: Route) -> bool:
    """Whether the route's address is this machine's or of a private network."""
    host = urlsplit(route.api_base or "").hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def by_routes(
    call: Calls,
    routes: Sequence[Route],
    requests: Sequence[Request],
    send: Callable[[Route, Request], str],
) -> str:
    """The raw answer of one model: a stored one of any of its routes, else the first route's that can be reached.

    Args:
        call: The one door.
        routes: Ways to the same model, the preferred one first.
        requests: What is asked by each of them.
        send: Asks by a route, through the door.

    Raises:
        ItemFailed: The provider refused, or no route could be reached.
        StoppedError: As the door says.
        ConfigError: There is no route, or what `send` says.
    """
    for request in requests:
        raw = call.recall(request)
        if raw is not None:
            return raw
    for place, (route, request) in enumerate(zip(routes, requests, strict=True), 1):
        try:
            return send(route, request)
        except ItemFailed as error:
            if not error.retryable or place == len(routes):
                raise
    raise ConfigError("a model without a route cannot be asked", "give it `routes`")
