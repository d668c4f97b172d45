"""A route with what sending by it needs, and what one of its answers holds: what all wires of pictures share."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.routes import Route
from tasks.providers.completion import Way
from tasks.providers.drawing import Arrived, Sketch
from tasks.providers.pictures import data_url


@dataclass(slots=True)
class Line:
    """A way to a model that draws.

    Attributes:
        way: The route with what asking by it needs; without litellm where its wire does.
        job: Address of a job that is under way, and was paid for: a further try goes on with it.
    """

    way: Way
    job: str = ""

    @property
    def route(self) -> Route:
        return self.way.route

    @property
    def settings(self) -> dict[str, Any]:
        """What every call of litellm is given; its own retries are off."""
        route = self.route
        return {
            "api_base": route.api_base,
            "api_key": self.way.api_key,
            "timeout": route.timeout_s,
            "max_retries": 0,
        }

    @property
    def model(self) -> str:
        """The model's name without its first part."""
        return self.route.model.partition("/")[2]

    def shown(self, sketch: Sketch) -> str:
        """The picture as a data URL."""
        return data_url(sketch.picture, sketch.side, self.route.pictures)

    def bytes_of(self, sketch: Sketch) -> bytes:
        """The picture as a file."""
        return base64.b64decode(self.shown(sketch).partition(",")[2])


def seed_of(sketch: Sketch) -> dict[str, int]:
    """The seed, where the providers take one: 31 bits, as most do."""
    return {"seed": sketch.seed % 2**31} if sketch.seeded else {}


def arrived(found: str, **said: Any) -> Arrived:
    """What came, its picture taken out of a data URL or plain base64, or left where it lies."""
    if not found or found.startswith(("http://", "https://")):
        return Arrived(url=found, **said)
    if found.startswith("data:"):
        found = found.partition(",")[2]
    try:
        return Arrived(data=base64.b64decode(found, validate=True), **said)
    except (binascii.Error, ValueError):
        return Arrived(data=found.encode(errors="replace"), **said)  # no picture, as whoever reads it will say


def listed(answer: Mapping[str, Any], line: Line) -> Arrived:
    """OpenAI's list of pictures. One that is null, or none at all, is a block, in whatever words stand beside it."""
    data = answer.get("data")
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    found = first.get("b64_json") or first.get("url") or ""
    said = first.get("error") or answer.get("error") or answer.get("message") or "an answer without a picture"
    words = said.get("message") or said.get("code") if isinstance(said, dict) else said
    usage = answer.get("usage")
    return arrived(
        str(found),
        refusal="" if found else str(words),
        model=str(answer.get("model") or line.model),
        id=str(answer.get("id") or ""),
        usage=usage if isinstance(usage, dict) else {},
    )
