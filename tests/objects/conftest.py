"""A store of objects on this machine, an empty bucket in it, and caches that are ours."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.engine import places
from tasks.engine.bucket import Bucket
from tests import fakes

SERVER = Path(__file__).parent / "server.py"
SECRET = "a-secret-that-nobody-may-print"


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    pytest.importorskip("moto.server", reason="needs requirements/s3.txt and s3-dev.txt (make test-s3)")
    server = subprocess.Popen(
        [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdin is not None
    assert server.stdout is not None
    yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    server.stdin.close()
    server.wait(10)


@pytest.fixture
def bucket(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bucket:
    """An empty bucket's folder, and an environment in which it is found."""
    values = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "FEDBENCH_CACHE": str(tmp_path / "cache"),
        "FEDBENCH_LEASE_S": "4",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    forget()
    fakes.install()
    found = Bucket(f"s3://tests-{abs(hash(request.node.name)) % 10**12}/some/where")
    found._client.create_bucket(Bucket=found.name)
    return found


def forget() -> None:
    """Open everything as a process that has just started would."""
    places._by_url.clear()
    places._by_root.clear()


def elsewhere(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Go on as another machine would: with a cache of its own."""
    monkeypatch.setenv("FEDBENCH_CACHE", str(folder))
    forget()
