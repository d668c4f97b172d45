"""Label Studio as a team runs it: PostgreSQL below, gunicorn above; three people at once, and a killed server."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import studio
from tasks import pipeline
from tasks.boards.access import ADMIN, read_access
from tasks.boards.collecting import collect
from tasks.boards.projects import Desk
from tasks.boards.simulate import Behaviour, play
from tasks.engine.errors import WaitingForReview
from tasks.engine.store import Store
from tests import fakes
from tests.commands import free_port
from tests.hosting.postgres import postgres
from tests.review.asking import config, many
from tests.review.conftest import Server

pytestmark = pytest.mark.studio
SOURCES, ANSWERS = 750, 40


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    fakes.install()
    pipeline._worker.cache_clear()
    folder, settings, port = tmp_path_factory.mktemp("team"), config(sources=24), free_port()
    with pytest.raises(WaitingForReview):
        fakes.build(folder / "workspace", settings)
    with postgres(folder / "postgres", "studio", "planted-secret") as database, pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "DJANGO_DB": "default", "POSTGRE_HOST": "127.0.0.1", "POSTGRE_PORT": str(database.port),
            "POSTGRE_NAME": "studio", "POSTGRE_USER": "studio", "POSTGRE_PASSWORD": "planted-secret",
        }.items():  # fmt: skip
            patch.setenv(name, value)
        store = Store(folder / "workspace")
        passwords = studio.make_accounts(store, studio.install(), f"http://127.0.0.1:{port}", 3)
        server = Server(store.root, port, folder / "server.log", settings, passwords, workers=2)
        try:
            server.start()
            assert database.ask("select count(*) from htx_user") == "4"
            yield server
        finally:
            server.kill()


def test_750_are_asked_and_three_answer_at_once(team: Server) -> None:
    assert not list((team.workspace / studio.DATA).glob("*.sqlite3"))
    access, cut = read_access(team.store), team.config.review.cut
    asked = [(question, ()) for question in many(team.workspace, team.config, SOURCES)]

    def open_() -> list[Any]:
        return Desk(team.store, access, "team", cut, lambda *_: None).open(asked)

    opened = open_()
    assert [(one.tasks, one.added) for one in opened] == [(SOURCES, SOURCES)] * 3
    assert [one.added for one in open_()] == [0, 0, 0]

    def one_plays(name: str) -> None:
        alone = cut.model_copy(update={"annotators": (name,)})
        play(team.store, access, "team", alone, how=Behaviour(noise=0.2, limit=ANSWERS), tell=lambda *_: None)

    threads = [threading.Thread(target=one_plays, args=(name,)) for name in cut.annotators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = collect(team.store, access, "team", cut)
    assert (found.fresh, found.notes) == (3 * ANSWERS, [])
    with team.person(ADMIN) as admin:
        for one in opened:
            tasks = list(admin.tasks(one.id, annotations=True))
            assert Counter(len(task["annotations"]) for task in tasks) == {0: SOURCES - ANSWERS, 1: ANSWERS}

    # Killed, with whatever it held, and started again: nothing is lost, nothing is there twice.
    team.kill()
    team.start()
    assert [one.added for one in open_()] == [0, 0, 0]
    assert collect(team.store, access, "team", cut).fresh == 0
    held = b"".join(path.read_bytes() for path in (team.log, *Path(team.workspace / "review").rglob("*.json")))
    assert os.environ["POSTGRE_PASSWORD"].encode() not in held
