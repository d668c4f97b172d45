"""The seven baselines on the demo's own benchmark: what fails on purpose is told apart, by LPIPS and a judge.

Copy, another person, three intensities of the warp, and two diffusion pipelines of random weights, through the command
line. The pipelines are of the true classes and know nothing: whatever they draw, it is nobody's face.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from tasks.engine import weights
from tests.flows.conftest import copied, finished, prefect_server  # noqa: F401 - fixtures
from tests.flows.test_score import harsh, judge
from tests.providers.loopback import Loopback
from tests.torch import tiny
from tests.torch.test_diffusion import params

pytestmark = pytest.mark.torch
SOURCES = 4


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(answer=harsh) as provider:
        yield provider


def run(*words: str | Path) -> Any:
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.usefixtures("prefect_server")
def test_the_seven_baselines_and_their_leaderboard(copied: Path, provider: Loopback, tmp_path: Path) -> None:  # noqa: F811
    if weights.state("lpips_alex") == "missing":
        pytest.skip("LPIPS's backbone is not here")
    drawn = {
        "kontext": params(tiny.kontext(tmp_path / "kontext"), "flux-kontext", device="cpu"),
        "pix2pix": params(tiny.pix2pix(tmp_path / "pix2pix"), "instruct-pix2pix", device="cpu"),
    }
    words = ["score", copied / "datasets/demo/v1", "-w", copied, "--judge", judge(provider), "--limit", SOURCES]
    words += ["--granularity", "simple", "--run", "seven", "--editor", "copy", "--editor", "random_identity"]
    for name, intensity in (("lazy", 0.3), ("plain", 1.0), ("overfit", 2.0)):
        words += ["--editor", f"{name}=warp:intensity={intensity}"]
    for name, told in drawn.items():
        words += ["--editor", json.dumps({"called": name, "name": "diffusion", "params": told})]

    told = run(*words, "--json")
    whole = {one["editor"]: one["whole"] for one in told["scores"]}
    assert len(whole) == 7
    assert {one["failed"] for one in whole.values()} == {0}
    parts = {name: {part: mean["value"] for part, mean in one["parts"].items()} for name, one in whole.items()}
    still = parts["copy"]
    assert still["id"] == pytest.approx(1)
    assert (still["background_rmse"], still["lpips_ratio"], still["sc"]) == (0, 0, 0)
    assert still["reg"] == pytest.approx(0.1353, abs=1e-4)
    assert parts["overfit"]["lpips_ratio"] > 1.1 > parts["plain"]["lpips_ratio"] > 0.9 > parts["lazy"]["lpips_ratio"]
    assert parts["plain"]["lpips_ratio"] == pytest.approx(1)
    assert parts["random_identity"]["id"] < 0.4 < parts["plain"]["id"]
    for name in drawn:  # noise: no face, no background
        assert parts[name]["id"] < 0.1
        assert parts[name]["bg"] < 0.2
        assert parts[name]["lpips_ratio"] > 2
    scores = {name: one["score"]["value"] for name, one in whole.items()}
    assert max(scores, key=scores.get) == "plain"  # type: ignore[arg-type]
    assert scores["copy"] == pytest.approx(0.4 * still["reg"] * still["fidelity"])  # SC is 0, GTA of a copy is not
    assert max(scores[name] for name in drawn) < 0.05

    asked = len(provider.met)
    again = run(*words, "--json")
    assert again["scores"] == told["scores"]
    assert len(provider.met) == asked

    board = run("leaderboard", "seven", "-w", copied, "--json")
    page = Path(board["page"]).read_text()
    for name in whole:
        assert name in page
    for word in ("lazy", "overfit", "another person"):
        assert word in page
    assert len(list(Path(board["folder"]).rglob("*.jpg"))) >= 2 * SOURCES
