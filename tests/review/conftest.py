"""A real Label Studio for the tests marked `studio`: installed once, one server for the module, ended by its id."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from flows import studio
from schemas.config import BuildConfig
from tasks.boards.access import ADMIN, read_access, write_access
from tasks.boards.studio import Studio
from tasks.engine.errors import WaitingForReview
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.reviewing import Review, review_of
from tests import fakes
from tests.commands import free_port, wait_until
from tests.review.asking import config


@dataclass
class Server:
    """A workspace whose build waits for people, and the server that is to ask them."""

    workspace: Path
    port: int
    log: Path
    config: BuildConfig
    passwords: dict[str, tuple[str, str]]
    process: subprocess.Popen[bytes] | None = field(default=None)
    workers: int = 0

    @property
    def store(self) -> Store:
        return Store(self.workspace)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, on another port where somebody took this one since it was found free."""
        for _ in range(3):
            self._launch()
            wait_until(lambda: self.ended() or self.ours(), 180, "Label Studio is up", pause=0.5)
            if not self.ended():
                return
            assert "already in use" in self.log.read_text()[-2000:], self.log.read_text()[-2000:]
            self.port = free_port()
            write_access(self.store, read_access(self.store).model_copy(update={"url": self.url}))
        raise AssertionError("no port is free for long enough")

    def _launch(self) -> None:
        with self.log.open("ab") as sink:
            self.process = subprocess.Popen(
                studio.command(studio.install(), self.port, self.workers),
                env=studio.environment(self.workspace),
                cwd=self.store.path(studio.DATA),
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def ours(self) -> bool:
        """Whether what answers is this server, and not one that had the port before: it takes our token."""
        token = read_access(self.store).token(ADMIN)
        try:
            return httpx.post(
                f"{self.url}/api/token/refresh/", json={"refresh": token}, timeout=5, trust_env=False
            ).is_success
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """SIGKILL, to the server's own group alone."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)

    def person(self, name: str) -> Studio:
        return Studio(self.url, read_access(self.store).token(name), pause=0.05)

    def review(self, *sets: str) -> Review:
        return review_of(open_run(self.workspace, config(*sets, sources=24), extend=False))


@pytest.fixture(scope="session")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[str, str]]]:
    """A data folder of Label Studio with five accounts, for copying: to migrate a database takes half a minute."""
    store = Store(tmp_path_factory.mktemp("accounts"))
    passwords = studio.make_accounts(store, studio.install(), "http://127.0.0.1:1", 4)
    return store.path("review"), passwords


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, accounts: tuple[Path, dict[str, tuple[str, str]]]
) -> Iterator[Server]:
    fakes.install()
    workspace = tmp_path_factory.mktemp("studio") / "workspace"
    settings = config(sources=24)
    with pytest.raises(WaitingForReview):
        fakes.build(workspace, settings)
    shutil.copytree(accounts[0], workspace / "review", dirs_exist_ok=True)
    one = Server(workspace, free_port(), workspace.parent / "server.log", settings, accounts[1])
    write_access(one.store, read_access(one.store).model_copy(update={"url": one.url}))
    try:
        one.start()
        yield one
    finally:
        one.kill()
        shutil.rmtree(workspace / studio.DATA, ignore_errors=True)
