"""The report says what people decided, and that nobody did where nobody did."""

from pathlib import Path

import pytest

from schemas.reviews import Flag, Flagged
from tasks.boards.answers import add
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.report.html import write_report
from tests import fakes
from tests.report.test_html import check_links
from tests.review.asking import answer, best, config, last, none, questions, say
from tests.review.test_waiting import finished, waits


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def section(index: Path) -> str:
    text = index.read_text("utf-8")
    return text[text.index('<section id="review">') : text.index('<section id="ledger">')]


def test_the_report_says_what_people_decided(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    say(tmp_path, asked[1:], ann1=best, ann2=best, ann3=last)
    say(tmp_path, asked[:1], ann1=none, ann2=none)
    flags = (Flagged(image=asked[0].finalists[0].image, flag=Flag.IDENTITY),)
    add(Store(tmp_path), [answer(asked[0], "ann1", [], seconds=12.0, flags=flags)])
    run = finished(tmp_path).run
    index = write_report(run, run.executor.commits(), "reports/x")
    told = section(index)
    for words in (
        f"{len(asked)} of {len(asked)} sources are decided: {len(asked) - 1} have a ground truth, 1 have none, 0 found",
        f"{len(asked)} <small>of {len(asked)}",
        "Krippendorff",
        "ann1 and ann3",
        "<td>12</td>",
        "identity 1",
    ):
        assert words in told
    assert "simulated" not in told
    assert "People looked at a sample" not in told
    check_links(index)


def test_a_sample_is_in_the_report(tmp_path: Path) -> None:
    sets = ("review.cut.sample=0.5", "review.max_error=1")
    waits(tmp_path, *sets, sources=40)
    asked = questions(tmp_path, config(*sets, sources=40))
    say(tmp_path, asked[:2], ann1=best, ann2=best)
    say(tmp_path, asked[2:], ann1=none, ann2=none)
    run = finished(tmp_path, *sets, sources=40).run
    index = write_report(run, run.executor.commits(), "reports/x")
    assert f"The best rank was wrong on {len(asked) - 2} of {len(asked)}: " in section(index)
    assert "Of sources outside the sample the best rank is taken" in index.read_text("utf-8")


def test_where_nobody_reviewed_it_says_so(tmp_path: Path) -> None:
    built = fakes.build(tmp_path, fakes.config())
    index = write_report(built.run, built.done, "reports/x")
    assert "Nobody reviewed: the board <code>auto</code> decided." in section(index)
    run = open_run(tmp_path / "new", config())
    index = write_report(run, run.executor.commits(), "reports/x")
    assert "no source has come to people yet" in section(index)
