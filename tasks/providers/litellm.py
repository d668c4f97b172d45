"""Asking a multimodal model over the network. The only importer of litellm, which is a wire adapter and no more.

Queue, retries, budget, memory and ledger are those of `tasks.engine.calls`: litellm's own reject instead of queueing,
differ by endpoint, or do nothing.
"""

import logging
import os
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from schemas.routes import Route
from tasks.engine.batch_service import Offer
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError
from tasks.engine.ledger import Reply, Request
from tasks.providers.batches import OpenAIBatches, line_of
from tasks.providers.completion import Way, complete
from tasks.providers.pictures import data_url
from tasks.providers.questions import Question, Said, json_schema, request_of, said_in
from tasks.providers.routed import by_routes
from tasks.providers.routes import INSTALL, key_of, takes_batches

__all__ = ["Question", "Said", "ask_model", "request_of", "said_in"]

# Forecasts, on the safe side: characters per token, tokens per picture of 1024 pixels a side.
_CHARACTERS_PER_TOKEN: Final = 2
_TOKENS_PER_PICTURE: Final = 1600


def ask_model(call: Calls, routes: Sequence[Route], question: Question) -> Said:
    """The answer of one model: a stored one of any of its routes, else the first route's that can be reached.

    Args:
        call: The one door.
        routes: Ways to the same model, the preferred one first.
        question: What is asked.

    Raises:
        ItemFailed: `REFUSED` (the provider would not take the question) or `PROVIDER`, for good or, `retryable`, for
            now: no route could be reached.
        StoppedError: A budget, a key, a quota, an unknown model, or only stored answers are to be used.
        ConfigError: No key, no litellm, or two limits for one provider.
    """

    def send(route: Route, request: Request) -> str:
        sender = _Sender(route, question)
        if not call.settings.replay_only:
            sender.prepare()
        return call.ask(
            request,
            sender,
            limit=route.limit,
            tokens=sender.tokens_in() + route.max_tokens,
            estimate=sender.dollars(),
            batch=sender.offer(request.key()),
        )

    return said_in(by_routes(call, routes, [request_of(route, question) for route in routes], send))


@cache
def litellm_module() -> Any:
    """litellm, set up to do nothing of its own: no look-ups, no `.env`, no retries, no dropped parameters, no words.

    Raises:
        ConfigError: It is not installed.
    """
    os.environ.setdefault("LITELLM_OFFLINE_MODE", "true")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        import litellm
    except ImportError:
        raise ConfigError("models outside are asked through litellm, which is not installed", INSTALL) from None
    litellm.suppress_debug_info = True
    litellm.drop_params = False
    litellm.modify_params = False
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


class _Sender:
    """Sends a question by a route, once a call."""

    def __init__(self, route: Route, question: Question) -> None:
        self._route, self._question = route, question
        self._key: str | None = None
        self._client: Any = None

    def prepare(self) -> None:
        """Find what sending needs, before any clock runs: the first import takes seconds.

        Raises:
            ConfigError: There is no key, or no litellm.
        """
        self._key, self._client = key_of(self._route), litellm_module()

    def tokens_in(self) -> int:
        """A forecast that is rather too high."""
        question = self._question
        characters = len(question.system) + len(question.text) + sum(map(len, question.follow_up or ()))
        return characters // _CHARACTERS_PER_TOKEN + len(question.pictures) * _TOKENS_PER_PICTURE

    def __call__(self) -> Reply:
        return complete(self._way(), self._messages(), self._settings(), images=len(self._question.pictures))

    def offer(self, key: str) -> Offer | None:
        """How it is asked in a batch; None where its provider has none that we know."""
        route = self._route
        if self._client is None or not takes_batches(route):
            return None
        return Offer(
            OpenAIBatches(self._way()),
            lambda: line_of(self._way(), key, self._messages(), self._settings()),
            wanted=route.batch,
            estimate=self.dollars(batch=True),
        )

    def dollars(self, *, batch: bool = False) -> float:
        """A forecast; 0 where no price is known."""
        route = self._route
        if route.price is None:
            return 0.0
        return route.price.cost(self.tokens_in(), route.max_tokens, len(self._question.pictures), batch=batch)

    def _way(self) -> Way:
        return Way(self._client, self._route, self._key)

    def _settings(self) -> dict[str, Any]:
        route, schema = self._route, self._question.schema
        settings: dict[str, Any] = {"max_tokens": route.max_tokens}
        if route.temperature is not None:
            settings["temperature"] = route.temperature
        if route.extra_body:
            settings["extra_body"] = route.extra_body
        if schema and route.structured != "none":
            settings["response_format"] = _response_format(schema, route.structured)
        return settings

    def _messages(self) -> list[dict[str, Any]]:
        question = self._question
        shown = [
            {"type": "image_url", "image_url": {"url": data_url(picture, question.side, self._route.pictures)}}
            for picture in question.pictures
        ]
        messages: list[dict[str, Any]] = [{"role": "system", "content": question.system}] if question.system else []
        messages.append({"role": "user", "content": [*shown, {"type": "text", "text": question.text}]})
        if question.follow_up:
            messages.append({"role": "assistant", "content": question.follow_up[0]})
            messages.append({"role": "user", "content": question.follow_up[1]})
        return messages


def _response_format(schema: type[BaseModel], structured: str) -> dict[str, Any]:
    if structured == "object":
        return {"type": "json_object"}
    form = {"name": schema.__name__, "schema": json_schema(schema), "strict": True}
    return {"type": "json_schema", "json_schema": form}
