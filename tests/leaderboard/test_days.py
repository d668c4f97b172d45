"""Boards of runs that were judged on different days: marked, unless somebody looked whether the judge drifted."""

from pathlib import Path

import pytest

from schemas.judging import JUDGING, DriftCheck, DriftPart, JudgedOn, JudgingRecord
from schemas.scoring import Granularity, Part
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.leaderboard.entrants import opened
from tasks.leaderboard.files import lines, markdown, plain
from tasks.leaderboard.page import write_page
from tasks.leaderboard.ranking import boards
from tests.leaderboard.made_up import rows, write


def judged(folder: Path, run: str, editor: str, day: str, *checks: DriftCheck) -> None:
    """Write a run's record."""
    on = JudgedOn(editor=editor, granularity=Granularity.SIMPLE, judge="J", first=day, last=day, outputs=12)
    record = JudgingRecord(apart=1, judged=(on,), checks=checks)
    (folder / "runs" / run / "scores" / JUDGING).write_text(record.model_dump_json())


def check(on: str, first: str) -> DriftCheck:
    part = DriftPart(part=Part.PQ, outputs=50, mean=0.1, low=-0.1, high=0.3, answers=50, flips=2)
    return DriftCheck(
        judge="J", identity="", on=on, first=first, last=first, outputs=50, abstained=0, unreached=0, parts=(part,)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "old", rows("a", [0.5] * 12))
    write(tmp_path, "new", rows("b", [0.6] * 12))
    return tmp_path


def test_other_days_are_marked_until_somebody_looks(folder: Path) -> None:
    judged(folder, "old", "a", "2026-03-01")
    judged(folder, "new", "b", "2026-11-30")
    (board,) = boards(opened(folder, ["old", "new"]))
    assert {one.editor: (one.judged_first, one.drift_unchecked) for one in lines([board])} == {
        "a": ("2026-03-01", True),
        "b": ("2026-11-30", False),
    }
    (words,) = board.judged.words
    assert words.startswith("J judged a of run old from 2026-03-01 on, others later; nobody looked")
    assert "--drift now" in words
    text = write_page([board], Store(folder), "reports/leaderboards/x", published=False).read_text()
    assert "Judged on different days." in text
    assert "a †" in text
    assert "b †" not in text
    assert "nobody looked" in markdown([board], published=False)

    judged(folder, "old", "a", "2026-03-01", check("2026-11-30", "2026-03-01"))
    (board,) = boards(opened(folder, ["new", "old"]))
    assert board.judged.words == []
    assert {one.drift_unchecked for one in lines([board])} == {False}
    told = plain([board], published=False)["boards"][0]["drift"]
    assert [one["on"] for one in told["checks"]] == ["2026-11-30"]
    text = write_page([board], Store(folder), "reports/leaderboards/x", published=False).read_text()
    assert "Judged on different days." not in text
    assert "PQ +0.10 (-0.10 to +0.30)" in text


def test_days_of_one_week_end_need_no_check_and_unknown_ones_are_said(folder: Path) -> None:
    judged(folder, "old", "a", "2026-11-29")
    judged(folder, "new", "b", "2026-11-30")
    (board,) = boards(opened(folder, ["old", "new"]))
    assert board.judged.words == []
    (folder / "runs/old/scores" / JUDGING).unlink()
    (board,) = boards(opened(folder, ["old", "new"]))
    assert board.judged.words == ["run old does not say on which days its judges answered"]
    assert {one.editor: one.judged_last for one in lines([board])} == {"a": "", "b": "2026-11-30"}


def test_a_record_that_cannot_be_read_is_said(folder: Path) -> None:
    (folder / "runs/old/scores" / JUDGING).write_text("{")
    with pytest.raises(ConfigError, match=r"cannot read .*judging\.json"):
        opened(folder, ["old"])
