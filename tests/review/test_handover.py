"""Somebody leaves in the middle of a review on a real server, and somebody else takes over what is still open."""

import pytest

from tasks import pipeline
from tasks.boards.access import ADMIN, read_access
from tasks.boards.projects import wanted
from tasks.boards.simulate import Behaviour, play
from tasks.dataset.verify import verify
from tasks.results import finish
from tasks.reviewing import collect_review, open_review, told
from tests import fakes
from tests.review.asking import config
from tests.review.conftest import Server

pytestmark = pytest.mark.studio

AFTER = ("review.cut.annotators=[ann2, ann3, ann4]", "review.cut.former=[ann1]")


def test_an_annotator_is_replaced_midway(server: Server) -> None:
    pipeline._worker.cache_clear()
    access, cut = read_access(server.store), server.config.review.cut
    open_review(server.review(), lambda *_: None)
    play(server.store, access, "fakes", cut, how=Behaviour(noise=0.0, limit=4), tell=lambda *_: None)
    assert collect_review(server.review()).fresh == 12
    given = {q.digest: answers for q, answers in server.review().asked}

    review = server.review(*AFTER)
    left = [q for q, answers in review.asked if wanted("ann4", answers, review.run.config.review.cut)]
    assert 0 < len(left) < len(review.asked), "what two have decided is not asked again"
    opened = {}
    for one in open_review(review, lambda *_: None):
        opened[one.annotator] = opened.get(one.annotator, 0) + one.tasks
    assert opened["ann4"] == len(left)
    assert "ann1" not in opened
    with server.person(ADMIN) as studio:
        gone = next(number for number, email in studio.users().items() if email.startswith("ann1@"))
        studio.write("DELETE", f"/api/users/{gone}/", None)

    after = review.run.config.review.cut
    play(server.store, access, "fakes", after, how=Behaviour(noise=0.0), tell=lambda *_: None)
    collect_review(server.review(*AFTER))
    numbers = told(server.review(*AFTER))
    assert numbers["decided"] == numbers["sources"] == len(review.asked)
    assert numbers["annotators"]["ann1"]["answered"] == 4, "who left still counts"
    assert numbers["annotators"]["ann4"]["answered"] == len(left)
    for question, answers in server.review(*AFTER).asked:
        mine = [one for one in answers if one.annotator == "ann1"]
        assert mine == [one for one in given[question.digest] if one.annotator == "ann1"]
    settings = config(*AFTER, sources=24)
    built = fakes.build(server.workspace, settings)
    finish(built.run, built.done)
    assert built.published
    assert built.published.triplets == numbers["chosen"] > 0
    assert verify(built.published.folder) == []
