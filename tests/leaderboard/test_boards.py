"""Boards of made-up runs: who ranks with whom, where, and what is said of it."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemas.score_config import ScoreCut
from schemas.score_manifest import EditorUsed, JudgeUsed
from schemas.scoring import ScoreRow
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.leaderboard.entrants import opened
from tasks.leaderboard.files import lines, markdown, plain, write_files
from tasks.leaderboard.ranking import Board, boards
from tests.leaderboard.made_up import rows, write
from tests.scoring.samples import judged, row, rule

SPREAD = [0.2, 0.4, 0.6, 0.8] * 5


def board(folder: Path, *names: str, **options: Any) -> list[Board]:
    return boards(opened(folder, names), **options)


def labels(one: Board) -> list[str]:
    return [held.label for held in one.rows]


def test_one_editor_has_a_rank_and_nobody_to_be_compared_with(tmp_path: Path) -> None:
    write(tmp_path, "r", rows("a", SPREAD))
    (one,) = board(tmp_path, "r")
    (line,) = one.rows
    assert (line.rank, line.range, line.next) == (1, (1, 1), None)
    assert line.score.value == pytest.approx(0.5)
    assert line.low is not None
    assert line.high is not None
    assert line.low < 0.5 < line.high
    assert markdown([one], published=True).count("\n| ") == 2 + 19


def test_three_editors_are_ranked_and_told_apart_where_that_is_so(tmp_path: Path) -> None:
    mixed = [value + (0.1 if place % 2 else -0.1) for place, value in enumerate(SPREAD)]
    held = [*rows("low", [value / 2 for value in SPREAD]), *rows("same", mixed), *rows("top", SPREAD)]
    write(tmp_path, "r", held)
    (one,) = board(tmp_path, "r")
    assert labels(one) == ["same", "top", "low"]
    first, second, third = one.rows
    assert first.next is not None
    assert first.next.verdict == "indistinguishable"
    assert second.next is not None
    assert (second.next.verdict, second.next.value) == ("better", pytest.approx(0.25))
    assert third.next is None
    assert (third.range, second.range) == ((3, 3), (1, 2))


def test_refusing_what_is_hard_does_not_pay(tmp_path: Path) -> None:
    held = [*rows("all", [0.5] * 20), *rows("picks", [0.9] * 5 + [None] * 15)]
    write(tmp_path, "r", held)
    (one,) = board(tmp_path, "r")
    assert [(line.label, line.score.value, line.score.n) for line in one.rows] == [
        ("all", pytest.approx(0.5), 20),
        ("picks", pytest.approx(0.225), 20),
    ]
    (left_out,) = board(tmp_path, "r", rank_by="scored")
    assert [(line.label, line.score.n) for line in left_out.rows] == [("picks", 5), ("all", 20)]
    step = left_out.rows[0].next
    assert step is not None
    assert (step.n, step.verdict) == (5, "too few people")


def test_runs_that_were_scored_otherwise_stand_apart_and_it_says_why(tmp_path: Path) -> None:
    write(tmp_path, "r1", rows("a", SPREAD))
    write(tmp_path, "r2", rows("b", SPREAD), edition="v2")
    settings = {"cut": ScoreCut(normaliser="linear255").model_dump(mode="json"), "measure": {}, "limit": None}
    settings |= {name: opened(tmp_path, ["r1"])[0].manifest.settings[name] for name in ("measure", "judging")}
    write(tmp_path, "r3", rows("c", SPREAD), settings=settings)
    write(tmp_path, "r4", rows("d", SPREAD, partial=True), partial=True)
    write(tmp_path, "r5", rows("e", SPREAD))
    found = board(tmp_path, "r4", "r3", "r2", "r1", "r5")
    assert [labels(one) for one in found] == [["a", "e"], ["b"], ["c"], ["d"]]
    assert [one.apart for one in found] == [
        "",
        "data set: d v2 here, d v1 above",
        "cut.normaliser: linear255 here, exp20 above",
        "score: partial score here, FED-Score above; judges: none here, J above",
    ]
    assert "FED-Score" not in found[-1].title
    assert all("w/o REG" not in line.entrant.whole.ablations for line in found[-1].rows)


def test_instructions_never_mix(tmp_path: Path) -> None:
    write(tmp_path, "r", [*rows("a", SPREAD), *rows("a", SPREAD, granularity="dense")])
    assert [(one.granularity, len(one.rows)) for one in board(tmp_path, "r")] == [("dense", 1), ("simple", 1)]


def test_one_name_in_two_runs_is_told_apart_by_the_run(tmp_path: Path) -> None:
    write(tmp_path, "r1", rows("a", SPREAD))
    write(tmp_path, "r2", rows("a", [0.1] * 20), seed=7)
    (one,) = board(tmp_path, "r1", "r2")
    assert labels(one) == ["a (r1)", "a (r2)"]
    assert one.rows[1].entrant.seed == 7


def test_ranks_under_other_normalisers_are_worked_out_without_a_model(tmp_path: Path) -> None:
    def outputs(editor: str, identity: float, rmse: float) -> list[ScoreRow]:
        held = rows(editor, [1.0] * 12)
        parts = rule(identity=identity, background_rmse=rmse, registered_rmse=rmse)
        return [row(parts, judged(10, 10, 10), **_key(one)) for one in held]

    # fidelity: clean has mean(.8, 1, 1), moved mean(1, BG(10), 1). exp20: .607, linear255: .961.
    write(tmp_path, "r", [*outputs("clean", 0.8, 0.0), *outputs("moved", 1.0, 10.0)])
    (one,) = board(tmp_path, "r")
    assert labels(one) == ["clean", "moved"]
    told = {way.variant: (way.ranks, way.tau) for way in one.stability}
    assert told["BG linear255"] == ([2, 1], -1.0)
    assert told["BG exp10"] == ([1, 2], 1.0)
    assert told["BG registered"] == ([1, 2], 1.0)


def _key(one: ScoreRow) -> dict[str, Any]:
    names = ("editor", "source_id", "subject", "triplet")
    return {name: getattr(one, name) for name in names}


def test_each_judge_alone_and_relatives_left_out(tmp_path: Path) -> None:
    def outputs(editor: str, kind: float, strict: float) -> list[ScoreRow]:
        answers = (*judged(10, kind, kind, "kind"), *judged(10, strict, strict, "strict"))
        return [row(rule(identity=1.0), answers, **_key(one)) for one in rows(editor, [1.0] * 12)]

    judges = tuple(
        JudgeUsed(judge=name, family=family, identity={"name": name}, conflicts=(), of_data_set=False)
        for name, family in (("kind", "f"), ("strict", "g"))
    )
    editors = tuple(
        EditorUsed(editor=name, family=family, identity={"name": "e"}, conflicts=(), truths=())
        for name, family in (("kin", "f"), ("other", "h"))
    )
    write(tmp_path, "r", [*outputs("kin", 10, 2), *outputs("other", 4, 6)], judges=judges, editors=editors)
    (one,) = board(tmp_path, "r")
    assert [(line.label, line.score.value) for line in one.rows] == [
        ("kin", pytest.approx(0.6)),
        ("other", pytest.approx(0.5)),
    ]
    told = {way.variant: way.ranks for way in one.stability}
    assert told["judge kind"] == [1, 2]
    assert told["judge strict"] == [2, 1]
    # The kind judge is of the first editor's family: without it .2 is left. The other has no relative.
    assert one.rows[0].entrant.kin is not None
    assert (one.rows[0].entrant.kin.value, one.rows[0].entrant.kin.n) == (pytest.approx(0.2), 12)
    assert one.rows[1].entrant.kin is None


def test_several_ground_truths_give_a_best_one(tmp_path: Path) -> None:
    held = [*rows("a", [0.2] * 12), *rows("a", [0.8] * 12, truth_attempt=1)]
    write(tmp_path, "r", held)
    (one,) = board(tmp_path, "r")
    assert one.rows[0].score.value == pytest.approx(0.5)
    best = next(way for way in one.stability if way.variant == "best ground truth")
    assert best.scores == [pytest.approx(0.8)]


def test_the_same_runs_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    write(tmp_path, "r1", rows("a", SPREAD))
    write(tmp_path, "r2", rows("b", [0.3, None, *SPREAD[2:]]))
    trees = []
    for number, names in enumerate((("r1", "r2"), ("r2", "r1"))):
        store = Store(tmp_path / str(number))
        folder = store.path(write_files(board(tmp_path, *names), store, "x", published=False))
        trees.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert trees[0] == trees[1]
    assert sorted(trees[0]) == ["leaderboard.json", "leaderboard.md", "leaderboard.parquet"]
    table = pq.read_table(tmp_path / "0" / "reports/leaderboards/x/leaderboard.parquet").to_pylist()
    assert [(line["editor"], line["failed"], line["n"], line["scored"]) for line in table] == [
        ("a", 0, 20, 20),
        ("b", 1, 20, 19),
    ]


def test_a_hundred_editors_take_seconds(tmp_path: Path) -> None:
    held = [one for editor in range(100) for one in rows(f"e{editor:03d}", [editor / 100] * 12)]
    write(tmp_path, "r", held)
    started = time.process_time()
    (one,) = board(tmp_path, "r")
    assert time.process_time() - started < 20
    assert [line.rank for line in one.rows] == list(range(1, 101))
    assert labels(one)[0] == "e099"
    assert len(list(lines([one]))) == 100
    assert len(plain([one], published=False)["boards"][0]["rows"]) == 100


def test_hostile_names_stay_in_their_cell(tmp_path: Path) -> None:
    write(tmp_path, "r", rows("a|b\n\x1b[2J<script>*[x](y)`", SPREAD))
    (line,) = [text for text in markdown(board(tmp_path, "r"), published=False).splitlines() if "script" in text]
    assert line.startswith("| 1 | a\\|b\ufffd\ufffd\\[2J\\<script\\>\\*\\[x\\](y)\\` |")


@pytest.mark.parametrize(
    ("names", "message"),
    [(["nope"], "no run 'nope' with scores"), (["x" * 400], "no run 'xxx"), (["r", "r"], "run 'r' is named twice")],
)
def test_mistakes_are_told(tmp_path: Path, names: Sequence[str], message: str) -> None:
    write(tmp_path, "r", rows("a", SPREAD))
    with pytest.raises(ConfigError, match=message):
        opened(tmp_path, names)


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    for place in ("one", "other"):
        write(tmp_path / place, "r", rows("a", SPREAD))
    with pytest.raises(ConfigError, match="two runs are called 'r'"):
        opened(tmp_path / "one", ["r", str(tmp_path / "other/runs/r/scores")])


def test_a_table_that_its_manifest_does_not_name_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "r", rows("a", SPREAD))
    path = tmp_path / "runs/r/scores/scores.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ConfigError, match="is not the table that its manifest names"):
        board(tmp_path, "r")
