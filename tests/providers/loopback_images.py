"""A provider on this machine that draws, over the wires real ones have, and fails as they do, by seed.

OpenAI's image edit, image generation with a picture (Ark), Gemini's own chat, Black Forest Labs' jobs.
`python -m tests.providers.loopback_images PORT DELAY_S` serves from a process.
"""

import asyncio
import base64
import hashlib
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from aiohttp import web
from PIL import Image

from tests.providers.loopback import _ERRORS, Loopback

TRANSIENT: Final = ("429", "429 after", "500", "503", "reset", "hang", "cut json", "html")
ANSWERED: Final = ("ok", "url", "jpeg", "grey", "alpha", "cmyk", "half", "null", "no data", "not a picture", "animated")
PERMANENT: Final = ("400 policy", "400 other")
FAULTS: Final = (*TRANSIENT, *ANSWERED[1:], *PERMANENT)


@dataclass(frozen=True)
class Wanted:
    """What a request asked for: the model, the text, the picture's bytes, and the other fields."""

    model: str
    text: str
    picture: bytes
    fields: dict[str, Any]


def tinted(wanted: Wanted) -> bytes:
    """The picture with a corner in a colour that follows from text and seed, as PNG."""
    pixels = np.array(Image.open(io.BytesIO(wanted.picture)).convert("RGB"))
    told = hashlib.sha256(f"{wanted.text} {wanted.fields.get('seed')}".encode()).digest()
    pixels[: max(1, pixels.shape[0] // 3), : max(1, pixels.shape[1] // 3)] = list(told[:3])
    return encoded(Image.fromarray(pixels))


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


@cache
def bent(met: str, png: bytes) -> bytes:
    """The picture as a provider with habits of its own would send it."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    if met in ("jpeg", "cmyk"):
        return encoded(image.convert("CMYK") if met == "cmyk" else image, "JPEG", quality=95, subsampling=0)
    if met in ("grey", "alpha"):
        return encoded(image.convert("L" if met == "grey" else "RGBA"))
    if met == "half":
        return encoded(image.resize((max(16, image.width // 2), max(16, image.height // 2))))
    if met == "animated":
        return encoded(image, "GIF", save_all=True, append_images=[image.rotate(90)], duration=100)
    return b"this is no picture" if met == "not a picture" else png


class ImageLoopback(Loopback):
    """As `Loopback`; `drawn` draws. `wanted` has an entry per request, `met` what it met; polls and files are neither.

    Args:
        drawn: Draws what is wanted, as PNG; raises ValueError with the words of one who declines.
    """

    def __init__(self, *, drawn: Callable[[Wanted], bytes] = tinted, **options: Any) -> None:
        super().__init__(faults=options.pop("faults", FAULTS), **options)
        self.drawn = drawn
        self.wanted: list[Wanted] = []
        # Pictures to be fetched, by number, and how often each was.
        self.files: list[bytes] = []
        self.fetched: list[str] = []
        # What the next fetches or polls meet.
        self.on_the_way: list[str] = []
        self.keys: set[str] = set()
        # What it calls its model; "" says nothing.
        self.dated = ""
        # Of OpenAI's list. Own servers leave its details out, which litellm does not bear.
        self.usage: dict[str, Any] = {"input_tokens": 300, "output_tokens": 1000, "total_tokens": 1300}

    def app(self) -> web.Application:
        app = super().app()
        app.router.add_post("/v1/images/edits", self._edits)
        app.router.add_post("/v1/images/generations", self._generations)
        app.router.add_post("/v1beta/models/{model}:generateContent", self._gemini)
        app.router.add_post(r"/v1/{model:flux-[\w.-]+}", self._job)
        app.router.add_get("/v1/get_result", self._poll)
        app.router.add_get("/files/{number}", self._file)
        return app

    async def _edits(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        fields: dict[str, Any] = {name: value for name, value in form.items() if isinstance(value, str)}
        (image,) = [value for value in form.values() if isinstance(value, web.FileField)]
        wanted = Wanted(fields.pop("model"), fields.pop("prompt"), image.file.read(), fields)
        return await self._meet(request, wanted, self._listed)

    async def _generations(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        picture = base64.b64decode(body.pop("image").partition(",")[2])
        wanted = Wanted(body.pop("model"), body.pop("prompt"), picture, body)
        return await self._meet(request, wanted, self._listed)

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        parts = body["contents"][0]["parts"]
        (text,) = [part["text"] for part in parts if "text" in part]
        (image,) = [part["inline_data"] for part in parts if "inline_data" in part]
        wanted = Wanted(request.match_info["model"], text, base64.b64decode(image["data"]), body)
        return await self._meet(request, wanted, self._candidates)

    async def _job(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        picture = base64.b64decode(body.pop("input_image"))
        return await self._meet(
            request, Wanted(request.match_info["model"], body.pop("prompt"), picture, body), self._sent
        )

    async def _meet(
        self, request: web.Request, wanted: Wanted, answer: Callable[[Wanted, str], Any]
    ) -> web.StreamResponse:
        self.active += 1
        self.peak = max(self.peak, self.active)
        try:
            told = json.dumps([wanted.model, wanted.text, sorted(map(str, wanted.fields.items()))])
            digest = hashlib.sha256(wanted.picture + told.encode()).hexdigest()
            met = self.fault_of(digest, self.sent_times[digest])
            header = request.headers
            given = header.get("authorization", "").removeprefix("Bearer ") or header.get("x-key", "")
            given = given or header.get("x-goog-api-key", "") or request.query.get("key", "")
            self.keys.add(given)
            if self.key is not None and given != self.key:
                met = "401"
            if self.stick_after is not None and len(self.met) >= self.stick_after:
                met = "hang"
            self.sent_times[digest] += 1
            self.met.append(met)
            self.wanted.append(wanted)
            await asyncio.sleep(self.delay_s)
            if met in _ERRORS:
                status, headers, code, words = _ERRORS[met]
                error = {"message": words.format(key=given), "type": code, "code": code, "param": None}
                return web.json_response({"error": error}, status=status, headers=headers)
            return await self._transport(request, met, json.dumps(answer(wanted, met)))
        finally:
            self.active -= 1

    def _laid(self, data: bytes) -> str:
        self.files.append(data)
        return f"{self.url.removesuffix('/v1')}/files/{len(self.files) - 1}"

    def _listed(self, wanted: Wanted, met: str) -> Any:
        try:
            data = bent(met, self.drawn(wanted))
        except ValueError:
            met = "null"
        if met in ("null", "no data"):
            return {"created": 0, "data": [] if met == "no data" else [{"b64_json": None}], "usage": self.usage}
        found = {"url": self._laid(data)} if met == "url" else {"b64_json": base64.b64encode(data).decode()}
        named = {"model": self.dated} if self.dated else {}
        return {"created": 0, "data": [found], "usage": self.usage, **named}

    def _candidates(self, wanted: Wanted, met: str) -> Any:
        usage = {"promptTokenCount": 300, "candidatesTokenCount": 1290, "totalTokenCount": 1590}
        said: dict[str, Any] = {"usageMetadata": usage, "modelVersion": f"{wanted.model}-dated", "responseId": "r"}
        if met == "blocked":
            return said | {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        if met in ("null", "no data"):
            return said | {"candidates": [{"finishReason": "IMAGE_SAFETY", "finishMessage": "unsafe", "index": 0}]}
        parts: list[dict[str, Any]] = [{"text": "Here you are."}]
        try:
            if met in ("prose refusal", "chatter"):
                raise ValueError("I can't edit photos of real people." if met == "prose refusal" else "What a face!")
            data = base64.b64encode(bent(met, self.drawn(wanted))).decode()
            parts.append({"inlineData": {"mimeType": "image/png", "data": data}})
        except ValueError as error:
            parts = [{"text": str(error)}]
        return said | {
            "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}]
        }

    def _sent(self, wanted: Wanted, met: str) -> Any:
        number = self._laid(b"" if met in ("null", "no data") else bent(met, self.drawn(wanted))).rpartition("/")[2]
        return {"id": number, "polling_url": f"{self.url}/get_result?id={number}"}

    async def _poll(self, request: web.Request) -> web.StreamResponse:
        number = request.query["id"]
        met = self.on_the_way.pop(0) if self.on_the_way else "Ready"
        if met in _ERRORS:
            return web.json_response({"detail": met}, status=_ERRORS[met][0])
        if met != "Ready":
            return web.json_response({"id": number, "status": met, "result": None})
        if not self.files[int(number)]:
            return web.json_response({"id": number, "status": "Content Moderated", "details": "a face", "result": None})
        sample = f"{self.url.removesuffix('/v1')}/files/{number}"
        return web.json_response({"id": number, "status": "Ready", "result": {"sample": sample}})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        met = self.on_the_way.pop(0) if self.on_the_way else "ok"
        self.fetched.append(met)
        if met in _ERRORS:
            return web.Response(status=_ERRORS[met][0])
        if met == "moved":
            raise web.HTTPFound(request.path)
        if met == "away":
            raise web.HTTPFound("file:///etc/hostname")
        if met == "html":
            return web.Response(text="<html>expired</html>", content_type="text/html")
        return web.Response(body=self.files[int(request.match_info["number"])], content_type="image/png")


async def _main(port: int, delay_s: float) -> None:
    provider = ImageLoopback(delay_s=delay_s)
    await provider.serve(port)
    print(provider.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2])))
