"""The daily board by hand: days, speed, speeders, agreement, gold; and the day on which all will be done."""

import json
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.review import numbers_markdown
from schemas.reviewing import ReviewCut
from schemas.reviews import Answer, Extra, ExtraKind, Question
from tasks.boards.answers import Answers, add
from tasks.boards.daily import board
from tasks.boards.gold import extra_question
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.report.days import day_plot
from tasks.report.html import write_report
from tasks.reviewing import review_of, told
from tests import fakes
from tests.review.asking import answer, best, config, questions
from tests.review.test_reading import question
from tests.review.test_waiting import waits

MON, TUE, FRI = "2026-11-02T08:00:00Z", "2026-11-03T23:59:59Z", "2026-11-06T00:00:00Z"


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def numbers(owed: int) -> dict[str, object]:
    asked = [question(number) for number in range(4)]
    first = {one.digest: one.finalists[0].image for one in asked}
    gold = extra_question(
        question(9).finalists, Extra(kind=ExtraKind.COPY, picture=question(9).finalists[1].image, beside="x")
    )

    def says(one: Question, name: str, when: str, seconds: float, *, good: bool = True) -> Answer:
        return answer(one, name, [first[one.digest]] if good else [], given=when, seconds=seconds)

    rows = [says(asked[0], "ann1", MON, 20.0), says(asked[1], "ann1", MON, 4.0), says(asked[2], "ann1", TUE, 40.0)]
    rows += [says(asked[0], "ann2", MON, 9.0), says(asked[1], "ann2", FRI, 3.0, good=False)]
    rows += [says(asked[0], "ann3", FRI, 2.0, good=False), says(asked[1], "ann3", FRI, 1.0)]
    rows += [says(asked[3], "stranger", FRI, 1.0)]
    said = [
        answer(gold, "ann1", [], given=MON, seconds=30.0),
        answer(gold, "ann3", [gold.finalists[1].image], given=FRI, seconds=4.9),
    ]
    answers = Answers({one.digest: tuple(row for row in rows if row.question == one.digest) for one in asked}, 1)
    return board(asked, answers, {gold.digest: gold}, said, cut=ReviewCut(), owed=owed)


def test_by_hand() -> None:
    found = numbers(owed=5)
    days = {(row["day"], row["annotator"]): row for row in found["days"]}  # type: ignore[attr-defined]
    assert list(days) == [("2026-11-02", "ann1"), ("2026-11-02", "ann2"), ("2026-11-03", "ann1"),
                          ("2026-11-06", "ann2"), ("2026-11-06", "ann3")]  # fmt: skip
    monday, friday = days["2026-11-02", "ann1"], days["2026-11-06", "ann3"]
    assert (monday["answers"], monday["extra"], monday["median_seconds"]) == (2, 1, 20.0)
    assert (monday["speeders"]["hits"], monday["speeders"]["of"]) == (1, 3)
    # Questions 0 and 1 are decided for the first, by two of three each; what is still open says nothing of anybody.
    assert (monday["as_decided"]["hits"], monday["as_decided"]["of"]) == (2, 2)
    assert days["2026-11-03", "ann1"]["as_decided"]["of"] == 0
    assert (friday["as_decided"]["hits"], friday["as_decided"]["of"]) == (1, 2)
    assert (monday["gold"]["hits"], monday["gold"]["of"]) == (1, 1)
    assert (friday["gold"]["hits"], friday["gold"]["of"]) == (0, 1)
    assert friday["speeders"]["hits"] == 3
    # Seven answers on five calendar days, 2 to 6 November; five more take ceil(5 / 1.4) = 4 days.
    assert found["per_day"] == pytest.approx(7 / 5)
    assert found["finish"] == "2026-11-10"
    assert numbers(owed=0)["finish"] is None
    nobody = board([], Answers({}, 0), {}, [], cut=ReviewCut(), owed=3)
    assert nobody == {"days": [], "per_day": None, "finish": None}


def test_the_pace_is_that_of_the_last_seven_days_with_answers() -> None:
    asked = [question(number) for number in range(30)]
    rows = {}
    for number, one in enumerate(asked):  # twenty on the first day, then one a day
        when = date(2026, 11, 1 if number < 20 else number - 18).isoformat()
        rows[one.digest] = (answer(one, "ann1", [], given=f"{when}T10:00:00Z"),)
    found = board(asked, Answers(rows, 1), {}, [], cut=ReviewCut(), owed=2)
    assert found["per_day"] == 1.0
    assert found["finish"] == "2026-11-13"


def test_bars_stack_to_the_answers_of_a_day() -> None:
    plot = day_plot(numbers(owed=5)["days"])  # type: ignore[arg-type]
    assert plot
    assert (plot.first, plot.last, plot.most) == ("2026-11-02", "2026-11-06", 4)
    assert [name for name, _ in plot.names] == ["ann1", "ann2", "ann3"]
    assert len({fill for _, fill in plot.names}) == 3
    monday = plot.parts[:2]
    assert [(part.top, part.height) for part in monday] == [(25.0, 75.0), (0.0, 25.0)]
    assert all(part.top >= 0 and part.top + part.height <= 100 for part in plot.parts)
    assert plot.parts[-1].words == "2026-11-06, ann3: 3 answers, 2 s at the median"
    assert day_plot([]) is None


def test_it_is_told_on_the_command_line_and_in_the_report(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())

    def status(*words: str) -> str:
        return CliRunner().invoke(app, ["review", "status", "-w", str(tmp_path), "--daily", *words]).output

    assert "nobody has answered yet" in status()
    for name, when in (("ann1", MON), ("ann2", TUE)):
        add(Store(tmp_path), [answer(one, name, best(one), given=when, seconds=7.0) for one in asked[:3]])
    assert "2026-11-02  ann1" in status()
    assert f"{3 * (len(asked) - 3)} answers are owed at least" in status()
    rows = json.loads(status("--json"))["days"]
    assert [(row["day"], row["annotator"], row["answers"]) for row in rows] == [
        ("2026-11-02", "ann1", 3), ("2026-11-03", "ann2", 3)]  # fmt: skip
    run = open_run(tmp_path, config(), extend=False)
    assert "| 2026-11-03 | ann2 | 3 |" in numbers_markdown(told(review_of(run)))
    page = write_report(run, run.executor.commits(), "reports/x").read_text("utf-8")
    assert page.count("<title>2026-11-0") == 2
    assert '<th scope="row">2026-11-02</th><td>ann1</td><td>3</td>' in page
