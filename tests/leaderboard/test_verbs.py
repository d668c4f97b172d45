"""`fedbench leaderboard` and `fedbench study agreement`, as typed."""

import json
from pathlib import Path

from typer.testing import CliRunner

from flows.cli import app
from tests.leaderboard.made_up import rows, write

WIDE = {"COLUMNS": "200"}


def test_a_leaderboard_prints_writes_and_says_where(tmp_path: Path) -> None:
    write(tmp_path, "r", [*rows("[red]a", [0.9] * 12), *rows("b", [0.3] * 11 + [None])], dataset="[bold]d")
    write(tmp_path, "q", rows("c", [1.0] * 12, partial=True), partial=True)
    said = CliRunner().invoke(app, ["leaderboard", "r", "q", "-w", str(tmp_path), "--published"], env=WIDE)
    assert said.exit_code == 0, said.output
    for words in ("FED-Score on [bold]d v1, simple", "[red]a", "Not ranked with the board above: score: partial",
                  "It is no FED-Score", "Qwen-image-edit-plus", "Published figures, not ours"):  # fmt: skip
        assert words in said.stdout
    told = json.loads(CliRunner().invoke(app, ["leaderboard", "q", "r", "-w", str(tmp_path), "--json"]).stdout)
    assert [[row["editor"] for row in board["rows"]] for board in told["boards"]] == [["[red]a", "b"], ["c"]]
    assert told["page"] in "".join(said.stdout.split())  # the same folder, whoever is named first
    assert told["boards"][0]["rows"][0]["next"]["verdict"] == "better"
    assert "published" not in told
    assert Path(told["page"]).is_file()
    assert sorted(path.name for path in Path(told["folder"]).iterdir()) == [
        "index.html",
        "leaderboard.json",
        "leaderboard.md",
        "leaderboard.parquet",
    ]


def test_agreement_prints_every_question_and_names_what_it_cannot_use(tmp_path: Path) -> None:
    lines = ["source,a,b,q_1,q_2,q_3,[m]_a,[m]_b,note", *(f"s{n},x,y,a,a,b,{n % 4},0.5,!" for n in range(40))]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    said = CliRunner().invoke(app, ["study", "agreement", str(tmp_path / "pairs.csv")], env=WIDE)
    assert said.exit_code == 0, said.output
    assert "q: 40 pairs, 0 without a majority" in said.stdout
    assert "[m]     higher  0.7500" in said.stdout
    assert "columns that say nothing here: note" in said.stderr
    told = json.loads(CliRunner().invoke(app, ["study", "agreement", str(tmp_path / "pairs.csv"), "--json"]).stdout)
    assert told["agreement"][0]["verdict"] == "above chance"
    mistake = CliRunner().invoke(app, ["study", "agreement", str(tmp_path / "pairs.csv"), "--lower", "x"])
    assert (mistake.exit_code, mistake.stderr.splitlines()[0]) == (2, "fedbench: no metric 'x'")
