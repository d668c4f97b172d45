"""Questions to a loopback provider, asked as a stage would; as a process of its own, for tests that kill or measure it.

`python -m tests.providers.asking FOLDER '{"url": ..., "questions": 700, ...}'` prints one line of JSON: how every
question ended, and the process's peak memory.
"""

import json
import os
import resource
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from schemas.routes import CallSettings, Route
from tasks.engine.calls import Calls
from tasks.engine.decode import encode_png
from tasks.engine.errors import FedbenchError, ItemFailed
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.providers.litellm import Question, ask_model

# A name that does not say it is a secret.
KEY_ENV: Final = "LOOPBACK_CRED"
KEY = "planted-5f2a9c-key"


class Answer(BaseModel, extra="forbid"):
    """What is asked for."""

    polarity: str


def picture(number: int, side: int = 16) -> Picture:
    """Noise, so that it does not compress: about side² · 3 bytes as PNG."""
    pixels = np.random.default_rng(number).integers(0, 256, (side, side, 3), np.uint8)
    return Picture(sha256(encode_png(pixels)), pixels)


def question(number: int = 0, side: int = 16, **changes: Any) -> Question:
    values = {"role": "voter", "prompt_sha256": "p" * 64, "system": "You judge.", "text": "Which polarity?"}
    return Question(**values | {"pictures": (picture(number, side),), "schema": Answer} | changes)


def route(url: str, **changes: Any) -> Route:
    """A route to a loopback provider, $1 per million tokens in and $10 out."""
    values = {"model": "openai/m-1", "provider": "loopback", "api_base": url, "key_env": KEY_ENV}
    price = {"input_per_mtok": 1.0, "output_per_mtok": 10.0, "as_of": "2026-11-01"}
    limit = {"concurrency": 1024}
    return Route.model_validate(values | {"price": price, "limit": limit, "timeout_s": 60} | changes)


def settle(calls: Calls, routes: Sequence[Route], number: int, side: int = 16) -> str:
    """How a question ended: the raw answer, or the kind of failure; a stop passes through."""
    try:
        return ask_model(calls, routes, question(number, side)).raw
    except ItemFailed as error:
        return f"{error.kind}{' for now' if error.retryable else ''}: {error}"


def ask_all(calls: Calls, routes: Sequence[Route], numbers: Sequence[int], side: int = 16) -> list[str]:
    """How every question ended, asked at once."""
    return calls.gather([partial(settle, calls, routes, number, side) for number in numbers])


def main(folder: Path, order: dict[str, Any]) -> dict[str, Any]:
    calls = Calls(folder / "answers.sqlite", CallSettings.model_validate(order.get("settings", {})), "run")
    routes, side = [route(order["url"], **order.get("route", {}))], order.get("side", 16)
    if order.get("first", True):
        ask_all(calls, routes, [1_000_000], side)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        ended, stopped = ask_all(calls, routes, range(order["questions"]), side), ""
    except FedbenchError as error:
        ended, stopped = [], str(error)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"ended": ended, "stopped": stopped, "grown_mib": grown / 1024, "pid": os.getpid()}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.loads(sys.argv[2]))))
