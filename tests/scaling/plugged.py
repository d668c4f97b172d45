"""The fakes in processes that pytest never saw: `work` installs them there first, and writes down what it asks."""

import os
from functools import cache
from pathlib import Path

from flows import ray_worker
from tasks import pipeline
from tasks.engine.rows import Commit
from tasks.rounds import Job
from tests import fakes


def work(job: Job) -> dict[str, Commit]:
    """As `tasks.pipeline.work`; whoever runs it needs no more than this repository."""
    _install(Path(job.workspace).parent / "asked")
    return pipeline.work(job)


def asked(workspace: Path) -> list[tuple[str, str, int]]:
    """What was asked of the fakes in a workspace: role, subject, and the id of the process."""
    notes = workspace.parent / "asked"
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [(role, subject, int(pid)) for role, subject, pid in (line.split(" ") for line in lines)]


@cache
def _install(notes: Path) -> None:
    sink = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(role: str, subject: str) -> None:
        os.write(sink, f"{role} {subject} {os.getpid()}\n".encode())

    fakes.install().trouble = note


def with_another_gpu(notes: str) -> list[int]:
    """The ids of two processes: of one that had another GPU before, and of the one that Ray gave its task to then."""
    path = Path(notes)
    if not path.exists():
        ray_worker._gpus.append("the other")
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")
    os.environ["CUDA_VISIBLE_DEVICES"] = "this"
    ray_worker._stay_on_one_gpu()
    return [int(pid) for pid in path.read_text().split()]
