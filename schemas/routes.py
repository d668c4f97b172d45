"""Ways to a model outside: what decides its answer, and what only says how to reach and pay it."""

from collections.abc import Iterator
from datetime import date
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from schemas.sections import Section


class Price(Section):
    """What a model costs, in dollars, and since when that is known."""

    input_per_mtok: float = Field(ge=0, description="Dollars per million tokens in.")
    output_per_mtok: float = Field(ge=0, description="Dollars per million tokens out, thoughts included.")
    per_image: float | None = Field(default=None, ge=0, description="Dollars per picture, beside its tokens.")
    # Not `on`: to YAML that is a truth value.
    as_of: date = Field(description="Day this price was read off the provider's page.")

    batch_factor: float = Field(default=0.5, ge=0, description="What share of this a call in a batch costs. Ours: .5.")

    def cost(self, tokens_in: int, tokens_out: int, images: int, *, batch: bool = False) -> float:
        """Dollars of one call."""
        tokens = tokens_in * self.input_per_mtok + tokens_out * self.output_per_mtok
        return (tokens / 1e6 + images * (self.per_image or 0.0)) * (self.batch_factor if batch else 1.0)


class ProviderLimit(Section):
    """How fast one provider may be asked. What comes too early waits; nothing is turned away."""

    concurrency: int = Field(default=16, ge=1, description="Calls at once; less while the provider is overloaded.")
    requests_per_minute: float | None = Field(default=None, gt=0, description="null for no limit.")
    tokens_per_minute: float | None = Field(
        default=None, gt=0, description="In and out; forecast before a call, corrected after it; null for no limit."
    )


class Route(Section):
    """One way to one model, as litellm takes it.

    Gemini is `gemini/MODEL`; every other provider with an OpenAI-compatible address is `openai/MODEL` with `api_base`.
    """

    model: str = Field(
        pattern=r"^[^/\s]+/\S+$", description="As litellm takes it: gemini/gemini-2.5-pro, openai/glm-4.6v."
    )
    provider: str = Field(
        default="", description="Whose queue, bill and answers these are; the part before the first / if not given."
    )
    api_base: str | None = Field(default=None, description="Address, where it is not the provider's own.")
    key_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Environment variable that holds the key; never the key.",
    )
    extra_body: dict[str, Any] = Field(default={}, description="Further fields of the request's body.")
    temperature: float | None = Field(default=0.0, ge=0, description="null leaves it to the provider. Ours: 0.")
    max_tokens: int = Field(default=2048, ge=1, description="Tokens out, thoughts included. Ours.")
    structured: Literal["schema", "object", "none"] = Field(
        default="schema", description="What the provider can be held to: a JSON schema, any JSON, or nothing."
    )
    pictures: Literal["jpeg", "png"] = Field(default="jpeg", description="How pictures travel: JPEG 95, or PNG. Ours.")
    timeout_s: float = Field(default=120.0, gt=0, description="Seconds for a whole call, however it drips.")
    limit: ProviderLimit = Field(default=ProviderLimit(), description="The provider's queue; one for all its routes.")
    price: Price | None = Field(default=None, description="null: what the provider reports per call, else unknown.")
    batch: bool = Field(
        default=False,
        description="Ask by the provider's batch API: cheaper, answered within a day. Only openai/ models.",
    )
    retires: date | None = Field(default=None, description="Day the model is withdrawn, as announced.")
    family: str = Field(default="", description="Family of models it belongs to (gemini, qwen, ...).")

    @model_validator(mode="before")
    @classmethod
    def _own_provider(cls, values: Any) -> Any:
        if isinstance(values, dict) and not values.get("provider"):
            if values.get("api_base"):
                raise ValueError("a route with an api_base must name its provider")
            values = values | {"provider": str(values.get("model", "")).partition("/")[0]}
        return values

    @field_validator("api_base")
    @classmethod
    def _address_alone(cls, value: str | None) -> str | None:
        """An address is written into the run's config, so no secret may hide in it."""
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an address such as https://HOST/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("only the address: no user, password or query in it; the key is in the variable key_env")
        return value

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if self.api_base is None and self.key_env is None:
            raise ValueError("a route without an api_base must name the variable of its key (key_env)")
        return self


# Fields of a route that are no part of any identity, and why: a moved port or price asks and measures nothing again.
NOT_IDENTITY: Final[dict[str, str]] = {
    "api_base": "where the same model answers",
    "key_env": "who pays",
    "timeout_s": "how long we wait",
    "limit": "how fast we ask",
    "price": "what it costs",
    "batch": "how soon it must answer",
    "retires": "till when it answers",
    "family": "whose relatives cannot vouch for it; the roles say so",
}
_HOLDERS: Final = ("route", "routes")


def deciding(values: Any) -> Any:
    """The same plain values, without what of their routes decides no answer.

    Routes are found by name: whatever holds them, in whatever depth, calls them `routes` (a list) or `route`.
    """
    if isinstance(values, dict):
        return {
            name: _deciding_routes(value) if name in _HOLDERS else deciding(value) for name, value in values.items()
        }
    return [deciding(value) for value in values] if isinstance(values, list | tuple) else values


def _deciding_routes(held: Any) -> Any:
    if isinstance(held, dict):
        return {name: value for name, value in held.items() if name not in NOT_IDENTITY}
    return [_deciding_routes(route) for route in held] if isinstance(held, list | tuple) else held


def routes_in(values: Any) -> Iterator[Route]:
    """Every route in plain values, found as `deciding` finds them.

    Raises:
        ValidationError: One of them is wrong.
    """
    if isinstance(values, list | tuple):
        for value in values:
            yield from routes_in(value)
    elif isinstance(values, dict):
        for name, value in values.items():
            if name not in _HOLDERS:
                yield from routes_in(value)
            elif value:
                yield from (Route.model_validate(route) for route in (value if name == "routes" else [value]))


class BatchSettings(Section):
    """How questions of routes with `batch` are asked. Nothing here changes an answer."""

    wait: bool = Field(
        default=True, description="Wait for the answers; else a build ends with exit code 6, and the next one collects."
    )
    poll_s: float = Field(default=60.0, gt=0, description="Seconds between two looks at a batch.")
    max_requests: int = Field(default=50_000, ge=1, description="Requests in one batch; OpenAI takes 50,000.")
    max_mb: float = Field(default=150.0, gt=0, description="Megabytes of one batch; OpenAI takes 200.")
    deadline_h: float = Field(default=26.0, gt=0, description="Hours after which a batch is cancelled. Ours.")
    missing: Literal["singly", "fail"] = Field(
        default="singly",
        description="What a batch leaves without an answer: ask it at once and at full price, or let it fail for now.",
    )


class CallSettings(Section):
    """How calls outside are made. Nothing here changes an answer."""

    attempts: int = Field(default=6, ge=1, le=100, description="Tries of one call, the first included.")
    backoff_s: float = Field(default=0.5, ge=0, description="Seconds before the second try; doubles, jittered.")
    max_backoff_s: float = Field(default=60, ge=0, description="Where the doubling ends.")
    in_flight: int = Field(default=64, ge=1, le=1024, description="Calls at once, over all providers.")
    budget: float | None = Field(default=None, ge=0, description="Dollars for the run; null for no limit.")
    role_budgets: dict[str, float] = Field(default={}, description="Dollars by role, within the budget.")
    refresh: bool = Field(default=False, description="Ask again, once, what was finally refused before.")
    batches: BatchSettings = BatchSettings()
    replay_only: bool = Field(
        default=False, description="Send nothing: a request without a stored answer stops the run."
    )
