"""The door that Label Studio's webhook knocks at: it opens to the secret, hears nothing, and a flood is one ring."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer

import httpx
import pytest

from flows.listening import Bell, door
from tasks.boards.hooks import HEADER, PATH
from tasks.engine.errors import ConfigError

SECRET = "planted-secret"


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def server(bell: Bell) -> Iterator[ThreadingHTTPServer]:
    with door(0, SECRET, bell) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def knock(server: ThreadingHTTPServer, path: str = PATH, **more: object) -> int:
    url = f"http://127.0.0.1:{server.server_address[1]}{path}"
    return httpx.post(url, trust_env=False, **more).status_code  # type: ignore[arg-type]


@pytest.mark.parametrize("shown", [None, "", "wrong", SECRET + "x", SECRET[:-1], "ä€".encode()])
def test_a_stranger_stays_outside(server: ThreadingHTTPServer, bell: Bell, shown: str | bytes | None) -> None:
    headers = {} if shown is None else {HEADER: shown}
    assert knock(server, headers=headers, content=b'{"action": "ANNOTATION_CREATED"}') == 401
    assert not bell.wait(0.05, 0.01)


@pytest.mark.parametrize("body", [b"", b"\x00\xff garbage", b"{" * 1000, b"x" * 3_000_000])
def test_what_a_wake_up_says_is_not_read(
    server: ThreadingHTTPServer, bell: Bell, body: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        assert knock(server, headers={HEADER: SECRET}, content=body) == 204
    except httpx.HTTPError:
        assert len(body) > 1_000_000, "only who sends too much is hung up on"
    assert bell.wait(5, 0.01)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


def test_other_doors_are_none(server: ThreadingHTTPServer, bell: Bell) -> None:
    assert knock(server, "/other", headers={HEADER: SECRET}) == 404
    with socket.create_connection(server.server_address[:2], timeout=5) as raw:  # type: ignore[arg-type]
        raw.sendall(b"POST " + PATH.encode() + b" HTTP/1.1\r\nContent-Length: minus\r\n\r\n")
        assert b" 401 " in raw.recv(100)
    with socket.create_connection(server.server_address[:2], timeout=5) as raw:  # type: ignore[arg-type]
        raw.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
        raw.recv(1000)
    assert httpx.get(f"http://127.0.0.1:{server.server_address[1]}{PATH}", trust_env=False).status_code == 501
    assert not bell.wait(0.05, 0.01)
    with pytest.raises(ConfigError, match="is taken"):
        door(server.server_address[1], SECRET, bell)


def test_a_flood_is_one_ring_and_what_comes_later_another(server: ThreadingHTTPServer, bell: Bell) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: knock(server, headers={HEADER: SECRET}), range(60))) == {204}
    assert bell.wait(5, 0.05)
    assert not bell.wait(0.05, 0.01)
    assert knock(server, headers={HEADER: SECRET}) == 204
    assert bell.wait(5, 0.05)


def test_an_endless_flood_is_heard_too(bell: Bell) -> None:
    stop = threading.Event()

    def flood() -> None:
        while not stop.wait(0.005):
            bell.ring()

    thread = threading.Thread(target=flood)
    thread.start()
    began = time.monotonic()
    assert bell.wait(5, 0.05)
    assert time.monotonic() - began < 60
    stop.set()
    thread.join()
