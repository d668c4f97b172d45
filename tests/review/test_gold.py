"""Gold tasks look like all others, test people, and decide nothing; what is left to do is told in hours."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.expressions import POLARITY, Expression
from schemas.reviews import ExtraKind, Question
from tasks.boards.access import read_access
from tasks.boards.answers import add, answers_for, heard
from tasks.boards.blind import folder_of, share, task
from tasks.boards.forget import forget_review
from tasks.boards.gold import GOLD, decides_nothing, gold_due, gold_of, scores
from tasks.boards.made import Maker, path_of
from tasks.boards.pictures import FOLDER, show
from tasks.boards.questions import asked, remember
from tasks.boards.simulate import Behaviour, play, truth
from tasks.engine.decode import decode_png
from tasks.engine.images import ImageStore, Picture
from tasks.engine.store import Store
from tasks.extras import audits_of
from tasks.extras import golds as golds_of_run
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.faces.geometry import face_mask
from tasks.metrics.identity import cosine
from tasks.pipeline import open_run
from tasks.report.html import write_report
from tasks.reviewing import collect_review, open_review, told
from tests import fakes
from tests.photos import photo
from tests.review.asking import answer, best, config, questions, say
from tests.review.conftest import Server
from tests.review.test_reading import SECRET, question
from tests.review.test_waiting import finished, waits


def wrong(gold: Question) -> list[str]:
    """What nobody who looks would answer: everything but the clean one."""
    assert gold.extra
    return [
        one.image for one in gold.finalists if (one.image == gold.extra.picture) != (gold.extra.kind is ExtraKind.CLEAN)
    ]


def right(gold: Question) -> list[str]:
    """The clean one, or nothing."""
    assert gold.extra
    return [gold.extra.picture] if gold.extra.kind is ExtraKind.CLEAN else []


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def secret_of_all_kinds(real: list[Question]) -> bytes:
    """A secret under which half of these questions have gold tasks of every kind."""
    for number in range(256):
        key = bytes([number]) * 32
        kinds = {share(key, "gold kind", one.digest) * len(GOLD) // 1 for one in real if gold_due(key, one, 0.5)}
        if len(kinds) == len(GOLD):
            return key
    raise AssertionError("no such secret")


class Copier(Maker):
    """Makes names instead of pictures; half of the faces cannot be found."""

    def __init__(self) -> None:
        """Needs nothing."""

    def copied(self, image: str) -> str:
        return f"copy-of-{image}"

    def swapped(self, image: str, donor: str) -> str | None:
        return f"{donor}-in-{image}" if int(donor[:-1].lstrip("0") or 0) % 2 else None


def golds(of_all: float = 1.0, finalists: int = 2) -> dict[Question, Question]:
    real = [question(number, finalists) for number in range(400)]
    donors = [one for other in real[1:4] for one in other.finalists]
    return {one: gold_of(SECRET, one, donors, Copier()) for one in real if gold_due(SECRET, one, of_all)}


@pytest.mark.parametrize("finalists", [1, 2])
def test_a_gold_task_has_one_picture_whose_answer_is_known(finalists: int) -> None:
    kinds: Counter[ExtraKind] = Counter()
    for real, gold in golds(finalists=finalists).items():
        extra = gold.extra
        assert extra
        kinds[extra.kind] += 1
        assert extra.beside == real.digest
        assert len(gold.finalists) == finalists
        (it,) = [one for one in gold.finalists if one.image == extra.picture]
        others = [one for one in gold.finalists if one != it]
        if extra.kind is ExtraKind.CLEAN:
            best = real.finalists[0]
            assert it.source_image == best.image, "the photo is the edit of its own edit"
            assert it.image == f"copy-of-{best.source_image}"
            assert it.instruction == f"change the expression from {best.key.target} to {best.source_expression}"
            assert [one.image for one in others] == [f"copy-of-{best.image}"] * (finalists - 1)
            assert not any(one.caption for one in gold.finalists)
            continue
        (was,) = [one for one in real.finalists if one.key == it.key]
        assert others == [one for one in real.finalists if one != was]
        if extra.kind is ExtraKind.COPY:
            assert (it.image, it.instruction) == (f"copy-of-{was.source_image}", was.instruction)
        elif extra.kind is ExtraKind.STRANGER:
            (donor,) = extra.donors
            assert int(donor.source_id.rsplit("-", 1)[1]) % 2, "whose face was found"
            assert it.image.endswith(f"-in-{was.image}")
            assert it.instruction == was.instruction
        else:
            request = Expression(it.instruction.rsplit(" ", 1)[-1])
            assert it.image == was.image
            assert POLARITY[request] is not POLARITY[Expression(it.key.target)]
            assert request != it.source_expression
    assert sorted(kinds) == sorted(GOLD)
    assert min(kinds.values()) > 60


def test_without_another_person_it_is_a_copy() -> None:
    strangers = [real for real, gold in golds().items() if gold.extra and gold.extra.kind is ExtraKind.STRANGER]
    alone = [gold_of(SECRET, one, [], Copier()) for one in strangers]
    assert {one.extra.kind for one in alone if one.extra} == {ExtraKind.COPY}


def test_the_share_is_met_and_a_larger_one_keeps_the_smaller() -> None:
    few, many = golds(0.1), golds(0.3)
    assert 20 < len(few) < 65
    assert few.items() < many.items()
    assert golds(0.0) == {}


def test_a_gold_task_betrays_nothing() -> None:
    plain = task(SECRET, question(), "ann1", "/at/")["data"]
    for real, gold in golds(0.2).items():
        assert decides_nothing(gold.digest)
        assert not decides_nothing(real.digest)
        shown = task(SECRET, gold, "ann1", "/at/")["data"]
        assert shown.keys() == plain.keys()
        assert {name: len(value) for name, value in shown.items() if "image" in name or name == "item"} == {
            name: len(value) for name, value in plain.items() if "image" in name or name == "item"
        }
        beside = task(SECRET, real, "ann1", "/at/")["data"]
        assert not {shown[name] for name in shown if "image" in name} & {
            beside[name] for name in beside if "im" in name
        }
        words = ["gold", "extra", "rank", "secret-editor", gold.digest, *(str(kind) for kind in ExtraKind)]
        assert not [word for word in words if word in str(shown)]


def test_scores_count_right_answers_by_kind() -> None:
    made = {gold.digest: gold for gold in golds(0.2).values()}
    right = {digest: [p] if gold.extra.kind is ExtraKind.CLEAN else [] for digest, gold in made.items()
             if gold.extra and (p := gold.extra.picture)}  # fmt: skip
    rows = [answer(gold, "ann1", right[digest]) for digest, gold in made.items()]
    rows += [answer(gold, "ann2", [one.image for one in gold.finalists]) for gold in made.values()]
    rows += [answer(gold, "ann3", right[digest], gone=True) for digest, gold in made.items()]
    rows += [answer(question(), "ann3", []), answer(next(iter(made.values())), "stranger", [])]
    found = scores(rows, made, ["ann1", "ann2", "ann3"])
    kinds = Counter(str(gold.extra.kind) for gold in made.values() if gold.extra)
    assert (found["ann1"]["hits"], found["ann1"]["of"]) == (len(made), len(made))
    assert {kind: one["of"] for kind, one in found["ann1"]["kinds"].items()} == kinds
    assert found["ann2"]["hits"] == found["ann2"]["kinds"]["clean"]["hits"] == kinds["clean"], "who takes everything"
    assert (found["ann3"]["of"], found["ann3"]["kinds"]) == (0, {})
    for gold in made.values():
        assert gold.extra
        assert (truth(gold, 0) == gold.extra.picture) is (gold.extra.kind is ExtraKind.CLEAN)


def test_a_face_is_put_into_another_picture_and_a_copy_has_other_bytes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    images = ImageStore(store)
    one, other = (images.put(photo(name).pixels) for name in ("astronaut", "happy"))
    analyzer, embedder = ANALYZERS.get("mediapipe", {}), EMBEDDERS.get("sface", {})
    maker = Maker(store, images, analyzer)

    def seen(image: str) -> Picture:
        return Picture(image, decode_png(path_of(store, image).read_bytes()))

    copy, swapped = maker.copied(one.digest), maker.swapped(one.digest, other.digest)
    assert swapped
    assert copy != one.digest
    difference = np.abs(seen(copy).pixels.astype(int) - one.pixels).mean()
    assert 0 < difference < 3
    vectors = [embedder.embed(each, analyzer.analyze(each)[0]) for each in (one, other, seen(swapped), seen(copy))]
    assert cosine(vectors[0], vectors[3]) > 0.9
    assert cosine(vectors[2], vectors[1]) > cosine(vectors[2], vectors[0]), "it is the donor"
    outside = ~face_mask(one.pixels.shape, analyzer.analyze(one)[0], 0.2)
    assert np.abs(seen(swapped).pixels.astype(int) - one.pixels)[outside].max() < 5
    assert maker.swapped(one.digest, images.put(np.full((64, 64, 3), 128, np.uint8)).digest) is None


def test_gold_decides_nothing_and_says_who_did_not_look(tmp_path: Path) -> None:
    sets = ("review.gold=0.5",)
    waits(tmp_path, *sets)
    store, real = Store(tmp_path), questions(tmp_path, config(*sets))
    key = secret_of_all_kinds(real)
    store.write_json("review/access.json", {"secret": key.hex()})
    run = open_run(tmp_path, config(*sets), extend=False)
    made = golds_of_run(run.executor, run.config, run.executor.commits(), real, key)
    remember(store, [*real, *made])
    assert golds_of_run(run.executor, run.config, run.executor.commits(), real, key) == made
    show(store, key, [(one, "ann1") for one in made])
    assert {one.extra.kind for one in made if one.extra} >= {*GOLD} - {ExtraKind.STRANGER}
    say(tmp_path, made, ann1=wrong, ann2=wrong, ann3=right)
    counted = answers_for(store, config(*sets))
    assert not any(counted.to(one.digest) for one in made)
    assert counted.about({one.key for one in made}) == []
    say(tmp_path, real, ann1=best, ann2=best)
    words = CliRunner().invoke(app, ["review", "status", "-w", str(tmp_path)]).output
    for name in ("ann1", "ann2"):
        assert f"{name}: right in 0%" in words
    assert words.count("BELOW the pass mark of 80%") == 2
    built = finished(tmp_path, *sets)
    assert built.published
    assert built.published.triplets == len(real)
    index = write_report(built.run, built.run.executor.commits(), "reports/x")
    assert index.read_text("utf-8").count("<strong>below the mark</strong>") == 2
    forget_review(store, {made[0].key})
    assert made[0].digest not in asked(store)
    assert made[0].digest not in {question for question, _ in heard(store)}
    assert len(list((tmp_path / FOLDER).rglob("*.png"))) == 3 * len([one for one in made if one.digest in asked(store)])


def test_who_gave_a_face_can_withdraw_it(tmp_path: Path) -> None:
    waits(tmp_path, "review.gold=0.5", sources=24)
    store, real = Store(tmp_path), questions(tmp_path, config(sources=24))
    run = open_run(tmp_path, config("review.gold=0.5", sources=24), extend=False)
    made = golds_of_run(run.executor, run.config, run.executor.commits(), real, secret_of_all_kinds(real))
    remember(store, made)
    show(store, read_access(store).key, [(one, "ann1") for one in made])
    stranger = next(one for one in made if one.extra and one.extra.donors)
    assert stranger.extra
    picture = store.path(f"review/made/{stranger.extra.picture}.png")
    assert picture.exists()
    forget_review(store, set(stranger.extra.donors))
    assert stranger.digest not in asked(store)
    assert not picture.exists()
    assert not store.path(f"{FOLDER}/{folder_of(read_access(store).key, stranger)}").exists()


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
    sets = ("review.gold=0.5", "review.audit=0.2")
    review = server.review(*sets)
    access, run = read_access(server.store), review.run
    real = [question for question, _ in review.asked]
    made = golds_of_run(run.executor, run.config, run.executor.commits(), real, access.key)
    audited = audits_of(run.executor, run.config, run.executor.commits())
    assert made
    assert audited
    opened = open_review(review, lambda *_: None)
    assert sum(one.tasks for one in opened) == 3 * (len(real) + len(made) + len(audited))
    again = open_review(server.review(*sets), lambda *_: None)
    assert (len(again), sum(one.added for one in again)) == (len(opened), 0)
    cut = server.config.review.cut
    play(server.store, access, server.config.name, cut, how=Behaviour(noise=0.0, bias=0.0), tell=lambda *_: None)
    found = collect_review(server.review(*sets))
    assert (found.fresh, found.notes) == (3 * (len(real) + len(made) + len(audited)), [])
    numbers = told(server.review(*sets))
    assert numbers["decided"] == numbers["sources"] == len(real)
    assert [(one["hits"], one["of"]) for one in numbers["gold"].values()] == [(len(made) + len(audited),) * 2] * 3
    assert all(one["answered"] == len(real) for one in numbers["annotators"].values())
    assert numbers["audit"]["decided"] == numbers["audit"]["drawn"] == len(audited)
