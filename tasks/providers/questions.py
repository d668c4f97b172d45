"""What a model is asked and what it says, apart from any client: a question with its route is a request with a key."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from schemas.routes import Route
from tasks.engine.fingerprint import fingerprint
from tasks.engine.images import Picture
from tasks.engine.ledger import Request


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked; with the route, all that decides its answer.

    Attributes:
        role: Who asks ("voter", "captioner", "writer", "judge"...): budgets and the ledger go by it.
        prompt_sha256: The template's hash.
        system: The system message, "" for none.
        text: The user's message, after the pictures.
        pictures: In the order they are shown.
        schema: What the answer should be (`extra="forbid"`, no defaults), for routes that can be held to it.
        repeat: Tells equal questions apart.
        side: Pixels of the longer side, at most.
        follow_up: The model's earlier raw answer and what is said to it: one more round.
    """

    role: str
    prompt_sha256: str
    system: str
    text: str
    pictures: tuple[Picture, ...] = ()
    schema: type[BaseModel] | None = None
    repeat: int = 0
    side: int = 1024
    follow_up: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said, unparsed.

    Attributes:
        text: Its words without separate thoughts; "" where there are none.
        finish: Why it stopped: "stop", "length", "content_filter"...; "" where it does not say.
        refusal: The provider's own word that it refused or filtered, else "". Refusals in prose are in `text`.
        model: The model that answered, as the provider calls it.
        raw: The JSON that is stored.
    """

    text: str
    finish: str
    refusal: str
    model: str
    raw: str


def request_of(route: Route, question: Question) -> Request:
    """All of a route and a question that decides an answer; pictures by the digests of what is stored."""
    held_to = question.schema if route.structured == "schema" else None
    return Request(
        role=question.role,
        provider=route.provider,
        model=route.model,
        params={
            "temperature": route.temperature,
            "max_tokens": route.max_tokens,
            "extra_body": route.extra_body,
            "structured": route.structured if question.schema else "none",
            "schema_sha256": fingerprint(json_schema(held_to)) if held_to else "",
            "pictures": route.pictures if question.pictures else "",
            "side": question.side if question.pictures else 0,
            "text_sha256": fingerprint(question.system, question.text, question.follow_up),
        },
        prompt_sha256=question.prompt_sha256,
        images=tuple(picture.digest for picture in question.pictures),
        repeat=question.repeat,
    )


def said_in(raw: str) -> Said:
    """A stored answer as what was said."""
    values = json.loads(raw)
    return Said(values["text"], values["finish"], values["refusal"], values["model"], raw)


@cache
def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The schema an answer is held to."""
    return schema.model_json_schema()
