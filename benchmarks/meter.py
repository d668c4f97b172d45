"""Counts calls and their own CPU time by wrapping functions where they live."""

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Place = tuple[str, Any, str]
"""What it is called, and the module or class that holds it under which name."""


class Meter:
    """Calls, and CPU seconds of the calling threads without those of metered calls inside, by name."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()
        self._inside = threading.local()

    def wrap(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, metered."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            outer, self._inside.seconds = getattr(self._inside, "seconds", 0.0), 0.0
            started = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.thread_time() - started
                with self._lock:
                    self.calls[what] += 1
                    self.seconds[what] = self.seconds.get(what, 0.0) + took - self._inside.seconds
                self._inside.seconds = outer + took

        return call


@contextmanager
def metered(places: Sequence[Place]) -> Iterator[Meter]:
    """Meter these functions; afterwards all is as it was."""
    meter = Meter()
    originals = [getattr(owner, name) for _, owner, name in places]
    for (what, owner, name), original in zip(places, originals, strict=True):
        setattr(owner, name, meter.wrap(what, original))
    try:
        yield meter
    finally:
        for (_, owner, name), original in zip(places, originals, strict=True):
            setattr(owner, name, original)
