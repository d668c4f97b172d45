"""An S3 store on this machine (moto's) behind a proxy that does to requests what bad networks and busy stores do."""

import http.client
import os
import random
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tasks.engine.places import place

SERVER: Final = Path(__file__).parents[1] / "objects/server.py"
# Before the store is asked; after it did what was asked; of a body that is on its way.
FAULTS: Final = ("503", "500", "hang up", "done, then hang up", "done, then 500", "cut")
ERROR: Final = b"<Error><Code>%s</Code><Message>no</Message></Error>"
LEASE_S: Final = "2"


@dataclass
class Far:
    """The store, and what requests to it meet.

    Attributes:
        port: Of the proxy.
        behind: Of the store.
        luck, share, faults: Which requests meet what.
        gone: From so many requests on, none is answered; None for never.
        met: How many met what.
    """

    port: int = 0
    behind: int = 0
    luck: random.Random = field(default_factory=lambda: random.Random(0))
    share: float = 0.0
    faults: tuple[str, ...] = FAULTS
    gone: int | None = None
    met: Counter[str] = field(default_factory=Counter)
    _one: Any = field(default_factory=threading.Lock)

    def fault(self) -> str:
        """What the next request meets; nothing as a rule."""
        with self._one:
            if self.gone is not None:
                self.gone -= 1
                if self.gone < 0:
                    return "hang up"
            found = self.luck.choice(self.faults) if self.luck.random() < self.share else ""
            self.met.update([found] if found else [])
            return found

    def well(self) -> None:
        self.share, self.gone = 0.0, None

    def bucket(self, name: str) -> str:
        """An empty bucket; the address of a folder in it."""
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.behind}/{name}", method="PUT"))
        return f"s3://{name}/some/where"

    def spot(self, url: str, cache: Path) -> "Spot":
        """A workspace here, as a machine with this cache finds it."""
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "FEDBENCH_CACHE": str(cache),
            "FEDBENCH_LEASE_S": LEASE_S,
        }
        return Spot(url, environment)


@contextmanager
def far_store() -> Iterator[Far]:
    """The store and its proxy."""
    store = subprocess.Popen([sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert store.stdin is not None
    assert store.stdout is not None
    far = Far(behind=int(store.stdout.readline()))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"far": far}))
    server.daemon_threads = True
    far.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield far
    finally:
        server.shutdown()
        server.server_close()
        store.stdin.close()
        store.wait(10)


@dataclass(frozen=True)
class Spot:
    """A workspace at an address, as a process on some machine finds it."""

    url: str
    environment: dict[str, str]

    def open(self, *, everything: bool = False) -> Path:
        """The folder of its copies; a request that failed is sent again without waiting long."""
        os.environ.update(self.environment)
        from botocore import retryhandler

        retryhandler.delay_exponential = lambda *_, **__: 0.01
        return place(self.url, everything=everything)


class _Handler(BaseHTTPRequestHandler):
    far: Far
    protocol_version = "HTTP/1.1"
    _behind: http.client.HTTPConnection | None = None

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.far.fault()
        if fault in ("503", "500"):
            self._say(int(fault), {"Content-Type": "application/xml"}, ERROR % _code(fault))
            return
        if fault == "hang up":
            self.close_connection = True
            return
        if self._behind is None:
            self._behind = http.client.HTTPConnection("127.0.0.1", self.far.behind)
        self._behind.request(self.command, self.path, body, dict(self.headers))
        answer = self._behind.getresponse()
        data, headers = answer.read(), dict(answer.getheaders())
        if fault == "done, then hang up":
            self.close_connection = True
        elif fault == "done, then 500":
            self._say(500, {"Content-Type": "application/xml"}, ERROR % _code("500"))
        elif fault == "cut" and data and self.command == "GET":
            self._say(answer.status, headers, data, cut=self.far.luck.randrange(len(data)))
        else:
            self._say(answer.status, headers, data)

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the names that http.server looks for

    def _say(self, status: int, headers: dict[str, str], data: bytes, cut: int | None = None) -> None:
        length = headers.get("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[:cut])
        if cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _code(status: str) -> bytes:
    return b"SlowDown" if status == "503" else b"InternalError"
