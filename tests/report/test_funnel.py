"""The funnel: counts by stage from commits alone, and that they add up."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from schemas.outcomes import Status
from tasks.engine.errors import ContractError
from tasks.engine.rows import Commit
from tasks.report.funnel import FunnelRow, check, funnel, funnel_markdown, funnel_table, split_reasons
from tests.report.made_up import made_up


def commit(owed: int, statuses: dict[Status, int], reasons: dict[str, int]) -> Commit:
    return Commit(fingerprint="", part="", owed=owed, statuses=statuses, reasons=reasons, retryable=0, kept_digest="")


def test_a_finished_run_adds_up(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a", "b", "no-face", "broken", "wait", "c"])
    rows = {row.stage: row for row in funnel(run.executor.order, done)}
    assert list(rows) == run.executor.order
    assert rows["screen"].rejected == {"no_face": 1, "unreadable": 1}
    assert rows["generate"].owed == 4 * 6
    assert rows["generate"].failed == {"refused": 4}
    assert rows["verify"].rejected == {"no_majority": 8}
    assert rows["review"].waiting == 2
    assert rows["publish"].kept == 3
    assert all(row.complete for row in rows.values())


def test_a_word_that_is_reason_and_kind_is_told_apart_by_the_totals() -> None:
    mixed = commit(9, {Status.KEPT: 2, Status.REJECTED: 4, Status.FAILED: 3}, {"no_face": 5, "pose": 1, "timeout": 1})
    assert split_reasons(mixed) == ({"pose": 1, "no_face": 3}, {"timeout": 1, "no_face": 2})
    decided = commit(2, {Status.REJECTED: 2}, {"no_face": 2})
    assert split_reasons(decided) == ({"no_face": 2}, {})
    accident = commit(2, {Status.FAILED: 2}, {"no_face": 2})
    assert split_reasons(accident) == ({}, {"no_face": 2})


def test_counts_that_do_not_add_up_are_an_error_that_names_the_stage() -> None:
    with pytest.raises(ContractError, match="stage 'verify' owed 5 rows, but 4 left it"):
        funnel(["verify"], [{"verify": commit(5, {Status.KEPT: 4}, {})}])
    with pytest.raises(ContractError, match="'rank'"):
        check(FunnelRow("rank", 3, 1, {"low_identity": 1}, {"crashed": 1}, 1, 1, 1))


def test_an_unfinished_run_says_how_far_it_is() -> None:
    rows = funnel(["screen", "generate"], [{"screen": commit(2, {Status.KEPT: 2}, {})}, {}])
    assert [(row.owed, row.shards_done, row.complete) for row in rows] == [(2, 1, False), (0, 0, False)]
    assert "1 of 2 shards done" in funnel_markdown(rows)


@pytest.mark.parametrize("done", [[], [{}]])
def test_nothing_done_is_an_empty_funnel(done: Sequence[dict[str, Commit]]) -> None:
    assert [row.owed for row in funnel(["screen", "publish"], done)] == [0, 0]


def test_both_renderings_hold_every_number() -> None:
    rows = funnel(
        ["verify"],
        [
            {
                "verify": commit(
                    11, {Status.KEPT: 4, Status.REJECTED: 5, Status.FAILED: 2}, {"face_lost": 5, "timeout": 2}
                )
            }
        ],
    )
    text = funnel_markdown(rows)
    assert "| verify | 11 edits | 4 | 5 | 2 | 0 | face lost 5; failed: timeout 2 |" in text
    console = Console(width=120, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as capture:
        console.print(funnel_table(rows))
    assert all(word in capture.get() for word in ("verify", "11 edits", "face lost 5; failed: timeout 2"))
