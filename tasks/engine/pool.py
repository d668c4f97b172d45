"""Jobs that mostly wait, run at once by a bounded number of threads."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")
_worker: Final = threading.local()


def at_work() -> bool:
    """Whether this thread does a job of a pool."""
    return getattr(_worker, "at_work", False)


class Pool:
    """So many threads, for all who share it; started when they are needed.

    They are daemons: a process that is told to end does not wait for a provider's answer. What was asked and not
    answered stands in the ledger.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any], threading.Event]] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0

    def gather(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Run jobs at once; their results, in order. Within a job of a pool they run one by one, in its thread.

        Raises:
            Exception: What a job raised, the first in their order: the others under way are waited for, the rest is
                not begun.
        """
        if at_work():
            return [job() for job in jobs]
        futures: list[Future[T]] = [Future() for _ in jobs]
        failed = threading.Event()
        for future, job in zip(futures, jobs, strict=True):
            self._jobs.put((future, job, failed))
        self._start(len(jobs))
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            under_way = [future for future in futures if not future.cancel()]
        wait(under_way)
        for future in under_way:
            future.result()
        return [future.result() for future in futures]

    def _start(self, wanted: int) -> None:
        with self._lock:
            while self._started < min(self._size, self._started + wanted):
                wanted -= 1
                self._started += 1
                threading.Thread(target=self._work, daemon=True, name=f"calls-{self._started}").start()

    def _work(self) -> None:
        _worker.at_work = True
        while True:
            future, job, failed = self._jobs.get()
            # Whoever gathers may wake late; until then the workers themselves begin nothing more.
            if failed.is_set():
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 - raised again by whoever gathers
                failed.set()
                future.set_exception(error)
            # Else this thread would keep the job's pictures until its next one.
            del future, job, failed
