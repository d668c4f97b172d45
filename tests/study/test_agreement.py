"""What people chose against what metrics say, on pairs whose shares are counted by hand."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.engine.errors import ConfigError
from tasks.leaderboard.entrants import opened
from tasks.study.agreement import Better, agreements, credit, majority, questions
from tasks.study.pairs import Pair, read_pairs
from tasks.study.scored import RAW, add_scores
from tests.leaderboard.made_up import rows, write


@pytest.mark.parametrize(
    ("choices", "side"),
    [
        (["a", "a", "b"], "a"),
        (["b", "b", "b"], "b"),
        (["a", "b", ""], ""),
        (["a", "", ""], ""),  # one of three who were asked
        (["a", "a", ""], "a"),
        (["", "", ""], ""),
        (["a", "b"], ""),
    ],
)
def test_more_than_half_of_all_who_were_asked(choices: list[str], side: str) -> None:
    assert majority(choices) == side


@pytest.mark.parametrize(
    ("human", "a", "b", "better", "share"),
    [
        ("a", 2.0, 1.0, "higher", 1.0),
        ("b", 2.0, 1.0, "higher", 0.0),
        ("b", 2.0, 1.0, "lower", 1.0),
        ("a", 0.0, 0.0, "higher", 0.5),  # two exact zeros, which products make often
        ("a", 1.1, 0.5, "near one", 1.0),
        ("b", 1.5, 0.5, "near one", 0.5),
    ],
)
def test_a_metric_is_right_wrong_or_tied(human: str, a: float, b: float, better: Better, share: float) -> None:
    assert credit(human, a, b, better) == share


def pairs() -> list[Pair]:
    """Of five pairs four have a majority: a, a, b, b."""
    said = [["a", "a", "b"], ["a", "a", "a"], ["b", "b", ""], ["b", "a", "b"], ["a", "b", ""]]
    m: list[tuple[float | None, float | None]] = [(2, 1), (1, 1), (2, 1), (None, 1), (1, 2)]
    return [
        Pair(f"s{number}", "x", "y", "", "", {"overall": words}, {"m": value})
        for number, (words, value) in enumerate(zip(said, m, strict=True))
    ]


def test_shares_by_hand() -> None:
    (one,) = agreements(pairs(), {})
    # Right, tied, wrong; the fourth has no number, the fifth no majority.
    assert (one.value, one.n, one.ties, one.missing, one.sources) == (0.5, 3, 1, 1, 3)
    assert (one.low, one.verdict) == (None, "few sources")
    (asked,) = questions(pairs())
    assert (asked.pairs, asked.no_majority, asked.unanimous) == (5, 1, 1)


def test_an_interval_is_over_sources_not_pairs() -> None:
    def held(sources: int) -> list[Pair]:
        return [
            Pair(f"s{number % sources}", "x", "y", "", "", {"q": ["a"] * 3}, {"m": (number % sources % 4 and 2, 1)})
            for number in range(240)
        ]

    few, many = (agreements(held(sources), {})[0] for sources in (12, 120))
    assert few.value == many.value == 0.75
    assert few.low is not None
    assert few.high is not None
    assert many.low is not None
    assert many.high is not None
    assert many.high - many.low < 0.5 * (few.high - few.low)
    assert many.verdict == "above chance"
    assert agreements(held(9), {})[0].low is None
    assert agreements(held(120), {"m": "lower"})[0].verdict == "below chance"
    assert agreements(held(120), {}, seed=1) == agreements(held(120), {}, seed=1)


ROWS: list[dict[str, Any]] = [
    {"source": "s1", "a": "x", "b": "y", "q_1": "a", "q_2": "A", "q_3": "same", "m_a": "1.5", "m_b": "", "note": "!"},
    {"source": "s1", "a": "x", "b": "z", "q_1": "b", "q_2": "", "q_3": "b", "m_a": "1", "m_b": "2", "note": ""},
]


def save(folder: Path, kind: str, held: list[dict[str, Any]]) -> Path:
    path = folder / f"pairs.{kind}"
    if kind == "csv":
        lines = [",".join(held[0]), *(",".join(map(str, row.values())) for row in held)]
        path.write_text("\n".join(lines) + "\n")
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, held)))
    else:
        pq.write_table(pa.Table.from_pylist(held), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_are_read(tmp_path: Path, kind: str) -> None:
    found, unused = read_pairs(save(tmp_path, kind, ROWS))
    assert [one.choices for one in found] == [{"q": ["a", "a", "same"]}, {"q": ["b", "", "b"]}]
    assert [one.values for one in found] == [{"m": (1.5, None)}, {"m": (1.0, 2.0)}]
    assert unused == ["note"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q_1": "left"}, "row 1, column 'q_1': 'left' is no choice"),
        ({"m_a": "nan"}, "row 1, column 'm_a': 'nan' is no number"),
        ({"source": ""}, "row 1, column 'source': empty"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_pairs(save(tmp_path, "csv", [ROWS[0] | change]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("twice.csv", "source,a,b,q_1,q_1,m_a,m_b\ns,x,y,a,b,1,2\n"),
        ("twice.jsonl", '{"source": "s", "a": "x", "b": "y", "q_1": "a", "q_1": "b", "m_a": 1, "m_b": 2}\n'),
    ],
)
def test_no_vote_is_lost_to_a_column_of_the_same_name(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match="column 'q_1' stands there twice"):
        read_pairs(tmp_path / name)
    table = pa.Table.from_arrays([pa.array(["s"])] * 5, names=["source", "a", "b", "q_1", "q_1"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(ConfigError, match="cannot read"):
        read_pairs(tmp_path / "twice.parquet")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_row_that_repeats_another_is_refused(tmp_path: Path, kind: str) -> None:
    row = {name: str(value) for name, value in ROWS[1].items()}
    with pytest.raises(ConfigError, match="row 3: the same as row 1"):
        read_pairs(save(tmp_path, kind, [row, row | {"source": "other"}, row]))
    assert len(read_pairs(save(tmp_path, kind, [row | {"triplet": ""}, row | {"triplet": "other"}]))[0]) == 2


def test_a_file_without_a_question_or_a_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lacks the columns QUESTION_1"):
        read_pairs(save(tmp_path, "csv", [{"source": "s", "a": "x", "b": "y"}]))
    with pytest.raises(ConfigError, match="lacks the columns source"):
        read_pairs(save(tmp_path, "csv", [{"a": "x", "b": "y", "q_1": "a"}]))
    (tmp_path / "pairs.xlsx").write_bytes(b"")
    with pytest.raises(ConfigError, match="unknown kind of file"):
        read_pairs(tmp_path / "pairs.xlsx")
    with pytest.raises(ConfigError, match="cannot read"):
        read_pairs(tmp_path / "none.csv")


def test_the_score_its_parts_and_ablations_come_from_a_run(tmp_path: Path) -> None:
    write(tmp_path, "r", [*rows("good", [0.9] * 12), *rows("bad", [0.3] * 11 + [None])])
    held = [Pair(f"s{n}", "good", "bad", f"p/{n:04d}:happy@t#0", "simple", {"q": ["a", "a", "b"]}) for n in range(12)]
    held.append(Pair("s", "good", "nobody", "p/0000:happy@t#0", "simple", {"q": ["a", "a", "b"]}))
    assert add_scores(held, opened(tmp_path, ["r"])) == 1
    told = {one.metric: one for one in agreements(held, RAW)}
    assert (told["FED-Score"].value, told["FED-Score"].n, told["FED-Score"].missing) == (1.0, 11, 2)
    # Fidelity and gain are the same for both: without alignment all are ties.
    assert (told["FED-Score w/o Alignment"].value, told["FED-Score w/o Alignment"].ties) == (0.5, 11)
    assert told["background RMSE"].better == "lower"
    assert {"ID", "BG", "PQ", "SC", "GTA", "REG", "FED-Score w/o Model", "LPIPS ratio"} <= told.keys()


def test_runs_that_were_not_scored_alike_are_never_compared(tmp_path: Path) -> None:
    write(tmp_path, "one", rows("good", [0.9] * 12))
    write(tmp_path, "fewer", rows("bad", [0.3] * 6))
    held = [Pair("s0", "good", "bad", "p/0000:happy@t#0", "simple", {"q": ["a", "a", "b"]})]
    assert add_scores(held, opened(tmp_path, ["one", "fewer"])) == 0
    write(tmp_path, "partial", rows("bad", [1.0] * 12, partial=True), partial=True)
    with pytest.raises(ConfigError, match=r"'partial' .here. were not scored alike: score: partial score here"):
        add_scores(held, opened(tmp_path, ["one", "partial"]))


def test_a_partial_run_brings_no_fed_score(tmp_path: Path) -> None:
    write(tmp_path, "r", rows("good", [1.0] * 3, partial=True), partial=True)
    held = [Pair("s", "good", "good", "p/0000:happy@t#0", "simple", {"q": ["a", "a", "b"]})]
    assert add_scores(held, opened(tmp_path, ["r"])) == 0
    names = set(held[0].values)
    assert "partial score" in names
    assert not [name for name in names if name.startswith("FED-Score") or name in {"PQ", "SC", "GTA"}]
