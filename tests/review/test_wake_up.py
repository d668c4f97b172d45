"""A real Label Studio wakes a real listener: answers come in and the build goes on without anybody asking."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tasks import pipeline
from tasks.boards.access import ADMIN, read_access
from tasks.boards.answers import heard
from tasks.boards.hooks import ACTIONS, HEADER, pulse, secret_of, set_up, take_down
from tasks.boards.simulate import Behaviour, play
from tasks.boards.studio import Studio
from tasks.dataset.verify import verify
from tasks.engine.errors import WorkspaceError
from tasks.reviewing import open_review
from tests.commands import ROOT, environment, wait_until
from tests.review.conftest import Server

pytestmark = pytest.mark.studio
URL = "http://127.0.0.1:9/fedbench-wake-up"
# The verbs, in a process that knows the fakes.
FEDBENCH = "from tests import fakes; fakes.install(); from flows.cli import main; main()"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    pipeline._worker.cache_clear()


def hooks(studio: Studio, number: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = studio.get("/api/webhooks/", project=number).json()
    return found


def test_hooks_are_set_up_once_mended_and_taken_down(server: Server) -> None:
    opened = open_review(server.review(), lambda *_: None)
    access, cut = read_access(server.store), server.config.review.cut
    args = (server.store, access, "fakes", cut)
    rivals = [threading.Thread(target=set_up, args=(*args, URL)) for _ in range(3)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert set_up(*args, URL) == len(opened)
    number = opened[0].id
    with server.person(ADMIN) as studio:
        (hook,) = hooks(studio, number)
        assert (hook["url"], sorted(hook["actions"]), hook["is_active"]) == (URL, sorted(ACTIONS), True)
        assert hook["send_payload"] is False
        studio.write("PATCH", f"/api/webhooks/{hook['id']}/", {"url": URL, "is_active": False})  # empties the actions
        studio.write("POST", "/api/webhooks/", {"project": number, "url": URL, "actions": list(ACTIONS)})
        # Anything else on this machine stays out of reach for whoever has an account.
        for elsewhere in ("http://127.0.0.1:4200/api/flows/", "http://127.0.0.1:9/x" + URL[-17:], "http://10.0.0.1/"):
            with pytest.raises(WorkspaceError, match="reserved network address"):
                studio.write("POST", "/api/webhooks/", {"project": number, "url": elsewhere, "actions": []})
        set_up(*args, URL.replace(":9/", ":10/"))
        (mended,) = hooks(studio, number)
        assert (mended["id"], mended["is_active"], sorted(mended["actions"])) == (hook["id"], True, sorted(ACTIONS))
        take_down(*args, URL)
        assert len(hooks(studio, number)) == 1, "who came later goes on listening"
        take_down(*args, URL.replace(":9/", ":10/"))
        assert hooks(studio, number) == []


def test_the_pulse_changes_with_every_answer(server: Server) -> None:
    (mine, *_) = open_review(server.review(), lambda *_: None)
    access, cut = read_access(server.store), server.config.review.cut
    args = (server.store, access, "fakes", cut)
    seen = [pulse(*args)]
    assert pulse(*args) == seen[0]
    with server.person(mine.annotator) as owner:
        task = next(iter(owner.tasks(mine.id)))
        result = [{"from_name": "decision", "to_name": "src_image", "type": "choices", "value": {"choices": ["left"]}}]
        made = owner.write("POST", f"/api/tasks/{task['id']}/annotations/", {"result": result})
        seen.append(pulse(*args))
        owner.write("PATCH", f"/api/annotations/{made['id']}/", {"result": result})
        seen.append(pulse(*args))
        owner.write("DELETE", f"/api/annotations/{made['id']}/", None)
        seen.append(pulse(*args))
    assert len({str(one) for one in seen}) == 4


def test_a_listener_is_woken_and_the_build_goes_on(server: Server, tmp_path: Path) -> None:
    open_review(server.review(), lambda *_: None)
    access, cut, log = read_access(server.store), server.config.review.cut, tmp_path / "log"
    command = [sys.executable, "-c", FEDBENCH, "review", "listen", "-w", str(server.workspace)]
    env = environment(tmp_path / "prefect")
    with log.open("wb") as sink:
        listener = subprocess.Popen(
            [*command, "--every", "3600", "--quiet", "0.5"], env=env, cwd=ROOT, stdout=sink, stderr=sink
        )
    try:
        wait_until(lambda: "sources are decided" in log.read_text(), 90, "it looks once by itself")
        assert heard(server.store) == {}
        how = Behaviour(noise=0.0, limit=2)
        play(server.store, access, "fakes", cut, how=how, tell=lambda *_: None)
        wait_until(lambda: len(heard(server.store)) == 6, 30, "the wake-up brings the answers")
        rounds = log.read_text().count("answers are new")
        assert rounds <= 4, "six answers are no six rounds"

        # An answer that comes while nobody can be asked is found by the next look.
        server.kill()
        server.start()
        play(server.store, access, "fakes", cut, how=Behaviour(noise=0.0), tell=lambda *_: None)
        wait_until((server.workspace / "datasets/fakes/v1/README.md").exists, 180, "the build goes on")
        wait_until(lambda: "fedbench verify" in log.read_text(), 60, "it says where")
        assert listener.poll() is None, log.read_text()
        listener.send_signal(signal.SIGTERM)
        assert listener.wait(30) == 130
    finally:
        if listener.poll() is None:
            listener.kill()
            listener.wait(30)
    assert verify(server.workspace / "datasets/fakes/v1") == []
    said = log.read_text()
    assert "Traceback" not in said
    kept = [secret_of(access, "fakes"), access.secret.get_secret_value(), access.token(ADMIN)]
    assert not any(secret in said + server.log.read_text() for secret in kept)
    with server.person(ADMIN) as studio:
        assert all(hooks(studio, project["id"]) == [] for project in studio.projects())
    assert HEADER not in said
