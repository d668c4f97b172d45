"""`fedbench score` on real photos over real HTTP: baselines that fail on purpose are told apart by the parts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from flows.cli import app
from flows.score_options import editor_of
from tasks.distances import DISTANCES
from tasks.engine.registry import Adapter
from tests.doors import decoded, routes
from tests.flows.conftest import Finished
from tests.providers.loopback import Asked, Loopback
from tests.scoring.runs import read_scores


class Pixels(Adapter):
    """The mean difference of two crops: stands for LPIPS, which needs torch."""

    def between(self, one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
        return float(np.abs(one.astype(float) - other.astype(float)).mean() / 255)


def harsh(asked: Asked) -> str:
    """A judge that gives nothing for equal pictures where one should be the other's edit."""
    shown = [decoded(data).pixels for data in asked.pictures]
    same = len(shown) == 2 and "before an edit" in asked.text and np.array_equal(*shown)
    return json.dumps({"reason": "seen", "score": 0 if same else 8})


@pytest.fixture
def provider() -> Iterator[Loopback]:
    DISTANCES.add("pixels", Pixels)
    with Loopback(answer=harsh) as provider:
        yield provider


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(app, ["score", *map(str, words)], env={"COLUMNS": "80"})


def judge(provider: Loopback, **route: Any) -> str:
    return json.dumps({"name": "mllm", "params": {"name": "Loop", "side": 256, "routes": routes(provider, **route)}})


@pytest.mark.usefixtures("prefect_server")
def test_copies_exaggerations_and_strangers_are_told_apart(copied: Path, provider: Loopback) -> None:
    words = [copied / "datasets/demo/v1", "-w", copied, "--judge", judge(provider), "--limit", 3]
    words += ["--editor", "copy", "--editor", "random_identity", "--granularity", "simple"]
    for name, intensity in (("lazy", 0.3), ("plain", 1.0), ("overfit", 2.0)):
        words += ["--editor", f"{name}=warp:intensity={intensity}"]
    words += ["--set", "measure.distance=pixels", "--set", "cut.min_lpips=0.0001", "--run", "base"]

    dry = run(*words, "--dry-run", "--json")
    assert dry.exit_code == 0, dry.output
    assert json.loads(dry.stdout)["outside"] == [{"role": "judge", "who": "Loop", "questions": 75, "dollars": 0.0}]
    assert provider.met == []

    first = run(*words, "--json")
    assert first.exit_code == 0, first.output
    assert "at most 75 questions outside" in first.stderr
    told = {one["editor"]: one["whole"] for one in json.loads(first.stdout)["scores"]}
    parts = {name: {part: mean["value"] for part, mean in one["parts"].items()} for name, one in told.items()}
    assert {one["owed"] for one in told.values()} == {3}
    still = parts["copy"]
    assert still["id"] == pytest.approx(1)
    assert (still["background_rmse"], still["lpips_ratio"], still["au_ratio"]) == (0, 0, 0)
    assert still["sc"] == 0
    for ratio in ("lpips_ratio", "au_ratio"):
        assert parts["plain"][ratio] == pytest.approx(1)
        assert parts["lazy"][ratio] < 0.8
        assert parts["overfit"][ratio] > 1.1
    assert parts["plain"]["au_direction"] == pytest.approx(1)
    assert parts["random_identity"]["id"] < 0.4 < parts["overfit"]["id"] < parts["plain"]["id"]
    assert parts["random_identity"]["bg"] < 0.2
    scores = {name: one["score"]["value"] for name, one in told.items()}
    assert max(scores, key=scores.get) == "plain"  # type: ignore[arg-type]

    asked = len(provider.met)
    table = (copied / "runs/base/scores/scores.parquet").read_bytes()
    second = run(*words)
    assert second.exit_code == 0, second.output
    assert len(provider.met) == asked
    assert (copied / "runs/base/scores/scores.parquet").read_bytes() == table
    assert "FED-Score on demo v1, 3 triplets" in second.stdout
    assert max(len(line) for line in second.stdout.splitlines() if "runs/base" not in line) <= 80
    assert "same family as the ground truths' editor warp" in " ".join(second.stdout.split())
    manifest, rows = read_scores(copied / "runs/base/scores")
    assert manifest.score == "FED-Score"
    assert str(copied).encode() not in table + (copied / "runs/base/scores/manifest.json").read_bytes()
    assert len(rows) == 15


def test_what_is_missing_is_said_in_one_line(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    data = finished.result.dataset
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None if name in ("torch", "lpips") else True)
    cases = {
        ("--editor", "warp"): "nothing says who judges",
        ("--no-judge",): "nothing says which editor is scored",
        ("--editor", "warp", "--judge", "Nobody"): "unknown judge 'Nobody'",
        ("--editor", "warp", "--no-judge", "--judge", "Gemini-2.5-Pro"): "contradict each other",
        ("--editor", "warp", "--no-judge"): "needs torch and lpips",
        ("--editor", "nobody", "--no-judge"): "unknown editor 'nobody'",
        ("--editor", "warp:strength=3", "--no-judge", "--gain", "au"): "strength: Extra inputs",
        ("--editor", "warp:intensity", "--no-judge", "--gain", "au"): "'intensity' is no parameter",
        ("--editor", "a=warp", "--editor", "a=copy", "--no-judge", "--gain", "au"): "two editors are called 'a'",
        ("--editor", "warp", "--no-judge", "--gain", "au", "--normaliser", "best"): "cut.normaliser",
        ("--editor", "{name: warp, params: 3}", "--no-judge"): "its params are no mapping",
        ("--editor", "{name: [warp]}", "--no-judge"): "it has no name",
        ("--editor", "{name: 2020-99-99}", "--no-judge"): "it is not YAML",
        ("--editor", "warp", "--judge", "{name: mllm, params: [1]}"): "its params are no mapping",
    }
    for words, message in cases.items():
        said = run(data, "-w", finished.folder, *words)
        assert said.exit_code == 2, said.output
        assert message in said.stderr
        assert len(said.stderr.strip().splitlines()) <= 2
    assert run(finished.folder, "--editor", "warp", "--no-judge", "--gain", "au").exit_code == 2


def test_a_name_that_is_markup_is_shown_as_it_is(finished: Finished) -> None:
    data, words = finished.result.dataset, ["--no-judge", "--gain", "au", "--granularity", "simple", "--limit", "1"]
    said = run(
        data, "-w", finished.folder, *words, "--editor", "{name: copy, called: '[/red] [bold]x'}", "--run", "odd"
    )
    assert said.exit_code == 0, said.output
    assert "[/red] [bold]x" in said.stdout


def test_editors_as_they_are_typed() -> None:
    def told(text: str) -> tuple[str, str, dict[str, Any]]:
        found = editor_of(text)
        return found["called"], found["adapter"]["name"], found["adapter"]["params"]

    assert told("warp") == ("warp", "warp", {})
    assert told("warp:intensity=0.3,shading=false") == (
        "warp:intensity=0.3,shading=False", "warp", {"intensity": 0.3, "shading": False},
    )  # fmt: skip
    assert told("lazy=warp:intensity=0.3") == ("lazy", "warp", {"intensity": 0.3})
    assert told("outputs:root=some/{granularity}") == ("outputs", "outputs", {"root": "some/{granularity}"})
    assert told('{name: warp, params: {intensity: 2}, called: "over"}') == ("over", "warp", {"intensity": 2})
