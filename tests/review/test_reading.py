"""What annotations become: A and B brought back, one answer a person, nobody else's; and what answers decide."""

from typing import Any

import pytest

from schemas.expressions import Expression
from schemas.records import Finalist, Key
from schemas.reviewing import ReviewCut
from schemas.reviews import Answer, Flag, Quality, Question
from tasks.boards.answers import Answers
from tasks.boards.blind import PLAYED, captioned, files_of, in_order, item_of, task
from tasks.boards.collecting import Reader, _read, latest, parsed
from tasks.boards.projects import wanted
from tasks.boards.questions import question_of
from tasks.boards.statistics import alpha, statistics
from tasks.boards.votes import verdict
from tests.review.asking import answer

SECRET = b"s" * 32
NAMES = ("ann1", "ann2", "ann3")


def question(number: int = 0, finalists: int = 2) -> Question:
    return question_of(
        [
            Finalist(
                key=Key("pool", f"source-{number}", target, "secret-editor", 0),
                source_image=f"{number:063d}s",
                source_expression=Expression.NEUTRAL,
                image=f"{number:063d}{rank}",
                instruction=f"change the expression from neutral to {target}",
                rank=rank,
                score=0.123456,
                caption=f"caption {rank}",
            )
            for rank, target in ((1, "happy"), (2, "sad"))[:finalists]
        ]
    )


def annotation(number: int, decision: str | None, **fields: Any) -> dict[str, Any]:
    result = [] if decision is None else [chosen("decision", decision)]
    return {"id": number, "completed_by": 7, "updated_by": 7, "updated_at": f"2026-11-30T00:00:{number:02}Z",
            "was_cancelled": False, "lead_time": 12.5, "task": 1, "result": result} | fields  # fmt: skip


def chosen(name: str, *choices: str) -> dict[str, Any]:
    return {"from_name": name, "to_name": "x", "type": "choices", "value": {"choices": list(choices)}}


def reader(asked: Question, known: Answer | None = None, account: int | None = 7) -> Reader[Answer]:
    held = {(known.question, known.annotator): known} if known else {}
    return Reader(SECRET, "ann1", account, {item_of(SECRET, asked, "ann1"): asked}, held, [], parsed)


# -- blinding -----------------------------------------------------------------------------------------------------


def test_a_task_betrays_nothing() -> None:
    asked = question(3)
    for name in NAMES:
        told = str(task(SECRET, asked, name, "/at/"))
        for word in ("secret-editor", "source-3", "rank", "0.123", "score", name, asked.digest):
            assert word not in told
        assert all(one.image not in told for one in asked.finalists)


def test_order_is_a_fair_coin_per_question_and_person() -> None:
    asked = [question(number) for number in range(400)]
    first = {name: [in_order(SECRET, one, name)[0] is one.finalists[0] for one in asked] for name in NAMES}
    for tosses in first.values():
        assert 160 < sum(tosses) < 240
    for one, other in (("ann1", "ann2"), ("ann2", "ann3"), ("ann1", "ann3")):
        assert 160 < sum(a == b for a, b in zip(first[one], first[other], strict=True)) < 240
    assert first["ann1"] != [in_order(b"t" * 32, one, "ann1")[0] is one.finalists[0] for one in asked]


def test_a_fifth_has_no_captions() -> None:
    bare = [one for number in range(400) if not captioned(SECRET, one := question(number), "ann1")]
    assert 55 < len(bare) < 105
    mute = question_of(
        [one.model_copy(update={"caption": one.caption * (one.rank - 1)}) for one in question(7).finalists]
    )
    assert not any(captioned(SECRET, mute, f"ann{number}") for number in range(20)), "one caption alone would tell"
    data = task(SECRET, bare[0], "ann1", "")["data"]
    assert (data["left_caption"], data["right_caption"]) == ("", "")
    assert data["left_target"].startswith("change the expression")


def test_every_picture_of_every_task_has_an_address_of_its_own() -> None:
    shown = [
        (path, image)
        for asked in (question(1), question(1, finalists=1), question(2))
        for name in NAMES
        for path, image in files_of(SECRET, asked, name).values()
    ]
    assert len({path for path, _ in shown}) == len(shown) == 24
    assert len({image for _, image in shown}) == 6, "the same photo stands behind several addresses"
    left, right = in_order(SECRET, question(1), "ann1")
    files = files_of(SECRET, question(1), "ann1")
    assert (files["left"][1], files["right"][1]) == (left.image, right.image)
    assert not [path for path, image in shown if image[:8] in path]


def test_a_question_is_its_pictures_requests_and_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question()
    swapped = [one.model_copy(update={"rank": 3 - one.rank, "caption": "other"}) for one in asked.finalists]
    assert question_of(swapped).digest == asked.digest
    assert question_of(asked.finalists[:1]).digest != asked.digest
    monkeypatch.setattr("prompts.version_of", lambda _: 99)
    assert question_of(asked.finalists).digest != asked.digest


# -- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f"ann{number}" for number in range(8)])
def test_left_and_right_go_back_to_pictures(name: str) -> None:
    asked = question()
    left, right = in_order(SECRET, asked, name)
    for decision, usable in (
        ("left", {left.image}),
        ("right", {right.image}),
        ("both", {left.image, right.image}),
        ("neither", set()),
    ):
        given, _ = parsed(asked, annotation(1, decision), SECRET, name)
        assert given
        assert set(given.usable) == usable
        assert given.first == left.image


def test_ratings_flags_comment_and_time_are_kept() -> None:
    asked = question()
    parts = [
        chosen("decision", "left"),
        chosen("left_natural", "5"),
        chosen("right_identity", "2"),
        chosen("right_background", "4"),
        chosen("right_preserved", "3"),
        chosen("right_flags", "identity", "background", "unheard-of"),
        chosen("left_natural2", "5"),
        {"from_name": "comment", "value": {"text": ["one", "two"]}},
    ]
    given, _ = parsed(asked, annotation(1, None, result=parts), SECRET, "ann1")
    assert given
    left, right = in_order(SECRET, asked, "ann1")
    assert [(one.image, one.quality, one.value) for one in given.ratings] == [
        (left.image, Quality.NATURAL, 5),
        (right.image, Quality.IDENTITY, 2),
        (right.image, Quality.BACKGROUND, 4),
    ]
    assert {(one.image, one.flag) for one in given.flags} == {
        (right.image, Flag.IDENTITY),
        (right.image, Flag.BACKGROUND),
    }
    assert (given.comment, given.seconds) == ("one / two", 12.5)


@pytest.mark.parametrize("odd", ["x", None, {"value": "x"}, {"value": {"choices": 5, "text": 5}},
                                 {"from_name": ["left_natural"], "value": {"choices": "5"}}])  # fmt: skip
def test_parts_of_another_shape_say_nothing_and_harm_nobody(odd: Any) -> None:
    asked = question()
    given, _ = parsed(asked, annotation(1, None, result=[odd, chosen("decision", "left"), odd]), SECRET, "ann1")
    plain, _ = parsed(asked, annotation(1, "left"), SECRET, "ann1")
    assert given == plain is not None


def test_who_rates_twice_in_one_answer_rates_once() -> None:
    asked = question()
    twice = [chosen("decision", "left"), *(chosen("left_natural", value) for value in ("5", "5", "1"))]
    tags = [chosen("left_flags", "artifacts"), chosen("left_flags", "artifacts", "identity")]
    given, _ = parsed(asked, annotation(1, None, result=[*twice, *tags]), SECRET, "ann1")
    assert given
    assert [one.value for one in given.ratings] == [1]
    assert [one.flag for one in given.flags] == [Flag.ARTIFACTS, Flag.IDENTITY]


@pytest.mark.parametrize(("told", "kept"), [(0, 0.0), (59.5, 59.5), (-5, None), (1e308, None), (None, None)])
def test_a_time_that_cannot_be_is_none(told: float | None, kept: float | None) -> None:
    given, _ = parsed(question(), annotation(1, "left", lead_time=told), SECRET, "ann1")
    assert given
    assert given.seconds == kept


def test_what_the_server_cannot_show_leaves_what_was_collected() -> None:
    asked = question()
    read = reader(asked, answer(asked, "ann1", []))
    assert _read([{"id": 9, "data": {"item": item_of(SECRET, asked, "ann1")}, "annotations": None}], read) == []
    assert "cannot show the answers to task 9" in read.notes[0]


@pytest.mark.parametrize("parts", [[], [chosen("decision")], [chosen("decision", "left", "right")],
                                   [chosen("decision", "left"), chosen("decision", "right")],
                                   [chosen("decision", "links")], [chosen("verdict", "left")]])  # fmt: skip
def test_what_cannot_be_read_is_no_answer_and_said(parts: list[Any]) -> None:
    asked, known = question(), answer(question(), "ann1", [])
    for before in (None, known):
        read = reader(asked, before)
        assert latest(asked, [annotation(1, None, result=parts)], read) == before
        assert "cannot be read" in read.notes[0]


def test_one_finalist_is_usable_or_not() -> None:
    asked = question(finalists=1)
    assert parsed(asked, annotation(1, "left"), SECRET, "ann1")[0].usable == (asked.finalists[0].image,)  # type: ignore[union-attr]
    assert parsed(asked, annotation(1, "neither"), SECRET, "ann1")[0].usable == ()  # type: ignore[union-attr]
    for impossible in ("right", "both"):
        assert parsed(asked, annotation(1, impossible), SECRET, "ann1")[0] is None


def test_the_latest_of_several_counts_in_any_order() -> None:
    asked = question()
    for order in ((1, 2, 3), (3, 1, 2)):
        read = reader(asked)
        given = latest(asked, [annotation(n, {1: "left", 2: "right", 3: "neither"}[n]) for n in order], read)
        assert given
        assert given.usable == ()
        assert "3 answers" in read.notes[0]


def test_nobody_answers_for_another() -> None:
    asked = question()
    read = reader(asked)
    assert latest(asked, [annotation(1, "left", completed_by={"id": 9})], read) is None
    assert "by account 9" in read.notes[0]
    read = reader(asked)
    given = latest(asked, [annotation(1, "neither"), annotation(2, "left", completed_by=9)], read)
    assert given
    assert given.usable == ()


def test_a_changed_answer_is_flagged_and_the_own_one_stands() -> None:
    asked = question()
    own = answer(asked, "ann1", [])
    read = reader(asked, own)
    given = latest(asked, [annotation(1, "left", updated_by=9)], read)
    assert given == own.model_copy(update={"edited_by": 9})
    assert "changed by account 9" in read.notes[0]
    assert latest(asked, [annotation(1, "left", updated_by=9)], reader(asked)) is None
    # An import writes answers in anybody's name, and leaves nobody's hand on them.
    read, imported = reader(asked, own), annotation(2, "left", updated_by=None)
    given = latest(asked, [annotation(1, "neither"), imported], read)
    assert given
    assert given.usable == ()
    assert "was imported" in read.notes[0]
    assert latest(asked, [imported], reader(asked)) is None
    assert latest(asked, [imported], reader(asked, own)) == own


@pytest.mark.parametrize("left", [[], [annotation(1, "left", was_cancelled=True)]], ids=["deleted", "skipped"])
def test_an_answer_can_be_taken_back(left: list[Any]) -> None:
    asked = question()
    assert latest(asked, left, reader(asked)) is None
    given = latest(asked, left, reader(asked, answer(asked, "ann1", [])))
    assert given
    assert given.gone


def test_doubled_and_foreign_tasks_are_told() -> None:
    asked = question()
    read = reader(asked)
    data = {"item": item_of(SECRET, asked, "ann1")}
    rows = _read(
        [
            {"id": 1, "data": data, "annotations": [annotation(1, "left")]},
            {"id": 2, "data": data, "annotations": [annotation(2, "neither")]},
            {"id": 3, "data": {"item": "x"}, "annotations": [annotation(3, "left")]},
            {"id": 4, "data": None},
        ],
        read,
    )
    assert [row.usable for row in rows] == [()]
    assert any("twice" in note for note in read.notes)
    assert sum("asks nothing" in note for note in read.notes) == 2


def test_a_deleted_account_keeps_its_answers() -> None:
    asked = question()
    given = latest(asked, [annotation(1, "neither")], reader(asked, account=None))
    assert given


# -- deciding -----------------------------------------------------------------------------------------------------

A, B, BOTH, NONE = ("a",), ("b",), ("a", "b"), ()
CUT = ReviewCut()


def said(**usable: tuple[str, ...]) -> list[Answer]:
    return [answer(question(), name, one) for name, one in usable.items()]


@pytest.mark.parametrize(
    ("answers", "usable", "words"),
    [
        ({}, None, "0 of 3 people have answered"),
        ({"ann1": A}, None, "1 of 3 people have answered"),
        ({"ann1": A, "ann2": B}, None, "2 of 3 people have answered"),
        ({"ann1": A, "ann2": A}, A, "2 of 2 people chose one"),
        ({"ann1": A, "ann2": A, "ann3": NONE}, A, "2 of 3 people chose one"),
        ({"ann1": BOTH, "ann2": B, "ann3": BOTH}, BOTH, "2 of 3 people found both usable"),
        ({"ann1": NONE, "ann2": NONE, "ann3": A}, NONE, "2 of 3 people found none usable"),
        ({"ann1": A, "ann2": B, "ann3": NONE}, NONE, "no majority of 3 people"),
        ({"ann1": A, "ann2": B, "stranger": A}, None, "2 of 3 people have answered"),
    ],
)
def test_a_majority_decides(answers: Any, usable: Any, words: str) -> None:
    found = verdict(said(**answers), CUT)
    assert (found.usable, found.note) == (usable, words)
    assert verdict(said(**answers)[::-1], CUT) == found


def test_a_played_answer_is_never_taken_for_a_persons() -> None:
    asked = question()
    parts = [chosen("decision", "neither"), {"from_name": "comment", "value": {"text": [PLAYED]}}]
    given, _ = parsed(asked, annotation(1, None, result=parts), SECRET, "ann1")
    assert given
    assert given.played
    assert verdict([given, *said(ann2=NONE)], CUT).note == "2 of 2 simulated people found none usable"


def test_a_person_who_says_what_was_played_is_heard() -> None:
    asked = question()
    played, human = (answer(asked, "ann1", [], played=one) for one in (True, False))
    about = [Answers({asked.digest: (one,)}).about([asked.key]) for one in (played, human)]
    assert about[0] != about[1]


def test_an_adjudicator_decides_where_there_is_no_majority_and_nowhere_else() -> None:
    cut = ReviewCut(adjudicators=("judge",))
    split = {"ann1": A, "ann2": B, "ann3": NONE}
    assert verdict(said(**split), cut).usable is None
    assert verdict(said(**split, judge=B), cut).usable == B
    assert verdict(said(ann1=A, ann2=A, ann3=A, judge=B), cut).usable == A
    assert verdict(said(ann1=A, judge=B), cut).usable is None
    assert wanted("judge", said(**split), cut)
    assert not wanted("judge", said(ann1=A), cut)
    assert not wanted("judge", said(ann1=A, ann2=A), cut)


def test_who_left_counts_and_who_came_is_asked_what_is_open() -> None:
    cut = ReviewCut(annotators=("ann2", "ann3", "ann4"), former=("ann1",))
    assert verdict(said(ann1=A, ann2=A), cut).usable == A
    assert not wanted("ann4", said(ann1=A, ann2=A), cut)
    assert wanted("ann4", said(ann1=A, ann2=B), cut)
    assert wanted("ann3", said(ann3=A), cut), "their own answer is no reason to take the task away"
    four = said(ann1=A, ann2=A, ann3=B, ann4=B)
    assert verdict(four, cut).usable == NONE, "two of four is no majority"


# -- statistics ---------------------------------------------------------------------------------------------------


def test_alpha_by_hand() -> None:
    # 2 raters, 10 binary units (Krippendorff 2011, section A): o01 + o10 = 8, n0 = 14, n1 = 6: 1 - 19·8/(2·14·6).
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert alpha(list(zip(first, second, strict=True))) == pytest.approx(1 - 19 * 8 / (2 * 14 * 6))
    assert alpha(list(zip(first, second, strict=True))) == pytest.approx(0.095, abs=5e-4)
    # 3 raters, 2 units, one answer missing: aab, ab → each pair of aab weighs 1/2; a: 3, b: 2; off the diagonal 2 + 2.
    assert alpha([("a", "a", "b"), ("a", "b"), ("a",)]) == pytest.approx(1 - 4 * (2 + 2) / (2 * 3 * 2))
    assert alpha([("a", "a"), ("b", "b")]) == 1
    assert alpha([("a", "a"), ("a", "a")]) is None
    assert alpha([]) is None


def test_statistics_count_what_they_say() -> None:
    asked = [question(number) for number in range(4)]
    rows = []
    for number, one in enumerate(asked):
        best, second = (finalist.image for finalist in one.finalists)
        rows += [
            answer(one, "ann1", [best], seconds=10.0),
            answer(one, "ann2", [best] if number else [second], seconds=3.0),
            *([answer(one, "ann3", [best, second], seconds=30.0)] if number < 2 else []),
            answer(one, "stranger", []),
        ]
    answers = Answers({one.digest: tuple(row for row in rows if row.question == one.digest) for one in asked}, 1)
    found = statistics(asked, answers, CUT)
    assert (found["sources"], found["decided"], found["chosen"], found["rejected"]) == (4, 4, 3, 1)
    assert found["without_majority"] == 1
    assert found["rank"]["hits"] == found["rank"]["of"] == 3
    assert found["pairwise"]["ann1 and ann2"] | {"low": 0, "high": 0} == {
        "hits": 3, "of": 4, "value": 0.75, "low": 0, "high": 0}  # fmt: skip
    assert found["annotators"]["ann3"]["answered"] == 2
    assert found["annotators"]["ann2"]["median_seconds"] == 3
    assert found["annotators"]["ann2"]["under_5_seconds"] == 4
    # ann2 stands against "first" and "both" on questions 0 and 1, alone with ann1 on the others: nobody to stand by.
    assert found["annotators"]["ann2"]["with_the_others"]["of"] == 0
    assert found["position"]["of"] == 8
    assert found["position"]["hits"] == 7
