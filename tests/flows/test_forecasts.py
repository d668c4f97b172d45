"""`fedbench forecast`, `build --dry-run` and a stopped pilot on the command line."""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.answers import Ballot
from tasks import pipeline
from tasks.engine.calls import Calls, Reply, Request
from tasks.engine.images import Picture
from tasks.voters import VOTERS
from tests import fakes
from tests.commands import fedbench
from tests.commands import run as command
from tests.doors import routes
from tests.fakes import FakeVoter
from tests.flows.conftest import Finished
from tests.providers.loopback import Loopback


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "100"})


def fine(*words: str | Path) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    text: str = result.stdout
    return text


def written(tmp_path: Path, *sets: str, sources: int = 20) -> Path:
    """A config file of the fakes."""
    path = tmp_path / "fakes.yaml"
    path.write_text(json.dumps(fakes.config(*sets, sources=sources).model_dump(mode="json")))
    return path


def test_a_forecast_of_a_finished_run(copied: Path, finished: Finished) -> None:
    said = json.loads(fine("forecast", "-w", copied, "--json"))
    assert said["sources"] == 7
    assert said["triplets"] == finished.result.triplets
    text = fine("forecast", "-w", copied, "--set", "publish.cut.target=100")
    assert "out of reach" in text
    assert "7 of demo" in text


def test_a_forecast_of_a_preset_says_that_it_assumes(tmp_path: Path) -> None:
    text = fine("forecast", "--preset", "demo", "-w", tmp_path, "--set", "publish.cut.target=3")
    assert "assumed" in text
    assert "within reach" in text
    assert "samples: 22" in text
    assert not list(tmp_path.glob("stages/*"))


def test_a_forecast_needs_to_know_of_what(tmp_path: Path) -> None:
    result = run("forecast", "-w", tmp_path / "none")
    assert result.exit_code == 2
    assert "which run" in result.output
    result = run("forecast", "--preset", "demo", "--run", "demo", "-w", tmp_path)
    assert result.exit_code == 2


def test_a_dry_run_screens_and_forecasts(tmp_path: Path) -> None:
    world = fakes.install()
    text = fine("build", "--config", written(tmp_path), "-w", tmp_path / "w", "--dry-run")
    assert "Screening" in text
    assert "unreadable 1" in text
    assert "edit" not in world.counts()
    rows = json.loads(fine("build", "--config", written(tmp_path), "-w", tmp_path / "w", "--dry-run", "--json"))
    assert sum(row["owed"] for row in rows["screening"]) == 20
    assert sum(row["kept"] for row in rows["screening"]) == rows["forecast"]["stages"][0]["kept"]
    assert world.counts()["load"] == 20, "the second one measured again"


_calls: list[Calls] = []
UNCHECKED: Final = ("screen.measure.check_labels=false",)


class OutsideVoter(FakeVoter):
    """Labels by calling a service."""

    sends_pictures_outside = True

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        call.ask(Request("vote", "service", "m", images=(picture.digest,)), lambda: Reply(raw="said"))
        return super().vote(picture, call)


def test_a_dry_run_asks_no_label_panel_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = fakes.install()
    VOTERS.add("far-outside", OutsideVoter)
    monkeypatch.setattr(pipeline, "Calls", lambda *args: _calls.append(Calls(*args)) or _calls[-1])
    sets = ("screen.measure.label_panel=[far-outside]", *UNCHECKED, "acknowledge_external_api=true")
    settings = written(tmp_path, *sets)
    result = run("build", "--config", settings, "-w", tmp_path / "w", "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    assert "asks an outside service" in result.stderr
    assert _calls[-1].totals() == []
    rows = json.loads(result.stdout)["screening"]
    assert sum(row["unasked"] for row in rows) == 4, "every fifth has no label"
    assert sum(row["owed"] for row in rows) == 20
    assert "vote" not in world.counts()

    _calls[-1].close()
    fakes.build(tmp_path / "w", fakes.config(*sets, sources=20), publishing=False)
    sent = _calls[-1].totals()[0].calls
    _calls[-1].close()
    shutil.rmtree(tmp_path / "w" / "stages")
    pipeline._worker.cache_clear()
    rows = json.loads(run("build", "--config", settings, "-w", tmp_path / "w", "--dry-run", "--json").stdout)
    assert sum(row["unasked"] for row in rows["screening"]) == 0, "what was answered once is known"
    assert _calls[-1].totals()[0].calls == sent > 0


def test_a_dry_run_asks_no_server_on_this_machine_either(tmp_path: Path) -> None:
    fakes.install()
    with Loopback() as provider:
        voter = {"name": "mllm", "params": {"name": "Here", "routes": routes(provider), "granularity": "fine"}}
        settings = written(tmp_path, f"screen.measure.label_panel={json.dumps([voter])}", *UNCHECKED)
        result = run("build", "--config", settings, "-w", tmp_path / "w", "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    assert "Here" in result.stderr
    assert provider.asked == []
    assert sum(row["unasked"] for row in json.loads(result.stdout)["screening"]) == 4, "every fifth has no label"


def test_a_stopped_pilot_is_a_table_and_exit_code_4(copied: Path, clean: dict[str, str], tmp_path: Path) -> None:
    fine("forecast", "-w", copied)
    path = copied / "runs/demo/forecast-v1.json"
    said = json.loads(path.read_bytes())
    next(line for line in said["stages"] if line["stage"] == "verify")["rate"]["value"] = 0.05
    path.write_text(json.dumps(said))
    more = ["--preset", "demo", "--set", "limit=10", "--set", "pilot.sources=2", "-w", copied]
    edits = len(list((copied / "edits").rglob("*")))
    result = command(fedbench("build", *more), clean | {"COLUMNS": "120"}, tmp_path)
    assert result.returncode == 4, result.stderr
    assert re.search(r"verify: kept of owed +0\.050 +0\.\d+ .*beyond the band", result.stderr)
    assert "Traceback" not in result.stderr
    assert "--set pilot.sources=0" in result.stderr
    assert result.stdout == ""
    assert len(list((copied / "edits").rglob("*"))) == edits, "something behind the pilot was begun"
    fine("forecast", "-w", copied)
    assert json.loads(path.read_bytes())["sources"] == 10
