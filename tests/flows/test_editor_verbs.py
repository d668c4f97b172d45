"""`fedbench edit`, `editors list` and `outputs check`, as a user meets them."""

import json
from pathlib import Path
from typing import Any

import cv2
import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.expressions import Expression, others
from schemas.hosted import shipped_editors
from tasks.editors import EDITORS
from tasks.editors.table import shipped
from tests.commands import one_line
from tests.flows.conftest import Finished
from tests.photos import file_of


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def answered(*words: str | Path, code: int = 0) -> Any:
    result = call(*words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_one_photo_is_edited_to_every_expression_and_drawn() -> None:
    told = answered("edit", file_of("hopper"), "--shows", "neutral")
    assert [one["target"] for one in told["edits"]] == list(others(Expression.NEUTRAL))
    source = cv2.imread(str(file_of("hopper")))
    for one in told["edits"]:
        assert cv2.imread(one["file"]).shape == source.shape
        assert 0.3 < one["identity"] < 1
        assert one["background_rmse"] == one["registered_rmse"] == 0
        assert one["change"] > 0.1
        assert (one["failed"], one["note"]) == ("", "")
    sheet = cv2.imread(told["sheet"])
    assert sheet.shape[1] > 700
    assert sheet.shape[0] > 500


def test_what_a_build_would_hold_against_an_edit_is_told() -> None:
    told = answered("edit", file_of("hopper"), "--editor", "copy", "--target", "sad", "--out", "there")
    assert told["shows"] == "neutral", "the voter looked"
    assert [one["note"] for one in told["edits"]] == ["the picture is unchanged"]
    assert Path(told["sheet"]).parent.name == "there"
    lazy, strong = (
        answered("edit", file_of("hopper"), "--target", "happy", "--set", f"intensity={intensity}")["edits"][0]
        for intensity in (0.3, 2)
    )
    assert lazy["change"] < strong["change"]
    assert lazy["identity"] > strong["identity"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([file_of("landscape")], "no face is found"),
        (["gone.jpg"], "cannot read gone.jpg: No such file"),
        ([__file__], "cannot read"),
        (["."], "cannot read .: Is a directory"),
        ([file_of("hopper"), "--editor", "nobody"], "unknown editor 'nobody'"),
        ([file_of("hopper"), "--editor", "outputs"], "only looks up"),
        ([file_of("hopper"), "--target", "bored"], "unknown expression 'bored'"),
        ([file_of("hopper"), "--shows", "bored"], "unknown expression 'bored'"),
        ([file_of("hopper"), "--set", "intensity=9"], "editor 'warp': intensity"),
        ([file_of("hopper"), "--set", "intensity"], "no '='"),
        ([file_of("hopper"), "--target", "sad", "--out", __file__], "cannot write to"),
    ],
)
def test_a_mistake_is_one_line(words: list[Any], said: str) -> None:
    result = call("edit", *words)
    assert result.exit_code in (2, 7), result.output
    assert result.stdout == ""
    message, hint = one_line(result.stderr)
    assert said in message
    assert hint


def test_a_missing_key_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    result = call("edit", file_of("hopper"), "--editor", "nano-banana", "--target", "sad", "--shows", "neutral")
    assert result.exit_code != 0
    message, hint = one_line(result.stderr)
    assert "GEMINI_API_KEY" in message + hint or "litellm" in message + hint


def test_all_editors_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "secret")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = call("editors", "list", "--json")
    assert "secret" not in result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows.keys() >= {name for name in EDITORS.names() if name not in ("api", "diffusion")}
    assert rows.keys() >= {row.name for row in shipped()} | shipped_editors().keys()
    assert rows["warp"]["here"]
    assert rows["nano-banana"]["dollars"] == pytest.approx(0.039, abs=0.01)
    assert rows["gpt-image-2"]["why"] == "OPENAI_API_KEY is not set"
    assert "GEMINI_API_KEY" not in rows["nano-banana"]["why"]
    assert rows["qwen-image-edit-2511"]["memory_gb"] == 58
    assert all(row["licence"] and (row["here"] or row["why"]) for row in rows.values())
    assert "qwen-image-edit" in call("editors", "list").stdout


def test_outputs_are_matched_to_a_run_and_to_a_data_set(finished: Finished, tmp_path: Path) -> None:
    folder = finished.folder
    shots = answered("edit", file_of("hopper"), "--target", "sad", "--shows", "neutral")["edits"][0]["file"]
    picture = cv2.imread(shots)
    data_set = finished.result.dataset
    owed = answered("outputs", "check", "edits", "--data-set", data_set, code=3)
    assert (owed["matched"], owed["owed"]) == (0, finished.result.triplets)
    for level, name in enumerate(owed["missing"]):
        wanted = tmp_path / "mine" / f"{name.rpartition('no ')[2].removesuffix('.*')}.png"
        wanted.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(wanted), picture // (level + 1))
    clean = answered("outputs", "check", "mine", "--data-set", data_set)
    assert clean["clean"]
    assert clean["other_size"] == clean["owed"]
    run = answered("outputs", "check", "mine", "-w", folder, code=3)
    assert run["owed"] > clean["owed"]
    assert run["matched"] == clean["matched"]
    assert not run["extra"]
    result = call("outputs", "check", "mine", "-w", folder)
    assert "missing" in result.stdout
    assert one_line(call("outputs", "check", "gone", "-w", folder).stderr)


def test_outputs_are_matched_to_what_a_dry_run_screened(tmp_path: Path) -> None:
    """Every attempt of the editor that looks outputs up, and none of the others'."""
    mine = tmp_path / "mine"
    mine.mkdir()
    cv2.imwrite(str(mine / "left-over_sad_0.png"), cv2.imread(str(file_of("hopper"))))
    pattern = "{source_id}_{target}_{attempt}"
    editor = json.dumps({"name": "outputs", "params": {"root": str(mine), "pattern": pattern}})
    more = f"generate.measure.top_up=[{{target: sad, attempts: 2, editor: {editor}}}]"
    sets = [word for text in ("limit=1", "generate.measure.targets=[sad, happy]", more) for word in ("--set", text)]
    result = call("build", "--preset", "demo", "--dry-run", "-w", "w", *sets)
    assert result.exit_code == 0, result.output
    told = answered("outputs", "check", mine, "--pattern", pattern, "-w", "w", code=3)
    assert told["owed"] == 2
    assert [words.rpartition("_")[2] for words in told["missing"]] == ["0.*", "1.*"]
    assert told["extra"] == ["left-over_sad_0.png"]
