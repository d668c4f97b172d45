"""A Prefect server with workers on this machine: started together, watched, and ended together."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from flows.leash import HOLDER
from flows.places import REPORTS_URL
from flows.server import trouble
from tasks.engine.errors import WorkspaceError
from tasks.engine.folder_lock import if_free

ROOT: Final = Path(__file__).parents[1]
_LIBC: Final = ctypes.CDLL(None)
_READY_S: Final = 180.0  # a fresh database on a busy machine
_GRACE_S: Final = 10.0
_OFTEN: Final = 5  # as many ends of one child within a minute, and it is given up


@dataclass
class Child:
    """A process of ours: how it is started, where it writes, and when it was (for giving up)."""

    name: str
    command: list[str]
    log: Path
    env: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    starts: tuple[float, ...] = ()

    def start(self) -> None:
        now = time.monotonic()
        self.starts = (*(then for then in self.starts if now - then < 60), now)
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.env),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the terminal's Ctrl-C is for us; we end them in order
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, of a library that is loaded
            )

    @property
    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def last_words(self) -> str:
        """Why it ended, as far as it said."""
        if self.process is not None and (self.process.poll() or 0) < 0:
            return f"killed by signal {-self.process.returncode}"
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else "it said nothing"

    def stop(self) -> None:
        """End it and whatever it started: politely, then not."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE_S)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _die_with_parent() -> None:
    """Where the kernel can (Linux): a child does not outlive us, even after `kill -9`."""
    if sys.platform == "linux":
        _LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def only_one(home: Path) -> AbstractContextManager[bool]:
    """Holds a server's folder; whether this process does now, and no other."""
    return if_free(home / "server.lock")


def running(home: Path) -> dict[str, Any]:
    """What the process that holds the folder wrote down: `url`, `reports`, `pid`; empty while it starts."""
    with suppress(FileNotFoundError, json.JSONDecodeError):
        found: dict[str, Any] = json.loads((home / "server.json").read_text())
        return found
    return {}


def port_for(wanted: int, preferred: int = 4200) -> int:
    """The port that is asked for; without one (0) Prefect's usual, or where that is taken a free one.

    Raises:
        WorkspaceError: Somebody listens on the port that is asked for.
    """
    for port in (wanted,) if wanted else (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                free: int = probe.getsockname()[1]
                return free
    raise WorkspaceError(f"port {wanted} is taken", "stop what runs there, or give --port")


def environment(home: Path, workspace: str, port: int, reports: str) -> dict[str, str]:
    """What server, workers and their runs start with; a database that the user has set stays as it is."""
    url = f"http://127.0.0.1:{port}/api"
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": url,
        "PREFECT_UI_URL": url.removesuffix("/api"),
        "PREFECT_SERVER_UI_API_URL": url,
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
        "PYTHONPATH": path,
        "FEDBENCH_WORKSPACE": workspace,
        REPORTS_URL: reports,
        HOLDER: str(os.getpid()),
    }


def wait_until_up(server: Child, url: str) -> None:
    """Wait for the API.

    Raises:
        WorkspaceError: The server ended, or does not answer in time.
    """
    deadline = time.monotonic() + _READY_S
    while trouble(url):
        if server.ended:
            raise WorkspaceError(f"the Prefect server ended: {server.last_words()}", f"see {server.log}")
        if time.monotonic() > deadline:
            raise WorkspaceError(f"the Prefect server does not answer after {_READY_S:.0f} s", f"see {server.log}")
        time.sleep(0.2)


def watch(children: list[Child], tell: Callable[[str], None], look: Callable[[], None]) -> None:
    """Start again whatever ends by itself, until somebody stops us; `look` is called every few seconds.

    Raises:
        WorkspaceError: A process ends again and again.
    """
    for tick in range(sys.maxsize):
        for child in children:
            if child.ended:
                if len(child.starts) >= _OFTEN:
                    raise WorkspaceError(f"the {child.name} ends again and again: {child.last_words()}", f"{child.log}")
                tell(f"the {child.name} ended ({child.last_words()}); it is started again")
                child.start()
        if tick % 10 == 0:
            look()
        time.sleep(0.5)
