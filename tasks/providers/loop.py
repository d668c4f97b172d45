"""One event loop in a thread of its own, for the threads that wait for it."""

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="calls-loop").start()
    return loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, computed in the loop's thread while this one waits."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()
