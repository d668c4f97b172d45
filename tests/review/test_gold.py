"""Gold tasks look like all others, test people, and decide nothing; what is left to do is told in hours."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.expressions import POLARITY, Expression
from schemas.reviews import Question
from tasks.boards.access import read_access
from tasks.boards.answers import add, answers_for, heard
from tasks.boards.blind import item_of, task
from tasks.boards.forget import forget_review
from tasks.boards.gold import SPOILT, gold_of, is_gold, scores, spoilt
from tasks.boards.pictures import FOLDER, show
from tasks.boards.questions import asked, remember
from tasks.boards.simulate import Behaviour, play, truth
from tasks.engine.store import Store
from tasks.report.html import write_report
from tasks.reviewing import collect_review, open_review, told
from tests import fakes
from tests.review.asking import answer, best, both, config, questions, say
from tests.review.conftest import Server
from tests.review.test_reading import SECRET, question
from tests.review.test_waiting import finished, waits


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def golds(of_all: float = 1.0, finalists: int = 2) -> dict[Question, Question]:
    real = [question(number, finalists) for number in range(300)]
    return {one: gold for one in real if (gold := gold_of(SECRET, one, of_all))}


@pytest.mark.parametrize("finalists", [1, 2])
def test_one_finalist_is_a_copy_or_beside_a_request_it_does_not_meet(finalists: int) -> None:
    copies = 0
    for real, gold in golds(finalists=finalists).items():
        (bad,) = [one for one in gold.finalists if one.rank == SPOILT]
        assert spoilt(gold) == bad.image
        assert [one for one in gold.finalists if one != bad] == [one for one in real.finalists if one.key != bad.key]
        (was,) = [one for one in real.finalists if one.key == bad.key]
        copies += bad.image == gold.finalists[0].source_image
        if bad.image != bad.source_image:
            request = Expression(bad.instruction.rsplit(" ", 1)[-1])
            assert bad.image == was.image
            assert POLARITY[request] is not POLARITY[Expression(bad.key.target)]
            assert request != bad.source_expression
        assert is_gold(gold.digest)
        assert not is_gold(real.digest)
    assert 100 < copies < 200


def test_the_share_is_met_and_a_larger_one_keeps_the_smaller() -> None:
    few, many = golds(0.1), golds(0.3)
    assert 15 < len(few) < 50
    assert few.items() < many.items()
    assert golds(0.0) == {}
    assert gold_of(b"t" * 32, next(iter(golds())), 1.0) is not None


def test_a_gold_task_betrays_nothing() -> None:
    for gold in golds(0.1).values():
        shown = task(SECRET, gold, "ann1", "/at/")
        assert shown["data"].keys() == task(SECRET, question(), "ann1", "/at/")["data"].keys()
        assert not [word for word in ("gold", "rank", "secret-editor", gold.digest, spoilt(gold)) if word in str(shown)]
        assert len(item_of(SECRET, gold, "ann1")) == 24


def test_who_finds_the_spoilt_one_usable_did_not_look() -> None:
    made = {gold.digest: gold for gold in golds(0.1).values()}
    rows = [answer(gold, "ann1", []) for gold in made.values()]
    rows += [answer(gold, "ann2", [spoilt(gold)]) for gold in made.values()]
    rows += [answer(gold, "ann3", [], gone=True) for gold in made.values()] + [answer(question(), "ann3", [])]
    found = scores(rows, made, ["ann1", "ann2", "ann3"])
    assert [(one["hits"], one["of"]) for one in found.values()] == [(len(made), len(made)), (0, len(made)), (0, 0)]
    assert all(truth(gold, 0) != spoilt(gold) for gold in made.values())


def test_gold_decides_nothing_and_says_who_did_not_look(tmp_path: Path) -> None:
    sets = ("review.gold=0.5",)
    waits(tmp_path, *sets)
    store, real = Store(tmp_path), questions(tmp_path, config(*sets))
    store.write_json("review/access.json", {"secret": SECRET.hex()})  # else a coin decides who has a gold task here
    key = read_access(store).key
    made = [gold for one in real if (gold := gold_of(key, one, 0.5))]
    assert made
    remember(store, [*real, *made])
    show(store, key, made)
    say(tmp_path, made, ann1=lambda one: [spoilt(one)], ann2=both)
    say(tmp_path, made, ann3=lambda one: [i.image for i in one.finalists if i.rank != SPOILT])
    counted = answers_for(store, config(*sets))
    assert not any(counted.to(one.digest) for one in made)
    assert counted.about({one.key for one in made}) == []
    say(tmp_path, real, ann1=best, ann2=best)
    words = CliRunner().invoke(app, ["review", "status", "-w", str(tmp_path)]).output
    for name in ("ann1", "ann2"):
        assert f"{name}: left the spoilt finalist in 0%" in words
    assert words.count("BELOW the pass mark of 80%") == 2
    built = finished(tmp_path, *sets)
    assert built.published
    assert built.published.triplets == len(real)
    index = write_report(built.run, built.run.executor.commits(), "reports/x")
    assert index.read_text("utf-8").count("left what was spoilt on purpose") == 3
    forget_review(store, {made[0].key})
    assert made[0].digest not in asked(store)
    assert made[0].digest not in {question for question, _ in heard(store)}
    assert len(list((tmp_path / FOLDER).rglob("*.png"))) < 3 * len(made)


def test_what_is_left_is_told_in_hours(tmp_path: Path) -> None:
    waits(tmp_path)
    real = questions(tmp_path, config())

    def work() -> str:
        words = CliRunner().invoke(app, ["review", "status", "-w", str(tmp_path)]).output
        return next((line for line in words.splitlines() if line.startswith("work")), "")

    owed = 3 * len(real)
    assert f"{owed} answers are owed at least: {owed * 45 / 3600:.1f} hours" in work()
    assert "45 s each (assumed)" in work()
    add(Store(tmp_path), [answer(real[0], "ann1", [], seconds=120.0), answer(real[1], "ann1", [], seconds=100.0)])
    assert f"{owed - 2} answers" in work()
    assert "110 s each (measured)" in work()
    say(tmp_path, real, ann2=best, ann3=best)
    assert work() == ""


@pytest.mark.studio
def test_gold_on_a_real_server(server: Server) -> None:
    review = server.review("review.gold=0.5")
    access = read_access(server.store)
    made = [gold for one, _ in review.asked if (gold := gold_of(access.key, one, 0.5))]
    opened = open_review(review, lambda *_: None)
    assert sum(one.tasks for one in opened) == 3 * (len(review.asked) + len(made))
    again = open_review(server.review("review.gold=0.5"), lambda *_: None)
    assert (len(again), sum(one.added for one in again)) == (len(opened), 0)
    cut = server.config.review.cut
    play(server.store, access, server.config.name, cut, how=Behaviour(noise=0.0, bias=0.0), tell=lambda *_: None)
    found = collect_review(server.review("review.gold=0.5"))
    assert (found.fresh, found.notes) == (3 * (len(review.asked) + len(made)), [])
    numbers = told(server.review("review.gold=0.5"))
    assert numbers["decided"] == numbers["sources"] == len(review.asked)
    assert [(one["hits"], one["of"]) for one in numbers["gold"].values()] == [(len(made), len(made))] * 3
    assert all(one["answered"] == len(review.asked) for one in numbers["annotators"].values())
