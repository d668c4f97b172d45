"""What our door costs beside litellm: answers per second with 64 in flight, through `ask_model` and bare clients.

One loopback server in a process of its own, equal bodies with one picture each, in one run, in turn: `ask_model`
(queue, budget, intent and answer on disk, pictures encoded), bare `litellm.acompletion` (data URLs ready, nothing
kept), and bare httpx. It fails only if a side did not get all its answers or they differ, never on a clock.
"""
# ruff: noqa: E402 - the repo need not be installed

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import httpx

from schemas.routes import CallSettings, Route
from tasks.engine.calls import Calls
from tasks.engine.decode import encode_png
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.providers import litellm as ours
from tasks.providers import loop, pictures
from tests.photos import photo
from tests.providers.asking import Answer

VOTERS: Final = 5
Send = Callable[[dict[str, Any]], Awaitable[str]]


def shown(count: int, side: int) -> list[Picture]:
    """Crops of a real photo, told apart by one pixel."""
    import cv2

    base = cv2.resize(photo("happy").pixels, (side, side), interpolation=cv2.INTER_AREA)
    made = []
    for number in range(count):
        pixels = base.copy()
        pixels[0, 0] = number % 256, number // 256, 0
        made.append(Picture(sha256(encode_png(pixels)), pixels))
    return made


@contextmanager
def server(delay_s: float) -> Iterator[str]:
    """A provider in a process of its own; its address."""
    command = [sys.executable, "-m", "tests.providers.loopback", "0", str(delay_s)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)


def question(picture: Picture) -> ours.Question:
    text = 'Which polarity does the face show? Answer in JSON: {"polarity": "positive" | "neutral" | "negative"}.'
    return ours.Question("voter", "p" * 64, "You judge faces.", text, (picture,), Answer)


def through_us(ways: list[Route], asked: list[Picture], in_flight: int) -> list[str]:
    """The answers of every voter about every picture, through `ask_model`."""
    pictures._cache.clear()
    with tempfile.TemporaryDirectory() as folder:
        calls = Calls(Path(folder) / "answers.sqlite", CallSettings(in_flight=in_flight), "benchmark")
        jobs = [
            lambda way=way, picture=picture: ours.ask_model(calls, [way], question(picture))
            for picture in asked
            for way in ways
        ]
        said = calls.gather(jobs)
        (*totals,) = calls.totals()
        assert sum(total.calls for total in totals) == len(said) == len(jobs)
        calls.close()
    return [one.text for one in said]


def bodies(ways: list[Route], asked: list[Picture]) -> list[dict[str, Any]]:
    """What `ask_model` sends, ready."""
    made = []
    for picture in asked:
        for way in ways:
            sender = ours._Sender(way, question(picture))
            made.append(sender._settings() | {"model": way.model, "messages": sender._messages()})
    return made


def through(send: Send, ready: list[dict[str, Any]], in_flight: int) -> list[str]:
    """The answers to all bodies, through a bare asynchronous client."""

    async def all_of_them() -> list[str]:
        gate = asyncio.Semaphore(in_flight)

        async def one(body: dict[str, Any]) -> str:
            async with gate:
                return await send(body)

        return await asyncio.gather(*map(one, ready))

    return loop.run(all_of_them())


def through_litellm(url: str) -> Send:
    client = ours.litellm_module()

    async def send(body: dict[str, Any]) -> str:
        answer = await client.acompletion(
            **body, api_base=url, api_key="none", num_retries=0, max_retries=0, timeout=120
        )
        return str(answer.choices[0].message.content)

    return send


def through_httpx(url: str, in_flight: int) -> Send:
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    client = httpx.AsyncClient(limits=limits, timeout=120, trust_env=False)

    async def send(body: dict[str, Any]) -> str:
        plain = body | {"model": body["model"].partition("/")[2]}
        answer = await client.post(f"{url}/chat/completions", json=plain, headers={"authorization": "Bearer none"})
        return str(answer.json()["choices"][0]["message"]["content"])

    return send


@dataclass(frozen=True)
class Took:
    """One side of one round: answers, answers per second, CPU milliseconds of this process per answer."""

    said: list[str]
    rate: float
    cpu_ms: float


def timed(ask: Callable[[int], list[str]], count: int) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    said = ask(count)
    return Took(said, count / (time.perf_counter() - wall), (time.process_time() - cpu) / count * 1000)


def _some(send: Send, ready: list[dict[str, Any]], in_flight: int, count: int) -> list[str]:
    return through(send, ready[:count], in_flight)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=100, help=f"each is asked of {VOTERS} voters (default: 100)")
    parser.add_argument("--side", type=int, default=512, help="pixels (default: 512)")
    parser.add_argument("--in-flight", type=int, default=64, help="calls at once (default: 64)")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds the server takes (default: 0.2)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    args = parser.parse_args()
    asked = shown(args.pictures, args.side)
    with server(args.delay) as url:
        limit = {"concurrency": args.in_flight}
        ways = [
            Route.model_validate({"model": f"openai/m-{n}", "provider": f"p-{n}", "api_base": url, "limit": limit})
            for n in range(VOTERS)
        ]
        ready = bodies(ways, asked)
        sends = {"litellm.acompletion": through_litellm(url), "httpx": through_httpx(url, args.in_flight)}
        sides: dict[str, Callable[[int], list[str]]] = {
            "ask_model": lambda count: through_us(ways, asked[: count // VOTERS], args.in_flight),
            **{name: partial(_some, send, ready, args.in_flight) for name, send in sends.items()},
        }
        for ask in sides.values():
            ask(max(args.in_flight, VOTERS))
        size = len(json.dumps(ready[0])) / 1000
        print(f"{len(ready)} calls of {size:.0f} kB, {args.in_flight} in flight, {args.delay:g} s each")
        ratios: list[tuple[float, float]] = []
        for number in range(1, args.rounds + 1):
            took = {name: timed(ask, len(ready)) for name, ask in sides.items()}
            if len({tuple(each.said) for each in took.values()}) != 1:
                raise SystemExit("the answers differ: the sides did not ask the same")
            told = ", ".join(f"{name} {each.rate:.0f}/s {each.cpu_ms:.1f} ms" for name, each in took.items())
            mine, bare = took["ask_model"], took["litellm.acompletion"]
            ratios.append((mine.rate / bare.rate, bare.cpu_ms / mine.cpu_ms))
            print(f"  round {number}: {told} of CPU each; ours over litellm {ratios[-1][0]:.2f}", flush=True)
        rate, cpu = (statistics.median(each) for each in zip(*ratios, strict=True))
        print(f"median of the rates {rate:.2f} (target 0.8), by CPU {cpu:.2f}")


if __name__ == "__main__":
    main()
