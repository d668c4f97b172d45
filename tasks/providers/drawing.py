"""What a model that draws is asked and what it answers, apart from any client: an edit with its route has a key."""

import json
from dataclasses import dataclass
from typing import Any

from schemas.routes import Route
from tasks.engine.fingerprint import fingerprint
from tasks.engine.images import Picture
from tasks.engine.ledger import Request


@dataclass(frozen=True, slots=True)
class Sketch:
    """What a model is asked to draw; with the route, all that decides its answer.

    Attributes:
        picture: What is changed.
        text: What shall be changed.
        seed: Tells equal edits apart; sent where `seeded`.
        side: Pixels of the longer side that is sent, at most.
        seeded: Whether the providers take a seed.
        again: How often it was asked before, in vain.
        role: Whose budget it is.
    """

    picture: Picture
    text: str
    seed: int
    side: int
    seeded: bool = False
    again: int = 0
    role: str = "editor"


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came back on a wire.

    Attributes:
        data: The picture's bytes, if they came with it.
        url: Where it lies, else.
        text: What was said beside it.
        finish: Why the model stopped; "" where it does not say.
        refusal: The provider's own word that it refused or filtered, else "".
        model: Who drew it, as the provider calls it.
        id: The provider's name for the answer.
        usage: What it counted.
    """

    data: bytes = b""
    url: str = ""
    text: str = ""
    finish: str = ""
    refusal: str = ""
    model: str = ""
    id: str = ""
    usage: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A stored answer: `picture` is the blob's digest, "" where none came; the rest is as `Arrived` has it."""

    picture: str
    text: str
    finish: str
    refusal: str
    model: str


def drawing_request(route: Route, sketch: Sketch) -> Request:
    """All of a route and a sketch that decides an answer."""
    return Request(
        role=sketch.role,
        provider=route.provider,
        model=route.model,
        params={
            "draws": True,
            "temperature": route.temperature,
            "extra_body": route.extra_body,
            "pictures": route.pictures,
            "side": sketch.side,
            "seeded": sketch.seeded,
            "again": sketch.again,
            "text_sha256": fingerprint(sketch.text),
        },
        images=(sketch.picture.digest,),
        repeat=sketch.seed,
    )


def stored(arrived: Arrived, picture: str) -> str:
    """The JSON that is stored."""
    values = {name: getattr(arrived, name) for name in ("text", "finish", "refusal", "model", "id")}
    return json.dumps(values | {"picture": picture, "usage": arrived.usage or {}}, ensure_ascii=False, sort_keys=True)


def drawn_in(raw: str) -> Drawn:
    """A stored answer as what was drawn."""
    values = json.loads(raw)
    return Drawn(values["picture"], values["text"], values["finish"], values["refusal"], values["model"])
