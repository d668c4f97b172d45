"""What review leaves in a workspace: guarded secrets, pictures under other names, nothing of the withdrawn."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from flows.cli import app
from tasks.boards.access import TOKEN, URL, read_access
from tasks.boards.answers import heard
from tasks.boards.blind import files_of
from tasks.boards.forget import forget_review
from tasks.boards.pictures import FOLDER, show
from tasks.boards.questions import asked, remember
from tasks.boards.studio import Studio
from tasks.engine.errors import ConfigError, WaitingForReview, WorkspaceError
from tasks.engine.store import Store
from tests import fakes
from tests.review.asking import best, config, questions, say


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    with pytest.raises(WaitingForReview):
        fakes.build(tmp_path, config())
    return tmp_path


def said(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["review", *map(str, words)])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def test_access_is_its_owners_alone_and_the_secret_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = read_access(store)
    assert len(first.key) == 32
    assert read_access(store).key == first.key
    assert (tmp_path / "review/access.json").stat().st_mode & 0o777 == 0o600
    assert first.secret.get_secret_value() not in repr(first)


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "http://[::1", "http://host:99999", "http://a host", "http://me:planted@host"]
)
def test_an_address_that_is_none_is_said_and_no_password_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(URL, url)
    with pytest.raises(ConfigError, match="is no address") as caught:
        read_access(Store(tmp_path))
    assert "planted" not in str(caught.value)


def server_that(answer: Callable[[httpx.Request], httpx.Response]) -> Studio:
    studio = Studio("http://studio", "planted-token", pause=0.0)
    studio._client = httpx.Client(base_url=studio.url, transport=httpx.MockTransport(answer))
    return studio


@pytest.mark.parametrize("said_", ["<html>", "{}", "null", "[]"])
def test_another_server_than_label_studio_is_told(said_: str) -> None:
    with (
        server_that(lambda _: httpx.Response(200, text=said_)) as studio,
        pytest.raises(ConfigError, match="is no Label Studio"),
    ):
        studio.users()


def test_a_page_that_is_no_json_is_told() -> None:
    def proxy(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text='{"access": "x"}' if "token" in request.url.path else "<html>")

    with server_that(proxy) as studio, pytest.raises(WorkspaceError, match="not answer /api/users/ in JSON"):
        studio.users()


@pytest.mark.parametrize("count", [1, 40, 1000, 1001, 2345])
def test_a_task_that_the_server_fails_on_hides_no_other(count: int) -> None:
    poisoned = {1, count // 2, count}

    def failing(request: httpx.Request) -> httpx.Response:
        if "token" in request.url.path:
            return httpx.Response(200, json={"access": "x"})
        page, size = (int(request.url.params[name]) for name in ("page", "page_size"))
        numbers = range((page - 1) * size + 1, min(page * size, count) + 1)
        if not numbers:
            return httpx.Response(404)
        if request.url.params["fields"] == "all" and poisoned & set(numbers):
            return httpx.Response(500)
        return httpx.Response(200, json={"tasks": [{"id": one, "data": {}, "annotations": []} for one in numbers]})

    with server_that(failing) as studio:
        found = {task["id"]: task["annotations"] for task in studio.tasks(1, annotations=True)}
    assert found == {one: None if one in poisoned else [] for one in range(1, count + 1)}


def test_the_environment_comes_first_and_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, "http://127.0.0.1:1/")
    monkeypatch.setenv(TOKEN, "planted-token")
    access = read_access(Store(tmp_path))
    assert (access.url, access.token("admin")) == ("http://127.0.0.1:1", "planted-token")
    assert "planted-token" not in (tmp_path / "review/access.json").read_text()
    assert "planted-token" not in repr(access)
    with Studio(access.url, access.token("admin"), pause=0.0) as studio:
        with pytest.raises(WorkspaceError, match="does not answer") as caught:
            studio.users()
        assert "planted-token" not in str(caught.value)
        with pytest.raises(WorkspaceError, match="hung up"):
            studio.write("POST", "/api/projects/", {})
    monkeypatch.setenv(URL, "studio")
    with pytest.raises(ConfigError, match="no address"):
        read_access(Store(tmp_path))


def test_pictures_are_shown_under_other_names_and_links_refused(waiting: Path) -> None:
    store, all_ = Store(waiting), questions(waiting, config())
    key = read_access(store).key
    tasks = [(question, "ann1") for question in all_]
    show(store, key, tasks)
    show(store, key, tasks)
    shown = sorted(path.relative_to(waiting / FOLDER).as_posix() for path in (waiting / FOLDER).rglob("*.png"))
    assert shown == sorted(path for q in all_ for path, _ in files_of(key, q, "ann1").values())
    path, first = files_of(key, all_[0], "ann1")["left"]
    assert (waiting / FOLDER / path).read_bytes() == (waiting / "images" / first[:2] / f"{first}.png").read_bytes()
    (waiting / FOLDER / Path(shown[0]).parent / "link.png").symlink_to(waiting / "review/access.json")
    with pytest.raises(WorkspaceError, match="is a link"):
        show(store, key, tasks)


def test_a_withdrawn_source_leaves_nothing(waiting: Path) -> None:
    store, all_ = Store(waiting), questions(waiting, config())
    key = read_access(store).key
    remember(store, all_)
    show(store, key, [(question, "ann1") for question in all_])
    say(waiting, all_, ann1=best)
    say(waiting, all_, ann2=best)
    gone, stays = all_[0], all_[1]
    forget_review(store, {gone.key})
    forget_review(store, {gone.key})
    assert set(asked(store)) == {question.digest for question in all_[1:]}
    assert {answer.key for answer in heard(store).values()} == {question.key for question in all_[1:]}
    assert len(heard(store)) == 2 * len(all_) - 2
    assert not [path for path, _ in files_of(key, gone, "ann1").values() if (waiting / FOLDER / path).exists()]
    assert all((waiting / FOLDER / path).exists() for path, _ in files_of(key, stays, "ann1").values())


def test_the_verbs_say_in_words_what_is_missing(waiting: Path, tmp_path: Path) -> None:
    code, told = said("open", "-w", waiting)
    assert (code, "no token of 'admin'" in told or "no Label Studio" in told) == (2, True)
    code, told = said("collect", "-w", waiting, "--run", "nope")
    assert code == 2
    fakes.build(tmp_path / "auto", fakes.config())
    code, told = said("status", "-w", tmp_path / "auto")
    assert (code, "reviewed by the board 'auto'" in told) == (2, True)


def test_status_is_one_json_document(waiting: Path) -> None:
    all_ = questions(waiting, config())
    say(waiting, all_[:2], ann1=best, ann2=best)
    code, told = said("status", "-w", waiting, "--json")
    numbers = json.loads(told)
    assert code == 0
    assert (numbers["sources"], numbers["decided"], numbers["published"]) == (len(all_), 2, 0)
    assert numbers["annotators"]["ann3"]["answered"] == 0
    code, told = said("status", "-w", waiting)
    assert f"2 of {len(all_)} sources" in told
