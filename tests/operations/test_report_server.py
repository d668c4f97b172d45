"""The report server gives reports and their pictures to this machine's browsers, and nothing else of a workspace."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from flows.report_server import reports_served


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
            "",
        ):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                fetch(f"{root}/{hidden}")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(f"{url}/demo/index.html", Host="evil.example:80")
