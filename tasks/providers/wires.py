"""How pictures are asked for, by the first part of a model's name: chat and image edit through litellm, or plain HTTP.

Two of the first parts are ours, where litellm has no way of its own: `ark/` is image generation with a picture in its
body, `bfl/` the jobs of `tasks.providers.bfl`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from tasks.engine.errors import TransientError
from tasks.providers.bfl import job
from tasks.providers.drawing import Arrived, Sketch
from tasks.providers.line import Line, arrived, listed, seed_of
from tasks.providers.web import ask_json

OPENAI: Final = "https://api.openai.com/v1"
ARK: Final = "https://ark.cn-beijing.volces.com/api/v3"

_FILTERS: Final = frozenset(
    {"content_filter", "safety", "prohibited_content", "blocklist", "spii", "recitation"}
    | {"image_safety", "image_prohibited_content", "image_recitation", "image_other", "no_image"}
)
# What a route's `extra_body` may not hold: it is said otherwise.
RESERVED: Final = frozenset({"model", "prompt", "image", "messages", "api_key", "api_base", "timeout", "n"})


Wire = Callable[[Line, Sketch], Awaitable[Arrived]]


async def chat(line: Line, sketch: Sketch) -> Arrived:
    """A chat whose answer holds a picture (Gemini, and what OpenRouter passes on)."""
    route = line.route
    content = [
        {"type": "image_url", "image_url": {"url": line.shown(sketch)}},
        {"type": "text", "text": sketch.text},
    ]
    settings = line.settings | {"num_retries": 0, "modalities": ["image", "text"]} | seed_of(sketch)
    if route.temperature is not None:
        settings["temperature"] = route.temperature
    if route.extra_body:
        settings["extra_body"] = route.extra_body
    answer = await line.way.client.acompletion(
        model=route.model, messages=[{"role": "user", "content": content}], **settings
    )
    if not answer.choices:
        raise TransientError("an answer without choices")
    choice = answer.choices[0]
    message, finish = choice.message, choice.finish_reason or ""
    own = (getattr(choice, "provider_specific_fields", None) or {}).get("native_finish_reason") or finish
    images = getattr(message, "images", None) or []
    # Of several, the last: models that think draw sketches first.
    url = images[-1]["image_url"]["url"] if images else ""
    text = message.content if isinstance(message.content, str) else ""
    refusal = getattr(message, "refusal", None) or ""
    if not refusal and not images and {finish.lower(), str(own).lower()} & _FILTERS:
        refusal = f"the provider's filter: {own} {text}".strip()
    usage = getattr(answer, "usage", None)
    return arrived(
        url,
        text=text,
        finish=finish,
        refusal=refusal,
        model=answer.model or "",
        id=answer.id or "",
        usage=usage.model_dump(exclude_none=True) if usage else {},
    )


async def edit(line: Line, sketch: Sketch) -> Arrived:
    """What litellm makes of OpenAI's image edit for other providers."""
    answer = await line.way.client.aimage_edit(
        model=line.route.model,
        image=line.bytes_of(sketch),
        prompt=sketch.text,
        **line.settings | seed_of(sketch) | line.route.extra_body,
    )
    return listed(answer.model_dump(), line)


async def compatible_edit(line: Line, sketch: Sketch) -> Arrived:
    """OpenAI's image edit by plain HTTP: litellm throws a picture away whose `usage` it finds incomplete."""
    route = line.route
    fields = {"model": line.model, "prompt": sketch.text} | _plain(seed_of(sketch) | route.extra_body)
    files = {"image": (f"image.{route.pictures}", line.bytes_of(sketch), f"image/{route.pictures}")}
    url = f"{(route.api_base or OPENAI).rstrip('/')}/images/edits"
    told, _ = await ask_json(route, "POST", url, data=fields, files=files, headers=_bearer(line))
    return listed(told, line)


async def generate(line: Line, sketch: Sketch) -> Arrived:
    """Image generation that takes a picture in its body (Ark)."""
    route = line.route
    body = {"model": line.model, "prompt": sketch.text, "image": line.shown(sketch), "response_format": "b64_json"}
    url = f"{(route.api_base or ARK).rstrip('/')}/images/generations"
    told, _ = await ask_json(route, "POST", url, json=body | seed_of(sketch) | route.extra_body, headers=_bearer(line))
    return listed(told, line)


WIRES: Final[Mapping[str, Wire]] = {
    **dict.fromkeys(("gemini", "vertex_ai", "openrouter"), chat),
    **dict.fromkeys(("azure", "azure_ai", "dashscope", "stability", "litellm_proxy"), edit),
    **dict.fromkeys(("openai", "hosted_vllm"), compatible_edit),
    "ark": generate,
    "bfl": job,
}


def through_litellm(model: str) -> bool:
    """Whether a model's wire is litellm's."""
    return wire_of(model) in (chat, edit)


def wire_of(model: str) -> Wire | None:
    """The wire of a model by the first part of its name; None where there is none."""
    return WIRES.get(model.partition("/")[0])


def _bearer(line: Line) -> dict[str, str]:
    return {"authorization": f"Bearer {line.way.key}"} if line.way.key else {}


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values as a form has them; lists and objects as JSON."""
    return {
        name: value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)
        for name, value in fields.items()
    }
