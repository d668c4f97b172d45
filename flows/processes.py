"""Processes of this machine that work on shards. One that dies costs the shard it had, which another does again."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from queue import SimpleQueue
from typing import Any, Final

from tasks.engine.answer_file import leave_to_coordinator
from tasks.engine.errors import WorkspaceError

TRIES: Final = 4


class Processes:
    """So many single processes, each with its models loaded.

    Not one pool of many: there, one death fails the shards of all.
    """

    def __init__(self, count: int) -> None:
        self._idle: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()
        for _ in range(count):
            self._idle.put(_one())

    def do(self, work: Callable[[], Any]) -> Any:
        """Do a piece of work in a process that is idle; waits for one.

        Args:
            work: Can be pickled, and done again.

        Raises:
            WorkspaceError: Every process that was given it died.
        """
        process = self._idle.get()
        try:
            for _ in range(TRIES):
                try:
                    return process.submit(work).result()
                except BrokenProcessPool:
                    process.shutdown(wait=False)
                    process = _one()
        finally:
            self._idle.put(process)
        raise WorkspaceError(
            f"{TRIES} processes died, one after another, of the same shard", "is there memory enough? lower `workers`"
        )

    def close(self) -> None:
        """End all that are idle."""
        while not self._idle.empty():
            self._idle.get().shutdown(wait=False, cancel_futures=True)


def _one() -> ProcessPoolExecutor:
    # Spawned: models hang after a fork.
    return ProcessPoolExecutor(1, get_context("spawn"), _begin)


def _begin() -> None:
    """Once in every process. However the parent ends, it does; its queue would not tell: both ends are open here."""
    leave_to_coordinator()
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def processes(count: int) -> Iterator[Processes]:
    """Processes for as long as the context lasts; started when first needed."""
    held = Processes(count)
    try:
        yield held
    finally:
        held.close()
