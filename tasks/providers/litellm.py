"""Asking a multimodal model over the network. The only importer of litellm, which is a wire adapter and no more.

Queue, retries, budget, memory and ledger are those of `tasks.engine.calls`: litellm's own reject instead of queueing,
differ by endpoint, or do nothing.
"""

import asyncio
import json
import logging
import os
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from schemas.routes import Route
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, ItemFailed, TransientError
from tasks.engine.ledger import Reply
from tasks.providers import loop
from tasks.providers.errors import classed
from tasks.providers.pictures import data_url
from tasks.providers.questions import Question, Said, json_schema, request_of, said_in
from tasks.providers.routes import INSTALL, key_of

__all__ = ["Question", "Said", "ask_model", "request_of", "said_in"]

# Forecasts, on the safe side: characters per token, tokens per picture of 1024 pixels a side.
_CHARACTERS_PER_TOKEN: Final = 2
_TOKENS_PER_PICTURE: Final = 1600
_SHORTEST_KEY: Final = 8


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
    requests = [request_of(route, question) for route in routes]
    for request in requests:
        raw = call.recall(request)
        if raw is not None:
            return said_in(raw)
    for place, (route, request) in enumerate(zip(routes, requests, strict=True), 1):
        sender = _Sender(route, question)
        if not call.settings.replay_only:
            sender.prepare()
        tokens_in = sender.tokens_in()
        try:
            raw = call.ask(
                request,
                sender,
                limit=route.limit,
                tokens=tokens_in + route.max_tokens,
                estimate=route.price.cost(tokens_in, route.max_tokens, len(question.pictures)) if route.price else 0.0,
            )
            return said_in(raw)
        except ItemFailed as error:
            if not error.retryable or place == len(routes):
                raise
    raise ConfigError("a model without a route cannot be asked", "give it `routes`")


@cache
def _litellm() -> Any:
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
        self._key, self._client = key_of(self._route), _litellm()

    def tokens_in(self) -> int:
        """A forecast that is rather too high."""
        question = self._question
        characters = len(question.system) + len(question.text) + sum(map(len, question.follow_up or ()))
        return characters // _CHARACTERS_PER_TOKEN + len(question.pictures) * _TOKENS_PER_PICTURE

    def __call__(self) -> Reply:
        client, route = self._client, self._route
        try:
            answer = loop.run(self._answer(self._messages()))
        except TimeoutError:
            raise TransientError(f"no whole answer in {route.timeout_s:g} s") from None
        except client.openai.OpenAIError as error:  # the base of litellm's own
            response = getattr(error, "response", None)
            headers = getattr(response, "headers", None) or {}
            status = getattr(error, "status_code", None)
            raise classed(route, status, self._without_key(str(error)), headers) from None
        if not answer["choices"]:
            raise TransientError("an answer without choices")
        return self._reply(answer)

    async def _answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        route = self._route
        async with asyncio.timeout(route.timeout_s):
            answer = await self._client.acompletion(
                model=route.model,
                messages=messages,
                api_base=route.api_base,
                # With an address of your own and no key, litellm would send it another provider's from the environment.
                api_key=self._key or ("none" if route.api_base else None),
                timeout=route.timeout_s,
                num_retries=0,
                max_retries=0,
                **self._settings(),
            )
        usage = getattr(answer, "usage", None)
        # Not the whole: most of it is litellm's own, and dumping it takes as long as the rest of our work.
        return {
            "choices": [choice.model_dump() for choice in answer.choices[:1]],
            "model": answer.model,
            "id": answer.id,
            "usage": usage.model_dump(exclude_none=True) if usage else {},
        }

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

    def _reply(self, answer: dict[str, Any]) -> Reply:
        choice, usage, route = answer["choices"][0], answer.get("usage") or {}, self._route
        message, finish = choice.get("message") or {}, choice.get("finish_reason") or ""
        refusal = message.get("refusal") or (finish if finish == "content_filter" else "")
        raw = {
            "text": self._without_key(_words(message.get("content"))),
            "finish": finish,
            "refusal": self._without_key(refusal),
            "model": answer.get("model") or "",
            "id": answer.get("id") or "",
            "usage": usage,
        }
        tokens_in: Any = usage.get("prompt_tokens")
        tokens_out: Any = usage.get("completion_tokens")
        images = len(self._question.pictures)
        cost, price_date = usage.get("cost"), "reported"
        if route.price:
            cost = None if None in (tokens_in, tokens_out) else route.price.cost(tokens_in, tokens_out, images)
            price_date = route.price.as_of.isoformat()
        return Reply(
            raw=json.dumps(raw, ensure_ascii=False, sort_keys=True),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            images=images,
            cost=cost,
            price_date=price_date if cost is not None else None,
        )

    def _without_key(self, text: str) -> str:
        # Local servers are given "none" or "EMPTY", which are words, and no secrets.
        return text.replace(self._key, "***") if self._key and len(self._key) >= _SHORTEST_KEY else text


def _words(content: Any) -> str:
    """The text of a message, whose content may be parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content or ""


def _response_format(schema: type[BaseModel], structured: str) -> dict[str, Any]:
    if structured == "object":
        return {"type": "json_object"}
    form = {"name": schema.__name__, "schema": json_schema(schema), "strict": True}
    return {"type": "json_schema", "json_schema": form}
