"""What runs on a Ray worker around the work itself: is this the same program, the same workspace, the same GPU?"""

import os
import socket
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from tasks.engine.answer_file import leave_to_coordinator
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.places import place
from tasks.engine.rows import Commit
from tasks.engine.store import Store
from tasks.rounds import Job

ROOT: Final = Path(__file__).parents[1]
_ROOMS: Final = ("flows", "tasks", "prompts", "schemas")
_PROGRAM: Final = {".py", ".j2", ".yaml"}
_GPUS: Final = "CUDA_VISIBLE_DEVICES"

_gpus: list[str] = []  # that this process has seen; a model stays on the first one


@cache
def program() -> str:
    """Digest of the program's own files in this process's installation."""
    files = sorted(path for room in _ROOMS for path in (ROOT / room).rglob("*") if path.suffix in _PROGRAM)
    return sha256("".join(f"{path.relative_to(ROOT)} {sha256(path.read_bytes())}\n" for path in files).encode())


def on_node(work: Callable[[Job], dict[str, Commit]], expected: str, job: Job) -> dict[str, Commit]:
    """Do a job on a worker of the cluster.

    Args:
        work: Does it.
        expected: The coordinator's `program()`.
        job: The job.

    Raises:
        WorkspaceError: The node runs another fedbench, or does not see the workspace.
    """
    node = socket.gethostname()
    if program() != expected:
        raise WorkspaceError(f"the Ray node {node} runs another fedbench", f"install the same one there ({ROOT})")
    if not Store(place(job.workspace, look=False)).exists(f"runs/{job.config.name}/config.json"):
        raise WorkspaceError(
            f"the Ray node {node} does not see the workspace {job.workspace}",
            "put it on storage that all nodes mount at the same place",
        )
    leave_to_coordinator()
    _stay_on_one_gpu()
    return work(job)


def _stay_on_one_gpu() -> None:
    """End this process if it is given another GPU than before: its model lies on that one. Ray starts the task anew."""
    seen = os.environ.get(_GPUS, "")
    if seen and seen not in _gpus:
        if _gpus:
            sys.stdout.flush()
            os._exit(0)
        _gpus.append(seen)
