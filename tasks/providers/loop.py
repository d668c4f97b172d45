"""One event loop in a thread of its own, for the threads that wait for it."""

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, Final, TypeVar

T = TypeVar("T")
_lock: Final = threading.Lock()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="calls-loop").start()
    return loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, computed in the loop's thread while this one waits."""
    with _lock:  # `cache` alone would make one for each thread that comes first
        loop = _loop()
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
