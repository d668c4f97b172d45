"""The `fedbench` command, and other programs, as real processes with an environment of their own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from flows import quiet

ROOT = Path(__file__).parent.parent


def environment(home: Path, **more: str) -> dict[str, str]:
    """This process's environment without settings of Prefect's, fedbench's or flows/quiet.py's.

    Args:
        home: What PREFECT_HOME is set to, so that nothing of the user's is read or written.
        more: What to add.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in quiet.SETTINGS and not name.startswith("PREFECT_") and name not in {"CI", "FEDBENCH_WORKSPACE"}
    }
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return kept | {"PREFECT_HOME": str(home), "PYTHONPATH": os.pathsep.join(paths), "NO_COLOR": "1"} | more


def fedbench(*words: str | Path) -> list[str]:
    """The command line of a `fedbench` command."""
    return [sys.executable, "-m", "flows.cli", *map(str, words)]


def run(
    command: Sequence[str], env: dict[str, str], cwd: Path, timeout: float = 180
) -> subprocess.CompletedProcess[str]:
    """Run to the end and take what it said."""
    return subprocess.run(command, env=env, cwd=cwd, timeout=timeout, text=True, capture_output=True, check=False)


@contextmanager
def started(command: Sequence[str], env: dict[str, str], cwd: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, its output in a file; at the end the group is asked to stop, then killed."""
    with log.open("ab") as sink:
        process = subprocess.Popen(command, env=env, cwd=cwd, stdout=sink, stderr=sink, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
        kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to everything that a process started with `started` has in its group, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    wait_until(lambda: not _group(process.pid), 30, "the killed group is gone")


def _group(group: int) -> list[int]:
    """The living processes of a group."""
    return [pid for pid, (_, of_group, state) in _processes().items() if of_group == group and state != "Z"]


def wait_until(true: Callable[[], object], seconds: float, what: str, *, pause: float = 0.05) -> None:
    """Ask every `pause` seconds until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds:g} s in vain: {what}"
        time.sleep(pause)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tree_rss(root: int) -> int:
    """Bytes of memory that a process and all its descendants hold now; shared pages count in each."""
    processes = _processes()
    family, total = {root}, 0
    for pid, (parent, _, _) in sorted(processes.items()):  # parents have lower ids, but for a wrap-around
        if parent in family:
            family.add(pid)
    for pid in family & processes.keys():
        with suppress(OSError, IndexError):  # it may have ended
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def _processes() -> dict[int, tuple[int, int, str]]:
    """By id: parent, process group and state."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            except (OSError, ValueError):
                continue
            found[int(folder.name)] = (int(parent), int(group), state)
    return found


def one_line(stderr: str) -> tuple[str, str]:
    """The message and the hint of an error that is told as it should be: a line, and perhaps an indented one."""
    assert "Traceback" not in stderr, stderr
    first, *rest = stderr.splitlines()
    assert first.startswith("fedbench: "), stderr
    assert len(rest) <= 1, stderr
    assert all(line.startswith("  ") for line in rest), stderr
    return first.removeprefix("fedbench: "), "".join(rest).strip()
