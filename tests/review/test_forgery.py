"""What people with an account can do to each other's answers on a real Label Studio, and what comes of it: nothing."""

import json
import os
from typing import Any

import pytest

from tasks import pipeline
from tasks.boards.access import ADMIN, read_access
from tasks.boards.answers import heard
from tasks.boards.simulate import Behaviour, play
from tasks.boards.studio import Studio
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.reviewing import collect_review, open_review, told
from tests.review.conftest import Server

pytestmark = pytest.mark.studio


@pytest.fixture(autouse=True)
def _fresh() -> None:
    pipeline._worker.cache_clear()


def decision(choice: str) -> dict[str, Any]:
    chosen = {"from_name": "decision", "to_name": "src_image", "type": "choices", "value": {"choices": [choice]}}
    return {"result": [chosen], "lead_time": 9.0}


def test_an_answer_in_somebody_elses_name_does_not_count(server: Server) -> None:
    (mine, *_) = open_review(server.review(), lambda *_: None)
    with server.person(mine.annotator) as owner, server.person("ann4") as forger:
        me = next(number for number, email in owner.users().items() if email.startswith(f"{mine.annotator}@"))
        first, second, third, *_ = list(owner.tasks(mine.id))
        forged = {**decision("left"), "completed_by": me, "updated_by": me}
        forger.write("POST", f"/api/tasks/{first['id']}/annotations/", forged)
        # An import writes whole annotations, and asks nobody who made them.
        copied = {"data": second["data"], "annotations": [forged]}
        forger.write("POST", f"/api/projects/{mine.id}/import", [copied])
        owner.write("POST", f"/api/tasks/{third['id']}/annotations/", decision("left"))
        made = {
            task["id"]: [(one["completed_by"], one["updated_by"]) for one in task["annotations"]]
            for task in owner.tasks(mine.id, annotations=True)
            if task["annotations"]
        }
    found = collect_review(server.review())
    counted = {answer.question for answer in heard(server.store).values() if not answer.gone}
    assert len(counted) == found.fresh == 1, (made, found.notes)
    told_ = " ".join(found.notes)
    assert all(words in told_ for words in ("was changed by account", "was imported", "is there twice")), told_


def test_an_answer_that_the_server_cannot_show_keeps_no_other_from_being_read(server: Server) -> None:
    (mine, *_) = open_review(server.review(), lambda *_: None)
    with server.person(mine.annotator) as owner:
        left = [task for task in owner.tasks(mine.id, annotations=True) if task["annotations"] == []]
        broken = decision("left")
        text = {"from_name": "comment", "to_name": "src_image", "type": "textarea", "value": {"text": ["\ud800"]}}
        broken["result"].append(text)
        where, told_ = f"/api/tasks/{left[0]['id']}/annotations/", {"Content-Type": "application/json"}
        assert owner._once("POST", where, content=json.dumps(broken), headers=told_).status_code == 500  # and is kept
        owner.write("POST", f"/api/tasks/{left[1]['id']}/annotations/", decision("left"))
        found = collect_review(server.review())
        assert found.fresh >= 1
        assert any(f"cannot show the answers to task {left[0]['id']}" in note for note in found.notes), found.notes


def test_a_picture_does_not_say_when_it_was_made(server: Server) -> None:
    (mine, *_) = open_review(server.review(), lambda *_: None)
    with server.person(mine.annotator) as owner:
        (task, *_) = owner.tasks(mine.id)
        image = task["data"]["src_image"]
        (path,) = server.store.path("review/images").glob(f"**/{image.rsplit('/')[-1]}")
        before = owner.get(image)
        os.utime(path, (1, 1))
        after = owner.get(image)
        again = owner._client.get(image, headers={"If-None-Match": after.headers["etag"]})
    assert before.headers["etag"] == after.headers["etag"]
    assert "last-modified" not in after.headers
    assert (again.status_code, after.content) == (304, path.read_bytes())


def test_a_server_that_dies_while_it_is_read_changes_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    access, cut = read_access(server.store), server.config.review.cut
    play(server.store, access, "fakes", cut, how=Behaviour(noise=0.0, limit=2), tell=lambda *_: None)
    before, reads, tasks = heard(server.store), 0, Studio.tasks

    def dying(self: Studio, *args: Any, **kwargs: Any) -> Any:
        nonlocal reads
        reads += 1
        if reads == 2:
            server.kill()
        return tasks(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Studio, "tasks", dying)
        patch.setattr("tasks.boards.studio.TRIES", 2)
        with pytest.raises(WorkspaceError, match="does not answer"):
            collect_review(server.review())
    assert heard(server.store) == before
    server.start()
    assert collect_review(server.review()).fresh >= 5
    assert collect_review(server.review()).fresh == 0


def test_somebody_whose_account_is_gone_is_named_and_their_answers_stay(server: Server) -> None:
    before = {key: answer for key, answer in heard(server.store).items() if key[1] == "ann3" and not answer.gone}
    assert before
    with server.person(ADMIN) as admin:
        number = next(number for number, email in admin.users().items() if email.startswith("ann3@"))
        admin.write("DELETE", f"/api/users/{number}/", None)
    with pytest.raises(ConfigError, match="annotator 'ann3' has no account"):
        collect_review(server.review())
    sets = ("review.cut.annotators=[ann1, ann2, ann4]", "review.cut.former=[ann3]")
    collect_review(server.review(*sets))
    after = {key: answer for key, answer in heard(server.store).items() if key[1] == "ann3" and not answer.gone}
    assert {key: one.usable for key, one in after.items()} == {key: one.usable for key, one in before.items()}
    assert told(server.review(*sets))["annotators"]["ann3"]["answered"] == len(before)
    opened = {one.annotator for one in open_review(server.review(*sets), lambda *_: None)}
    assert opened == {"ann1", "ann2", "ann4"}
