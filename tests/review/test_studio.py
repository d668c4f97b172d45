"""The whole way around real people's tool: a real Label Studio, killed, tampered with and read."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.outcomes import Status
from tasks import pipeline
from tasks.boards import projects
from tasks.boards.access import ADMIN, read_access
from tasks.boards.blind import item_of
from tasks.boards.pictures import FOLDER
from tasks.boards.projects import ADDRESS
from tasks.boards.questions import asked
from tasks.boards.simulate import Behaviour, play
from tasks.boards.studio import Studio
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.results import finish_if_done
from tasks.reviewing import collect_review, open_review, told
from tests import fakes
from tests.commands import ROOT
from tests.review.asking import config
from tests.review.conftest import Server

pytestmark = pytest.mark.studio


@pytest.fixture(autouse=True)
def _fresh() -> None:
    pipeline._worker.cache_clear()


def silent(*_: object) -> None:
    """Nobody listens."""


def items(server: Server, number: int) -> Counter[str]:
    with server.person(ADMIN) as studio:
        return Counter(task["data"]["item"] for task in studio.tasks(number))


def complete(server: Server) -> None:
    """Everybody has one task for every question, and nothing else."""
    questions = [question for question, _ in server.review().asked]
    for one in open_review(server.review(), silent):
        assert one.added == 0
        key = read_access(server.store).key
        assert items(server, one.id) == Counter(
            item_of(key, question, one.annotator)
            for question in questions
            if (len(question.finalists) == 1) is one.single
        )


def test_opening_survives_kills_and_rivals(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "BATCH", 2)
    told_: list[tuple[str, int, int]] = []

    def dies(who: str, done: int, total: int) -> None:
        told_.append((who, done, total))
        if len(told_) == 3:
            server.kill()

    with pytest.raises(WorkspaceError, match=r"hung up|does not answer"):
        open_review(server.review(), dies)
    server.start()
    outcomes: list[Any] = []
    rivals = [threading.Thread(target=lambda: outcomes.append(open_review(server.review(), silent))) for _ in range(2)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert len(outcomes) == 2
    assert {len(each) for each in outcomes} == {len(outcomes[0])}
    complete(server)
    with server.person(ADMIN) as studio:
        titles = [project["title"] for project in studio.projects()]
        assert len(set(titles)) == len(titles) == len(outcomes[0])


def test_nothing_is_betrayed(server: Server) -> None:
    access = read_access(server.store)
    secrets = [access.secret.get_secret_value(), *(one.token.get_secret_value() for one in access.people.values())]
    secrets += [password for _, password in server.passwords.values()]
    with server.person("ann1") as studio:
        numbers = [project["id"] for project in studio.projects()]
        data = [str((task["data"], task.get("meta"))) for number in numbers for task in studio.tasks(number)]
        whole = [studio.get("/api/tasks/", project=number, fields="all", page_size=100).text for number in numbers]
        whole += [str(list(studio.projects()))]
    assert len(data) > 20
    for text in data:
        assert not [word for word in ("rank", "score", "editor", "fake", "ann1") if word in text]
    sources = [question.key.source_id for question, _ in server.review().asked]
    for text in [*data, *whole]:
        assert not [word for word in ["@fake", *secrets, *(f"{source}:" for source in sources)] if word in text]
    for path in [*server.workspace.rglob("*.json"), *server.workspace.rglob("*.parquet"), server.log]:
        if path.name != "access.json":
            held = path.read_bytes()
            assert not any(secret.encode() in held for secret in secrets), path
    assert (server.workspace / "review/access.json").stat().st_mode & 0o077 == 0


def test_no_path_outside_the_image_folder_is_served(server: Server, tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    outside.write_text("secret")
    folder = server.workspace / FOLDER
    inside = next(folder.rglob("*.png"))
    name = inside.relative_to(folder).as_posix()
    link, directory = folder / "link.png", folder / "aside"
    link.symlink_to(outside)
    directory.symlink_to(tmp_path)
    try:
        with server.person("ann1") as studio:
            assert studio.get(ADDRESS + name).content == inside.read_bytes()
            for path in (
                "../../access.json", "../../studio/.env", "shown/../../access.json", "shown/../../../config.json",
                str(outside), f"shown/{outside}", "..%2f..%2faccess.json", "shown/%2e%2e/%2e%2e/access.json",
                "shown/link.png", "shown/aside/secret.png", "shown/", "",
            ):  # fmt: skip
                answer = studio.get(f"/data/local-files/?d={path}", missing=(400, 403, 404, 500))
                assert answer.status_code >= 400, path
                assert b"secret" not in answer.content.replace(b"secret.png", b""), path
        assert httpx.get(server.url + ADDRESS + name, trust_env=False).status_code in (401, 403)
        with pytest.raises(WorkspaceError, match="link"):
            open_review(server.review(), silent)
    finally:
        link.unlink()
        directory.unlink()


def test_the_door_is_closed_to_strangers(server: Server) -> None:
    page = httpx.get(f"{server.url}/user/signup/", trust_env=False)
    token = page.cookies.get("csrftoken", "")
    answer = httpx.post(
        f"{server.url}/user/signup/",
        data={"email": "x@y.zz", "password": "longenough1", "csrfmiddlewaretoken": token},
        cookies=dict(page.cookies),
        headers={"Referer": server.url},
        trust_env=False,
    )
    assert answer.status_code in (403, 400)
    with server.person(ADMIN) as studio:
        assert len(studio.users()) == 5
    with Studio(server.url, "eyJhbGciOiJIUzI1NiJ9.e30.planted-secret", pause=0.01) as studio:
        with pytest.raises(ConfigError) as caught:
            studio.users()
        assert "planted-secret" not in str(caught.value)


def test_an_expired_token_is_exchanged_anew(server: Server) -> None:
    with server.person(ADMIN) as studio:
        before = studio.users()
        studio._client.headers["Authorization"] = "Bearer expired"
        assert studio.users() == before
        studio._client.headers["Authorization"] = "Bearer expired"
        number = studio.write("POST", "/api/projects/", {"title": "throw away"})["id"]
        studio.write("DELETE", f"/api/projects/{number}/", None)


def test_a_project_edited_by_hand_is_mended_and_its_lost_tasks_come_back(server: Server) -> None:
    (mine, *_) = open_review(server.review(), silent)
    with server.person("ann2") as studio:  # nothing in Community keeps an annotator from this
        renamed = (
            studio.get(f"/api/projects/{mine.id}/").json()["label_config"].replace('alias="left"', 'alias="links"')
        )
        studio.write("PATCH", f"/api/projects/{mine.id}/", {"label_config": renamed, "title": "mine now"})
        first, second, *_ = studio.tasks(mine.id)
        studio.write("DELETE", f"/api/tasks/{first['id']}/", None)
        value = {"result": [{"from_name": "decision", "to_name": "src_image", "type": "choices",
                             "value": {"choices": ["links"]}}]}  # fmt: skip
        with server.person(mine.annotator) as owner:
            given = owner.write("POST", f"/api/tasks/{second['id']}/annotations/", value)
    found = collect_review(server.review())
    assert any("'links' is no decision" in note for note in found.notes)
    assert found.fresh == 0
    with server.person(mine.annotator) as owner:
        owner.write("DELETE", f"/api/annotations/{given['id']}/", None)
    again = next(one for one in open_review(server.review(), silent) if one.id == mine.id)
    assert again.added == 1
    complete(server)
    with server.person(ADMIN) as studio:
        present = studio.get(f"/api/projects/{mine.id}/").json()
        assert 'alias="left"' in present["label_config"]
        assert present["title"] != "mine now"


def test_tampering_counts_nothing(server: Server) -> None:
    review = server.review()
    access, cut = read_access(server.store), review.run.config.review.cut
    play(server.store, access, "fakes", cut, how=Behaviour(noise=0.0, limit=3), tell=silent)
    first = collect_review(server.review())
    assert first.fresh == 9
    assert collect_review(server.review()).fresh == 0
    (mine, *_) = open_review(server.review(), silent)
    before = {q.digest: answers for q, answers in server.review().asked}

    with server.person(ADMIN) as studio:
        answered = [task for task in studio.tasks(mine.id, annotations=True) if task["annotations"]]
    assert len(answered) == 3
    one, two, three = answered
    with server.person("ann4") as stranger:
        # A fourth person answers, changes and forges.
        result = one["annotations"][0]["result"]
        stranger.write("POST", f"/api/tasks/{one['id']}/annotations/", {"result": result, "lead_time": 1})
        turned = [part | {"value": {"choices": ["neither"]}} for part in result if part["from_name"] == "decision"]
        stranger.write("PATCH", f"/api/annotations/{two['annotations'][0]['id']}/", {"result": turned})
    with server.person(mine.annotator) as owner:
        # The owner answers one task twice, and deletes the answer to another.
        owner.write("POST", f"/api/tasks/{one['id']}/annotations/", {"result": turned, "lead_time": 2})
        owner.write("DELETE", f"/api/annotations/{three['annotations'][0]['id']}/", None)
    tampered = collect_review(server.review())
    told_ = " ".join(tampered.notes)
    assert "is by account" in told_
    assert "was changed by account" in told_
    assert "2 answers to task" in told_
    key = access.key
    by_item = {item_of(key, q, mine.annotator): (q, answers) for q, answers in server.review().asked}

    def of(task: dict[str, Any]) -> list[Any]:
        _, answers = by_item[task["data"]["item"]]
        return [answer for answer in answers if answer.annotator == mine.annotator]

    def earlier(task: dict[str, Any]) -> list[Any]:
        return [a for a in before[by_item[task["data"]["item"]][0].digest] if a.annotator == mine.annotator]

    assert [answer.usable for answer in of(one)] == [()]
    assert [answer.usable for answer in of(two)] == [answer.usable for answer in earlier(two)]
    assert of(two)[0].edited_by is not None
    assert of(three) == []
    assert sum(len(answers) for _, answers in server.review().asked) == 8

    # The task goes altogether, and the answer that was collected stays.
    with server.person(ADMIN) as studio:
        studio.write("DELETE", f"/api/tasks/{two['id']}/", None)
    collect_review(server.review())
    assert [answer.usable for answer in of(two)] == [answer.usable for answer in earlier(two)]
    open_review(server.review(), silent)
    collect_review(server.review())
    by_item = {item_of(key, q, mine.annotator): (q, answers) for q, answers in server.review().asked}
    assert of(two), "it is not asked again, so an empty task does not take the answer back"


def test_a_killed_server_loses_nothing_and_the_build_goes_on(server: Server) -> None:
    access, cut = read_access(server.store), server.review().run.config.review.cut
    play(server.store, access, "fakes", cut, how=Behaviour(noise=0.0), tell=silent)
    server.kill()
    with pytest.raises(WorkspaceError, match=r"hung up|does not answer"):
        collect_review(server.review())
    server.start()
    collect_review(server.review())
    numbers = told(server.review())
    assert numbers["decided"] == numbers["sources"] > 8
    fakes.build(server.workspace, server.config)
    result = finish_if_done(server.workspace, server.config)
    assert result
    assert result.triplets == numbers["chosen"] > 0
    run = pipeline.open_run(server.workspace, server.config)
    left = [row.status for shard, done in zip(run.executor.shards, run.executor.commits(), strict=True)
            for row in run.executor.decided("review", shard, done["review"])]  # fmt: skip
    assert Status.WAITING not in left
    assert collect_review(server.review()).fresh == 0


def test_import_is_quick_and_a_second_one_quicker(server: Server) -> None:
    with server.person(ADMIN) as studio:
        number = studio.write("POST", "/api/projects/", {"title": "many"})["id"]
        began = time.monotonic()
        for start in range(0, 3000, projects.BATCH):
            studio.add_tasks(number, [{"data": {"item": str(start + n)}} for n in range(projects.BATCH)])
        took = time.monotonic() - began
        began = time.monotonic()
        assert len({task["data"]["item"] for task in studio.tasks(number)}) == 3000
        assert time.monotonic() - began < max(took, 5)
        studio.write("DELETE", f"/api/projects/{number}/", None)


def test_no_server_and_no_accounts_are_said_in_words(server: Server) -> None:
    with pytest.raises(ConfigError, match="'nobody' has no account"):
        open_review(server.review("review.cut.adjudicators=[nobody]"), silent)
    assert asked(server.store)
    assert config().review.cut.annotators == ("ann1", "ann2", "ann3")
    assert (ROOT / "infra/studio/server.py").is_file()
