"""A provider on this machine: speaks OpenAI's chat over real HTTP, and fails as real ones do, by seed.

`with Loopback() as provider:` serves from a thread, `python -m tests.providers.loopback PORT DELAY_S` from a process.
What a request meets depends on the seed, its body and how often that body was sent, never on time or order.
"""

import asyncio
import base64
import hashlib
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from aiohttp import web

SLOW: Final = {"drip", "hang"}
TRANSIENT: Final = ("429", "429 after", "500", "502", "503", "reset", "drip", "hang", "cut json", "html", "no choices")
ANSWERED: Final = ("malformed", "truncated", "prose refusal", "filtered", "refusal field", "wrong schema", "no content")
PERMANENT: Final = ("400 policy", "400 other")
FAULTS: Final = (*TRANSIENT, *ANSWERED, *PERMANENT)
_ERRORS: Final[dict[str, tuple[int, dict[str, str], str, str]]] = {
    "429": (429, {}, "rate_limit_exceeded", "Rate limit reached"),
    "429 after": (429, {"retry-after": "0.05"}, "rate_limit_exceeded", "Rate limit reached"),
    "500": (500, {}, "server_error", "The server had an error"),
    "502": (502, {}, "bad_gateway", "Bad gateway"),
    "503": (503, {}, "overloaded", "Overloaded"),
    "400 policy": (400, {}, "content_policy_violation", "Your request was rejected by our safety system"),
    "400 other": (400, {}, "invalid_request_error", "Image is too small to be processed"),
    "401": (401, {}, "invalid_api_key", "Incorrect API key provided: {key}. It has been revoked."),
    "402": (402, {}, "payment_required", "Insufficient credits"),
    "quota": (429, {}, "insufficient_quota", "You exceeded your current quota, please check your plan and billing"),
    "no model": (404, {}, "model_not_found", "The model `m-1` does not exist or you do not have access to it"),
    "temperature": (400, {}, "invalid_request_error", "invalid temperature: only 1 is allowed for this model"),
    "long wait": (429, {"retry-after": "86400"}, "rate_limit_exceeded", "Daily limit"),
}


@dataclass(frozen=True)
class Asked:
    """What a request was: the model, its texts joined, its pictures' bytes, and the body."""

    model: str
    text: str
    pictures: tuple[bytes, ...]
    body: dict[str, Any]


def vote(asked: Asked) -> str:
    """An answer that depends on model and pictures alone."""
    told = hashlib.sha256(b"".join(asked.pictures) + asked.model.encode()).digest()[0]
    return json.dumps({"polarity": ("positive", "neutral", "negative")[told % 3]})


class Loopback:
    """The provider, its faults and its own count.

    Args:
        seed: Decides who meets a fault, and which.
        share: Of requests that meet one, 0..1.
        faults: Which ones they are.
        answer: The text of an answer.
        delay_s: How long an answer takes.
        key: The only key that is let in; None lets all in.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        share: float = 0.0,
        faults: tuple[str, ...] = FAULTS,
        answer: Callable[[Asked], str] = vote,
        delay_s: float = 0.0,
        key: str | None = None,
    ) -> None:
        self.seed, self.share, self.faults, self.answer = seed, share, faults, answer
        self.delay_s, self.key = delay_s, key
        # One entry per request, in order of arrival: what it met ("ok" or a fault).
        self.met: list[str] = []
        self.asked: list[Asked] = []
        self.sent_times: Counter[str] = Counter()
        # Every further request meets this.
        self.always: str | None = None
        # What a request meets by what it asks, where that is not left to luck.
        self.meets: Callable[[Asked], str] | None = None
        # Every request after so many hangs.
        self.stick_after: int | None = None
        # Dollars, where the provider says what a call costs.
        self.cost: float | None = None
        self.active = self.peak = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._stuck = asyncio.Event()

    def fault_of(self, digest: str, time: int) -> str:
        """What the n-th sending (from 0) of a body meets."""
        if self.always:
            return self.always
        luck = hashlib.sha256(f"{self.seed} {digest} {time}".encode()).digest()
        if int.from_bytes(luck[:4]) / 2**32 >= self.share:
            return "ok"
        return self.faults[int.from_bytes(luck[4:8]) % len(self.faults)]

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.active += 1
        self.peak = max(self.peak, self.active)
        try:
            return await self._answer(request, await request.read())
        finally:
            self.active -= 1

    async def _answer(self, request: web.Request, data: bytes) -> web.StreamResponse:
        digest = hashlib.sha256(data).hexdigest()
        met = self.fault_of(digest, self.sent_times[digest])
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key is not None and given != self.key:
            met = "401"
        if self.stick_after is not None and len(self.met) >= self.stick_after:
            met = "hang"
        self.sent_times[digest] += 1
        asked = asked_in(data)
        met = self.meets(asked) if self.meets else met
        self.met.append(met)
        self.asked.append(asked)
        await asyncio.sleep(self.delay_s)
        if met in _ERRORS:
            status, headers, body = error_of(met, given)
            return web.json_response(body, status=status, headers=headers)
        return await self._transport(request, met, json.dumps(self._body(asked, met)))

    async def _transport(self, request: web.Request, met: str, body: str) -> web.StreamResponse:
        """Send the body, or go wrong on the way."""
        if met == "reset":
            assert request.transport is not None
            request.transport.abort()
        elif met == "hang":
            await self._stuck.wait()
        elif met == "html":
            return web.Response(text="<html><body>Bad gateway</body></html>", content_type="text/html")
        elif met == "cut json":
            body = body[: len(body) // 2]
        elif met == "drip":
            response = web.StreamResponse(headers={"content-type": "application/json"})
            await response.prepare(request)
            with suppress(ConnectionError):  # who does not wait for it
                for byte in body.encode():
                    await response.write(bytes([byte]))
                    await asyncio.sleep(0.05)
            return response
        return web.Response(text=body, content_type="application/json")

    def _body(self, asked: Asked, met: str) -> dict[str, Any]:
        text: str | None = self.answer(asked)
        assert text is not None
        finish, refusal = "stop", None
        if met == "malformed":
            text = text[1:] + "}}"
        elif met == "truncated":
            text, finish = text[: len(text) // 2], "length"
        elif met == "prose refusal":
            text = "I'm sorry, but I can't infer the emotions of real people in images."
        elif met == "filtered":
            text, finish = None, "content_filter"
        elif met == "refusal field":
            text, refusal = None, "I can't help with identifying people."
        elif met == "wrong schema":
            text = json.dumps({"mood": 7})
        elif met == "no content":
            text = None
        message = {"role": "assistant", "content": text, "refusal": refusal}
        tokens_in, tokens_out = 100 + 300 * len(asked.pictures), 12
        return {
            "id": f"chat-{digest_of(asked)[:12]}",
            "object": "chat.completion",
            "created": 0,
            "model": asked.model,
            "choices": [] if met == "no choices" else [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
                **({} if self.cost is None else {"cost": self.cost}),
            },
        }

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    async def serve(self, port: int = 0) -> web.AppRunner:
        runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner

    def __enter__(self) -> "Loopback":
        asyncio.set_event_loop(None)
        self._runner = self._loop.run_until_complete(self.serve())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def close() -> None:
            self._stuck.set()
            await self._runner.cleanup()

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def error_of(met: str, key: str = "") -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers and body of a fault that is an error."""
    status, headers, code, words = _ERRORS[met]
    return status, headers, {"error": {"message": words.format(key=key), "type": code, "code": code, "param": None}}


def digest_of(asked: Asked) -> str:
    """What tells bodies apart, however they are spelt."""
    return hashlib.sha256(json.dumps(asked.body, sort_keys=True).encode()).hexdigest()


def asked_in(data: bytes) -> Asked:
    """What a request's body asks."""
    body = json.loads(data)
    texts, pictures = [], []
    for message in body["messages"]:
        content = message["content"]
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if part["type"] == "image_url":
                pictures.append(base64.b64decode(part["image_url"]["url"].partition(",")[2]))
            else:
                texts.append(part["text"])
    return Asked(body["model"], "\n".join(texts), tuple(pictures), body)


async def _main(port: int, delay_s: float) -> None:
    provider = Loopback(delay_s=delay_s)
    await provider.serve(port)
    print(provider.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2])))
