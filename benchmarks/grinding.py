"""Work of a fixed amount for the benchmark of scaling, and the instant adapters whose edits take it, in any process.

    python -m benchmarks.grinding COUNT     # grinds so many times, and prints the seconds that took

How much, and whether it holds Python's lock, is said by the environment (FEDBENCH_GRIND, as "python:300000"), which
reaches every process that works on a shard, wherever that was started.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Final

from benchmarks import steady
from tasks import pipeline
from tasks.engine.rows import Commit
from tasks.rounds import Job
from tests import fakes

SAY: Final = "FEDBENCH_GRIND"
_BLOCK: Final = bytes(2**20)


def python(amount: int) -> None:
    """Arithmetic, which holds the lock, as decoding an answer or weighing votes does."""
    value = 1
    for _ in range(amount):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF


def native(amount: int) -> None:
    """A hash over megabytes, which lets the lock go, as models and codecs do."""
    for _ in range(amount):
        hashlib.sha256(_BLOCK).digest()


KINDS: Final[dict[str, Callable[[int], None]]] = {"python": python, "native": native}


def amount(kind: str, seconds: float) -> int:
    """How much of a kind takes about so many seconds of a core, by the fastest of five trials."""
    probe = 200_000 if kind == "python" else 50
    took = []
    for _ in range(5):
        began = time.thread_time()
        KINDS[kind](probe)
        took.append(time.thread_time() - began)
    return max(1, round(probe * seconds / min(took)))


def grind() -> None:
    """As much as the environment says."""
    kind, much = os.environ[SAY].split(":")
    KINDS[kind](int(much))


class GrindingWorld(steady.CountingWorld):
    """Every edit takes its work; nothing else does."""

    def ask(self, role: str, subject: str) -> None:
        super().ask(role, subject)
        if role == "edit":
            grind()


@cache
def install() -> None:
    """The adapters, in this process."""
    steady.install()
    fakes._world = GrindingWorld()


def work(job: Job) -> dict[str, Commit]:
    """As `tasks.pipeline.work`, with these adapters."""
    install()
    return pipeline.work(job)


if __name__ == "__main__":
    started = time.perf_counter()
    for _ in range(int(sys.argv[1])):
        grind()
    print(time.perf_counter() - started)
