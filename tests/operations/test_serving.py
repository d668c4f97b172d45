"""Processes that are started together: watched, ended with whatever they started, and gone with who started them."""

import os
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from flows.server import trouble
from flows.serving import ROOT, Child, only_one, port_for, running, watch
from flows.serving_up import _alerts
from tasks.engine.errors import WorkspaceError
from tests.commands import environment, fedbench, one_line, run, wait_until


def child(folder: Path, code: str) -> Child:
    return Child("sleeper", [sys.executable, "-c", code], folder / "sleeper.log", os.environ)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_stopped_child_takes_its_own_along(tmp_path: Path) -> None:
    started = child(
        tmp_path,
        "import subprocess, sys, time, signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"  # it is polite itself, and leaves somebody behind
        f"p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid))\n"
        "time.sleep(600)",
    )
    started.start()
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 30, "it is up")
    grandchild = int((tmp_path / "pid").read_text())
    assert alive(grandchild)
    started.stop()
    assert started.ended
    wait_until(lambda: not alive(grandchild), 10, "the grandchild is gone")
    started.stop()  # twice is as good as once


def test_what_ends_again_and_again_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    told: list[str] = []
    broken = child(tmp_path, "import sys; print('no such thing'); sys.exit(1)")
    broken.start()
    with pytest.raises(WorkspaceError, match="again and again: no such thing"):
        watch([broken], told.append, lambda: None)
    assert len(told) == 4
    assert all("no such thing" in one for one in told)


@pytest.mark.skipif(sys.platform != "linux", reason="only this kernel ends children with their parent")
def test_children_die_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from flows.serving import Child\n"
        "words = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        f"one = Child('x', words, Path({str(tmp_path / 'log')!r}), os.environ)\n"
        "one.start()\n"
        "print(one.process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert alive(pid)
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), 10, "the child is gone")


def test_a_run_ends_with_the_command_that_its_worker_belongs_to() -> None:
    code = "import time; from flows import leash; leash.hold(); leash.hold(); print('up', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as holder:
        env = os.environ | {"PYTHONPATH": str(ROOT), "FEDBENCH_SERVER_PID": str(holder.pid)}
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, start_new_session=True) as run_:
            assert run_.stdout
            assert run_.stdout.readline() == b"up\n"
            assert run_.poll() is None
            holder.kill()  # and nobody collects it
            assert run_.wait(30) == 1


def test_a_folder_has_one_server(tmp_path: Path) -> None:
    with only_one(tmp_path / "home") as first:
        assert first
        with only_one(tmp_path / "home") as second:
            assert second is False
        assert running(tmp_path / "home") == {}
    with only_one(tmp_path / "home") as third:
        assert third


def test_a_port_is_the_one_asked_for_or_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(WorkspaceError, match=f"port {port} is taken"):
            port_for(port)
        assert port_for(0, preferred=port) not in (0, port)
    assert port_for(port) == port


@pytest.mark.parametrize(("url", "code"), [("", 2), ("http://127.0.0.1:9/api", 7)])
def test_no_server_is_said_in_words(tmp_path: Path, url: str, code: int) -> None:
    told = run(fedbench("server", "automations"), environment(tmp_path / "home", PREFECT_API_URL=url), tmp_path)
    assert told.returncode == code
    message, hint = one_line(told.stderr)
    assert "Prefect server" in message
    assert "PREFECT_API_URL" in hint


class Busy(BaseHTTPRequestHandler):
    """Well as far as its health goes, and otherwise says what a test wants."""

    words = b""

    def do_GET(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" if self.path.startswith("/api/") else self.words)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(self.words)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize("words", [b"HTTP/1.1 503 Busy\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n{", b"SSH-2.0\r\n", b""])
def test_a_busy_server_does_not_end_the_watching(words: bytes) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Busy,), {"words": words})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        assert trouble(f"{here}/api") == ""
        _alerts(f"{here}/api")()
        assert trouble(f"{here}/other") or b"200" in words
        server.shutdown()
