"""People review a bucket's pictures: at presigned addresses that tell nothing, renewed in time, gone with a person."""

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import botocore.auth
import httpx
import pytest

from schemas.config import BuildConfig
from schemas.reviews import Question
from tasks import pipeline
from tasks.boards.access import read_access
from tasks.boards.blind import files_of, item_of
from tasks.boards.forget import forget_review
from tasks.boards.pictures import FOLDER
from tasks.boards.projects import Opened
from tasks.engine.bucket import Bucket
from tasks.engine.errors import WaitingForReview, WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.places import place, settled
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.reviewing import collect_review, open_review, review_of
from tests import fakes
from tests.objects.conftest import SECRET, elsewhere, forget
from tests.objects.studio import StandIn, stand_in
from tests.review.asking import config, questions

pytestmark = pytest.mark.s3
NAMES = ("ann1", "ann2", "ann3")


@pytest.fixture
def studio(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A build in the bucket that waits for people, and a server that is to ask them."""
    with stand_in() as server:
        monkeypatch.setenv("FEDBENCH_STUDIO_URL", server.url)
        monkeypatch.setenv("FEDBENCH_STUDIO_TOKEN", "a-token")
        with settled(), pytest.raises(WaitingForReview):
            fakes.build(place(bucket.url), config())
        yield server


def open_(bucket: Bucket, settings: BuildConfig | None = None) -> list[Opened]:
    again()
    with settled():
        run = open_run(place(bucket.url), settings or config(), extend=False)
        return open_review(review_of(run), lambda *_: None)


def again() -> None:
    """As a process that has just started."""
    pipeline._worker.cache_clear()
    forget()


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Have signatures be of another day."""
    then = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=days)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: then)


def addresses(studio: StandIn) -> dict[str, str]:
    """Every address in every task, by task and place."""
    return {
        f"{number} {name}": value
        for number, task in studio.tasks.items()
        for name, value in task["data"].items()
        if name.endswith("_image")
    }


def test_pictures_come_by_addresses_that_tell_nothing(bucket: Bucket, studio: StandIn) -> None:
    opened = open_(bucket)
    store = Store(place(bucket.url))
    key, all_ = read_access(store).key, questions(store.root, config())
    assert sum(one.added for one in opened) == 3 * len(all_)
    mine = {item_of(key, question, name): (question, name) for question in all_ for name in NAMES}
    for task in studio.tasks.values():
        files = files_of(key, *mine[task["data"]["item"]])
        for place_, (path, image) in files.items():
            address = task["data"][f"{place_}_image"]
            assert f"/{bucket.key(FOLDER)}/{path}?" in address
            assert "X-Amz-Expires=604800" in address
            answer = httpx.get(address)
            assert (sha256(answer.content), answer.headers["content-type"]) == (image, "image/png")
    told = " ".join(addresses(studio).values())
    assert len(set(addresses(studio).values())) == len(addresses(studio))
    for question in all_:
        for one in question.finalists:
            for word in (one.image, one.source_image, one.key.editor, question.key.source_id, SECRET):
                assert word not in told
    guide = studio.projects[1]["expert_instruction"]
    faces = [html.unescape(one) for one in re.findall(r'src="([^"]+)"', guide)]
    assert len(faces) == 4
    assert all(httpx.get(one).headers["content-type"] == "image/svg+xml" for one in faces)
    assert not list(store.path("review").glob("images/**/*.png")), "what nobody serves lies nowhere"


def test_addresses_are_renewed_when_half_their_time_is_left(
    bucket: Bucket, studio: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_(bucket)
    first, count = addresses(studio), len(studio.tasks)
    studio.writes.clear()
    assert not any(one.added for one in open_(bucket))
    later(monkeypatch, 3.4)
    open_(bucket)
    assert (studio.writes, addresses(studio)) == ([], first), "a fresh signature is no change"

    again()
    store = Store(place(bucket.url))
    done, left = next(iter(studio.tasks)), set(list(studio.tasks)[1:])
    who = next(n for n in NAMES if n in studio.projects[studio.tasks[done]["project"]]["description"])
    studio.tasks[done]["annotations"] = [
        {
            "id": 1,
            "task": done,
            "completed_by": int(who[-1]),
            "updated_by": int(who[-1]),
            "updated_at": "2026-01-01",
            "result": [{"from_name": "decision", "value": {"choices": ["neither"]}}],
        }
    ]
    with settled():
        assert collect_review(review_of(open_run(store.root, config(), extend=False))).fresh == 1
    later(monkeypatch, 3.6)
    open_(bucket)
    now = addresses(studio)
    assert {int(name.split()[0]) for name in now if now[name] != first[name]} == left
    assert len(studio.tasks) == count
    assert all(httpx.get(address).status_code == 200 for address in list(now.values())[:4])
    assert sum(one.startswith("PATCH /api/projects/") for one in studio.writes) == len(studio.projects)
    studio.writes.clear()
    open_(bucket)
    assert studio.writes == []
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another-key")
    open_(bucket)
    assert len(studio.writes) == len(left) + len(studio.projects), "a key that was changed ends what it signed"


def test_one_picture_is_looked_at_before_there_are_tasks(
    bucket: Bucket, studio: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = httpx.get

    def closed(*args: Any, **more: Any) -> httpx.Response:
        answer = real(*args, **more)
        answer.headers.pop("access-control-allow-origin", None)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(httpx, "get", closed)
        with pytest.raises(WorkspaceError, match="may not show pictures"):
            open_(bucket)
    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "presigned", lambda self, name, _: f"{self.endpoint}/{self.name}/not/there/{name}")
        with pytest.raises(WorkspaceError, match="gives HTTP 40"):
            open_(bucket)
    assert not studio.tasks
    assert sum(one.added for one in open_(bucket, config("review.address_days=0.5")))
    assert all("X-Amz-Expires=43200" in one for one in addresses(studio).values())


def test_who_withdraws_is_shown_to_nobody_any_more(
    bucket: Bucket, studio: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_(bucket)
    assert studio.tasks
    store = Store(place(bucket.url))
    all_: list[Question] = questions(store.root, config())
    before = bucket.listing(FOLDER)
    with settled():
        forget_review(store, {all_[0].key})
    after = bucket.listing(FOLDER)
    assert len(before) - len(after) == 3 * (1 + len(all_[0].finalists))
    elsewhere(monkeypatch, tmp_path / "other")
    again()
    with settled():
        forget_review(Store(place(bucket.url)), {all_[1].key})
    assert not bucket.listing(FOLDER), "another machine cannot tell whose they are"


def test_a_run_lists_no_pictures_of_annotators(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        f"review/{one}" for one in ("answers", *(f"images/{n}/{n}" for n in range(9)), "images.txt", "made/x", "z")
    ]
    for name in names:
        bucket.put(name, b"")
    real = bucket._client.list_objects_v2
    monkeypatch.setattr(bucket._client, "list_objects_v2", lambda **asked: real(**asked, MaxKeys=2))
    assert sorted(bucket.listing("review")) == sorted(names)
    bucket.requests.clear()
    left = bucket.listing("review", "review/images")
    assert sorted(left) == ["review/answers", "review/images.txt", "review/made/x", "review/z"]
    assert bucket.requests["ListObjectsV2"] == 3
