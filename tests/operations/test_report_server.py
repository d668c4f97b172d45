"""The report server gives reports and their pictures to this machine's browsers, and nothing else of a workspace."""

import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from flows.report_server import reports_served
from tests.commands import wait_until


def fetch(url: str, **headers: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        return bytes(answer.read())


def test_reports_and_pictures_alone_are_served(tmp_path: Path) -> None:
    for name in ("reports/demo/index.html", "images/ab/abc.png", "answers.sqlite", "review/access.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    with reports_served(tmp_path) as url:
        root = url.removesuffix("/reports")
        assert fetch(f"{url}/demo/index.html") == b"reports/demo/index.html"
        assert fetch(f"{root}/images/ab/abc.png") == b"images/ab/abc.png"
        for hidden in (
            "answers.sqlite",
            "review/access.json",
            "reports/../answers.sqlite",
            "reports/%2e%2e/answers.sqlite",
            "//answers.sqlite",
            "reports/",
            "images/ab/",
            "reports/%00",
            "",
        ):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                fetch(f"{root}/{hidden}")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(f"{url}/demo/index.html", Host="evil.example:80")


def test_a_browser_that_hangs_up_midway_is_no_news(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    (tmp_path / "images").mkdir()
    (tmp_path / "images/large.png").write_bytes(bytes(30_000_000))
    with reports_served(tmp_path) as url:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) as browser:
                browser.sendall(b"GET /images/large.png HTTP/1.0\r\nHost: localhost:1\r\n\r\n")
                assert browser.recv(1000).startswith(b"HTTP/1.0 200")
        wait_until(lambda: threading.active_count() == before + 1, 10, "they are done with")
        (tmp_path / "images/small.png").write_bytes(b"there")
        assert fetch(f"{url.removesuffix('/reports')}/images/small.png") == b"there"
    assert capfd.readouterr().err == ""
