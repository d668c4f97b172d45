"""A bounded memory of what was measured, shared by the threads of a process."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """The last `size` results by key. A key asked for by several threads at once is computed by one of them.

    Args:
        size: How many results are kept; the least recently used one goes first.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, Future[T]] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The remembered result, or that of `compute`; an exception reaches every waiting thread and is forgotten."""
        with self._lock:
            known = self._results.get(key)
            future: Future[T] = known or Future()
            self._results[key] = future
            self._results.move_to_end(key)
            while len(self._results) > self._size:
                self._results.popitem(last=False)
        if known is not None:
            return known.result()
        try:
            future.set_result(compute())
        except BaseException as error:
            with self._lock:
                if self._results.get(key) is future:
                    del self._results[key]
            future.set_exception(error)
            raise
        return future.result()

    def clear(self) -> None:
        """Forget everything (tests and benchmarks)."""
        with self._lock:
            self._results.clear()
