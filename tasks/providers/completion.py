"""One chat completion through litellm: over the network, or, for batches, over a wire that only says what went by."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.routes import Route
from tasks.engine.errors import TransientError
from tasks.engine.ledger import Reply
from tasks.providers import loop
from tasks.providers.errors import classed
from tasks.providers.said import dollars_in, tokens_in, without_key


@dataclass(frozen=True, slots=True)
class Way:
    """A route with what asking by it needs.

    Attributes:
        client: The litellm module.
        route: Which way.
        key: The route's key, never written down.
    """

    client: Any
    route: Route
    key: str | None

    @property
    def api_key(self) -> str | None:
        """What is sent as the key."""
        # With an address of your own and no key, litellm would send it another provider's from the environment.
        return self.key or ("none" if self.route.api_base else None)

    def without_key(self, said: Any) -> Any:
        """What the provider said, the key blotted out."""
        return without_key(said, self.key)

    def classed(self, error: Any) -> Exception:
        """An error of litellm or the client below it as one of our three."""
        response = getattr(error, "response", None)
        headers: Mapping[str, Any] = getattr(response, "headers", None) or {}
        return classed(self.route, getattr(error, "status_code", None), self.without_key(str(error)), headers)


def complete(
    way: Way, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], *, images: int, wire: Any = None
) -> Reply:
    """Ask once.

    Args:
        way: Whom, and how.
        messages: As OpenAI's chat has them.
        settings: Further parameters.
        images: How many pictures they hold.
        wire: A client in place of the network; what is asked over it counts as asked in a batch.

    Raises:
        TransientError, PermanentError, FatalError: As `tasks.providers.errors` classes what came instead of an answer.
    """
    try:
        answer = loop.run(_answer(way, messages, settings, wire))
    except TimeoutError:
        raise TransientError(f"no whole answer in {way.route.timeout_s:g} s") from None
    except way.client.openai.OpenAIError as error:  # the base of litellm's own
        raise way.classed(error) from None
    if not answer["choices"]:
        raise TransientError("an answer without choices")
    return _reply(way, answer, images, batch=wire is not None)


async def _answer(
    way: Way, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], wire: Any
) -> dict[str, Any]:
    route = way.route
    async with asyncio.timeout(route.timeout_s):
        answer = await way.client.acompletion(
            model=route.model,
            messages=messages,
            api_base=route.api_base,
            api_key=way.api_key if wire is None else "none",
            timeout=route.timeout_s,
            num_retries=0,
            max_retries=0,
            **settings,
            **({} if wire is None else {"client": wire}),
        )
    usage = getattr(answer, "usage", None)
    # Not the whole: most of it is litellm's own, and dumping it takes as long as the rest of our work.
    return {
        "choices": [choice.model_dump() for choice in answer.choices[:1]],
        "model": answer.model,
        "id": answer.id,
        "usage": usage.model_dump(exclude_none=True, warnings=False) if usage else {},
    }


def _reply(way: Way, answer: dict[str, Any], images: int, *, batch: bool) -> Reply:
    choice, usage, price = answer["choices"][0], answer.get("usage") or {}, way.route.price
    message, finish = choice.get("message") or {}, choice.get("finish_reason") or ""
    refusal = message.get("refusal") or (finish if finish == "content_filter" else "")
    raw = {
        "text": _words(message.get("content")),
        "finish": str(finish),
        "refusal": str(refusal),
        "model": str(answer.get("model") or ""),
        "id": str(answer.get("id") or ""),
        "usage": usage,
    }
    given = tokens_in(usage, "prompt_tokens")
    taken = tokens_in(usage, "completion_tokens", least=1 if raw["text"] else 0)
    cost, price_date = dollars_in(usage), "reported"
    if price:
        cost = None if given is None or taken is None else price.cost(given, taken, images, batch=batch)
        price_date = price.as_of.isoformat()
    return Reply(
        raw=json.dumps(way.without_key(raw), ensure_ascii=False, sort_keys=True),
        tokens_in=given,
        tokens_out=taken,
        images=images,
        cost=cost,
        price_date=price_date if cost is not None else None,
    )


def _words(content: Any) -> str:
    """The text of a message, whose content may be parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content or ""
