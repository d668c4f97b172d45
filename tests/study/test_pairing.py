"""Which pairs are drawn, what people answer to them, and the file that comes of it; without a server."""

import csv
import io
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.expressions import Expression
from schemas.records import Key
from schemas.scoring import ScoreRow
from schemas.studies import Aspect, StudyPair
from tasks.boards.blind import in_order, task
from tasks.boards.forget import forget_review
from tasks.boards.pairs import (
    annotate,
    answers_to,
    keep_answers,
    parsed_pair,
    question_of_pair,
    read_study_pairs,
)
from tasks.boards.simulate import Behaviour
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.leaderboard.entrants import opened
from tasks.study.pairing import balanced
from tasks.study.pairs import read_pairs
from tasks.study.studies import make, pairs_file, read_study
from tests.commands import one_line
from tests.leaderboard.made_up import rows, write

SECRET = b"s" * 32
TARGETS = (Expression.HAPPY, Expression.SAD, Expression.ANGER)


def outputs(editors: int = 4, sources: int = 12) -> list[ScoreRow]:
    """Every editor's row of every source; each has its own picture."""
    found = []
    for editor in range(editors):
        for place, row in enumerate(rows(f"e{editor}", [0.5] * sources)):
            target = TARGETS[place % len(TARGETS)]
            image = f"{editor:032d}{place:032d}"
            found.append(row.model_copy(update={"image": image, "target": target}))
    return found


def test_pairs_are_balanced_and_a_larger_number_adds_to_them() -> None:
    few, equal = balanced(outputs(), 18, seed=3)
    more, _ = balanced(outputs(), 36, seed=3)
    assert equal == 0
    assert more[:18] == few
    assert len({(one.triplet, one.a, one.b) for one in more}) == 36
    assert set(Counter((one.a, one.b) for one in more).values()) == {6}, "each of six pairs of editors"
    assert set(Counter(one.target for one in more).values()) == {12}
    assert set(Counter(one.subject for one in more).values()) <= {2, 3, 4}, "sources come after editors and targets"
    assert all(one.a < one.b for one in more)
    assert balanced(list(reversed(outputs())), 36, seed=3)[0] == more, "the order of rows decides nothing"
    assert balanced(outputs(), 36, seed=4)[0] != more
    assert len(balanced(outputs(), 1000, seed=3)[0]) == 6 * 12, "no more than there are"


def test_equal_pictures_and_absent_ones_are_no_pair() -> None:
    held = outputs(editors=2, sources=4)
    held[0] = held[0].model_copy(update={"image": ""})
    held[1] = held[1].model_copy(update={"image": held[5].image})
    found, equal = balanced(held, 100, seed=0)
    assert (len(found), equal) == (2, 1)


def pair() -> StudyPair:
    (one, *_), _ = balanced(outputs(), 1, seed=0)
    return one


def annotation(**said: str) -> dict[str, Any]:
    parts = [
        {"from_name": name, "to_name": "src_image", "type": "choices", "value": {"choices": [side]}}
        for name, side in said.items()
    ]
    return {"id": 1, "updated_at": "2026-11-30T00:00:00Z", "lead_time": 9.5, "result": parts}


def test_left_and_right_are_brought_back_for_everybody() -> None:
    question = question_of_pair(pair())
    orders = set()
    for number in range(8):
        name = f"ann{number}"
        left = in_order(SECRET, question, name)[0].image
        orders.add(left)
        given = annotation(overall="left", instruction="right", identity="same")
        answer, why = parsed_pair(question, given, SECRET, name)
        assert answer, why
        is_a = left == question.finalists[0].image
        assert [one.side for one in answer.choices] == ["a" if is_a else "b", "b" if is_a else "a", "same"]
        assert (answer.first, answer.seconds, answer.played) == (left, 9.5, False)
    assert len(orders) == 2


def test_half_an_answer_is_none() -> None:
    question = question_of_pair(pair())
    answer, why = parsed_pair(question, annotation(overall="left", identity="elsewhere"), SECRET, "ann1")
    assert answer is None
    assert why == "it says nothing on instruction, identity"


def test_a_task_names_nobody() -> None:
    one = pair()
    shown = str(task(SECRET, question_of_pair(one), "ann1", "/data/?d="))
    assert one.instruction in shown
    for word in (one.a, one.b, one.key.source_id, one.triplet, one.a_image, "rank", "ann1"):
        assert f"'{word}'" not in shown
        assert f"/{word}" not in shown


def test_played_people_follow_one_coin_but_for_noise_and_bias() -> None:
    found, _ = balanced(outputs(), 60, seed=0)
    questions = [question_of_pair(one) for one in found]

    def said(name: str, how: Behaviour) -> list[Any]:
        given = [annotate(one, name, SECRET, random.Random(f"{name}{one.digest}"), how) for one in questions]
        dated = [one | {"updated_at": "now"} for one in given]
        answers = [parsed_pair(one, two, SECRET, name)[0] for one, two in zip(questions, dated, strict=True)]
        assert all(answer and answer.played for answer in answers)
        return [answer.choices for answer in answers if answer]

    assert said("ann1", Behaviour(noise=0)) == said("ann2", Behaviour(noise=0))
    assert said("ann1", Behaviour(noise=0.5)) != said("ann2", Behaviour(noise=0.5))
    sides = Counter(one.side for choices in said("ann1", Behaviour(noise=0)) for one in choices)
    assert min(sides["a"], sides["b"]) > 50 > sides["same"] > 5


@pytest.fixture
def store(tmp_path: Path) -> Store:
    write(tmp_path, "r", outputs())
    store = Store(tmp_path)
    make(store, opened(tmp_path, ["r"]), 20, name="first", seed=0, annotators=("ann1", "ann2", "ann3"))
    return store


def answer_all(store: Store, **sides: str) -> None:
    given = annotation(**{aspect: sides.get(aspect, "left") for aspect in Aspect})
    for name in ("ann1", "ann2"):
        questions = [question_of_pair(one) for one in read_study_pairs(store, "first")]
        answers = [parsed_pair(question, given, SECRET, name)[0] for question in questions]
        keep_answers(store, "first", [answer for answer in answers if answer])


def test_the_file_of_pairs_is_read_by_agreement(store: Store, tmp_path: Path) -> None:
    answer_all(store, identity="same")
    path = tmp_path / "pairs.csv"
    path.write_bytes(pairs_file(store, read_study(store, "first")))
    found, unused = read_pairs(path)
    assert unused == []
    assert len(found) == 20
    assert list(found[0].choices) == ["overall", "instruction", "identity"]
    assert {one.choices["identity"][2] for one in found} == {""}, "the third has not answered"
    assert {tuple(one.choices["identity"][:2]) for one in found} == {("same", "same")}
    assert {one for two in found for one in two.choices["overall"][:2]} == {"a", "b"}
    header = next(csv.reader(io.StringIO(path.read_text())))
    assert header[:3] == ["source", "a", "b"]


def test_answers_that_did_not_change_are_not_new(store: Store) -> None:
    answer_all(store)
    kept = answers_to(store, "first")
    assert len(kept) == 40
    assert keep_answers(store, "first", list(kept.values())) == 0


def test_a_study_grows_and_keeps_its_pairs_or_says_why_not(store: Store, tmp_path: Path) -> None:
    before = read_study_pairs(store, "first")
    runs = opened(tmp_path, ["r"])
    more = make(store, runs, 30, name="first", seed=0, annotators=("ann1",))
    assert more.pairs[:20] == before
    assert len(make(store, runs, 5, name="first", seed=0, annotators=("ann1",)).pairs) == 30
    with pytest.raises(ConfigError, match="has pairs that these runs and this seed do not give"):
        make(store, runs, 30, name="first", seed=1, annotators=("ann1",))
    write(tmp_path, "other", outputs(), rows_sha256="1" * 64)
    with pytest.raises(ConfigError, match="'r' scored d v1"):
        make(store, opened(tmp_path, ["r", "other"]), 30, name="second", seed=0, annotators=("ann1",))
    write(tmp_path, "single", outputs(editors=1))
    with pytest.raises(ConfigError, match="no two editors of single"):
        make(store, opened(tmp_path, ["single"]), 30, name="third", seed=0, annotators=("ann1",))


def test_a_withdrawal_takes_pairs_and_answers(store: Store) -> None:
    answer_all(store)
    gone = read_study_pairs(store, "first")[0].key
    forget_review(store, {gone})
    left = read_study_pairs(store, "first")
    assert left
    assert gone not in {one.key for one in left}
    assert gone not in {one.key for one in answers_to(store, "first").values()}
    assert gone.source_id.encode() not in pairs_file(store, read_study(store, "first"))
    forget_review(store, {Key("nobody", "here")})
    assert read_study_pairs(store, "first") == left


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pairs", "r", "--name", "No Good"], "name: String should match"),
        (["pairs", "nobody", "--name", "x"], "no run 'nobody' with scores"),
        (["pairs", "r", "--name", "x", "--annotator", "A B"], "annotators.0: String should match"),
        (["open", "second"], "no study 'second'"),
        (["collect", "first", "--out", "pairs.xlsx"], "the file of pairs is CSV"),
        (["open", "first"], "no token of 'admin' is known here"),
    ],
)
def test_mistakes_are_one_line(store: Store, words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["study", *words, "-w", str(store.root)])
    assert done.exit_code == 2, done.output
    told, hint = one_line(done.stderr)
    assert message in told
    assert hint


def test_the_command_says_how_the_pairs_are_spread(store: Store) -> None:
    done = CliRunner().invoke(app, ["study", "pairs", "r", "--name", "second", "--number", "12", "-w", str(store.root)])
    assert done.exit_code == 0, done.output
    assert "second: 12 pairs of outputs on d v1" in done.stdout
    assert "editors       e0 6, e1 6, e2 6, e3 6" in done.stdout
    assert "next          fedbench study open second" in done.stdout
