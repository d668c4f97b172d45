"""Asking a model that draws, through the one door: the picture is on the disk before the answer says so."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from schemas.routes import Route
from tasks.engine.blobs import Blobs
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, FatalError, PermanentError, TransientError
from tasks.engine.ledger import Reply, Request
from tasks.providers import loop
from tasks.providers.completion import Way
from tasks.providers.drawing import Arrived, Drawn, Sketch, drawing_request, drawn_in, stored
from tasks.providers.line import Line
from tasks.providers.litellm import litellm_module
from tasks.providers.routed import by_routes, stays_here
from tasks.providers.routes import key_of
from tasks.providers.said import dollars_in, tokens_in
from tasks.providers.web import Gone, fetch
from tasks.providers.wires import RESERVED, WIRES, through_litellm, wire_of

# Forecasts: tokens of a question with its picture, and of a picture that is drawn (1024 pixels a side). Ours.
TOKENS_IN: Final = 2000
TOKENS_OUT: Final = 1600


def draw(call: Calls, routes: Sequence[Route], sketch: Sketch) -> Drawn:
    """The answer of one model: a stored one of any of its routes, else the first route's that can be reached.

    Raises:
        ItemFailed: `REFUSED` (the provider would not take it), or `PROVIDER`, for good or, `retryable`, for now.
        StoppedError: A budget, a key, a quota, an unknown model, or only stored answers are to be used.
        ConfigError: No key, no litellm, no such wire, or two limits for one provider.
    """

    def send(route: Route, request: Request) -> str:
        sender = _Sender(route, sketch, call.blobs)
        if not call.settings.replay_only:
            sender.prepare()
        tokens, estimate = TOKENS_IN + TOKENS_OUT, drawing_dollars(route)
        return call.ask(request, sender, limit=route.limit, tokens=tokens, estimate=estimate)

    return drawn_in(by_routes(call, routes, [drawing_request(route, sketch) for route in routes], send))


def drawing_dollars(route: Route) -> float:
    """About what a picture costs by a route, in dollars; 0 where no price is known."""
    return route.price.cost(TOKENS_IN, TOKENS_OUT, 1) if route.price else 0.0


def check_drawing(routes: Sequence[Route]) -> None:
    """Refuse routes that cannot work, whether or not their keys are here.

    Raises:
        ConfigError: No wire leads to such a model, its `extra_body` holds what is said otherwise, or batches are
            asked of it.
    """
    for route in routes:
        if wire_of(route.model) is None:
            known = ", ".join(f"{one}/" for one in WIRES)
            raise ConfigError(f"nobody knows how to ask {route.model} for a picture", f"its name begins with {known}")
        if route.batch:
            raise ConfigError(
                f"{route.model} cannot be asked for pictures in batches", "leave `batch` out of its route"
            )
        if wrong := sorted(RESERVED & route.extra_body.keys()):
            raise ConfigError(
                f"extra_body of {route.model} holds '{wrong[0]}', which is said otherwise", "leave it out"
            )


class _Sender:
    """Sends a sketch by a route, once a call; what was paid for is gone on with, not asked for anew."""

    def __init__(self, route: Route, sketch: Sketch, blobs: Blobs) -> None:
        self._route, self._sketch, self._blobs = route, sketch, blobs
        self._line = Line(Way(None, route, None))
        self._arrived: Arrived | None = None

    def prepare(self) -> None:
        """Find what sending needs, before any clock runs: the first import takes seconds.

        Raises:
            ConfigError: There is no key, or no litellm where its wire needs it.
        """
        client = litellm_module() if through_litellm(self._route.model) else None
        self._line = Line(Way(client, self._route, key_of(self._route)))

    def __call__(self) -> Reply:
        try:
            if self._arrived is None:
                self._arrived = self._clean(loop.run(self._asked()))
            if self._arrived.url:
                self._arrived = replace(self._arrived, data=loop.run(self._fetched(self._arrived.url)), url="")
        except Gone:
            self._arrived = None
            raise
        except TimeoutError:
            raise TransientError(f"no whole answer in {self._route.timeout_s:g} s") from None
        except (TransientError, PermanentError, FatalError) as error:
            error.args = (self._line.way.without_key(str(error)),)
            raise
        except Exception as error:
            client = self._line.way.client
            if client is None or not isinstance(error, client.openai.OpenAIError):  # the base of litellm's own
                raise
            raise self._line.way.classed(error) from None
        arrived, self._arrived = self._arrived, None
        return self._reply(arrived)

    async def _asked(self) -> Arrived:
        wire = wire_of(self._route.model)
        assert wire is not None, "routes are checked before they are asked"
        async with asyncio.timeout(self._route.timeout_s):
            return await wire(self._line, self._sketch)

    async def _fetched(self, url: str) -> bytes:
        async with asyncio.timeout(self._route.timeout_s):
            return await fetch(url, here=stays_here(self._route))

    def _reply(self, arrived: Arrived) -> Reply:
        usage, price = arrived.usage or {}, self._route.price
        given = tokens_in(usage, "prompt_tokens", "input_tokens")
        taken = tokens_in(usage, "completion_tokens", "output_tokens")
        images = 1 if arrived.data else 0
        cost, price_date = dollars_in(usage), "reported"
        if price:
            by_token = price.input_per_mtok > 0 or price.output_per_mtok > 0
            # What a block costs where pictures have a price and tokens have none, nobody says.
            known = None not in (given, taken) if by_token else bool(images)
            cost = price.cost(given or 0, taken or 0, images) if known else None
            price_date = price.as_of.isoformat()
        return Reply(
            raw=stored(arrived, self._blobs.put(arrived.data) if arrived.data else ""),
            tokens_in=given,
            tokens_out=taken,
            images=images,
            cost=cost,
            price_date=price_date if cost is not None else None,
        )

    def _clean(self, arrived: Arrived) -> Arrived:
        """All but the picture and its address, which are not stored as they came."""
        kept = {name: getattr(arrived, name) for name in ("text", "finish", "refusal", "model", "id", "usage")}
        return replace(arrived, **self._line.way.without_key(kept))
