"""Forecasts: assumptions where nothing was measured, measurements where there are any, and never 0 for unknown."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from schemas.forecasts import Forecast
from tasks import pipeline
from tasks.boards import BOARDS
from tasks.boards.auto import AutoBoard
from tasks.editors import EDITORS
from tasks.forecast.dry_run import screen_only
from tasks.forecast.forecast import forecast
from tasks.voters import VOTERS
from tests import fakes
from tests.fakes import FakeEditor, FakeVoter, build, config

EDITS = 6


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def foretell(workspace: Path, *sets: str, sources: int = 40) -> Forecast:
    pipeline._worker.cache_clear()
    return forecast(pipeline.open_run(workspace, config(*sets, sources=sources), extend=False))


def screened(workspace: Path, *sets: str, sources: int = 40) -> Forecast:
    """The forecast after a dry run."""
    pipeline._worker.cache_clear()
    run = pipeline.open_run(workspace, config(*sets, sources=sources))
    screen_only(run, lambda *_: None)
    return forecast(run)


def stage(said: Forecast, name: str) -> Any:
    return next(line for line in said.stages if line.stage == name)


def test_without_a_measurement_all_rests_on_assumptions(tmp_path: Path, world: fakes.World) -> None:
    said = foretell(tmp_path, "forecast.screen=0.5", "forecast.generate=0.9", "forecast.verify=0.5")
    assert world.asked == []
    assert [stage(said, name).owed for name in ("screen", "generate", "verify")] == [40, 20 * EDITS, 108]
    assert stage(said, "rank").owed == 54
    assert stage(said, "rank").kept == 40, "at most two of each source"
    assert stage(said, "review").kept == 20, "at most one of each source"
    assert {line.rate.basis for line in said.stages} == {"assumed"}
    assert {line.rests_on for line in said.stages} == {""}
    assert said.triplets == 19
    assert said.triplets_per_source.basis == "assumed"
    assert said.hours is None, "fakes do not say how long they take"
    assert (said.dollars.value, said.dollars.basis) == (0.0, "given"), "local adapters cost nothing"
    assert said.annotator_hours.value == 0.0
    assert said.gigabytes.basis == "assumed"
    assert sum(count.sources for count in said.listed) == 40
    saved = json.loads((tmp_path / "runs/fakes/forecast-v1.json").read_bytes())
    assert saved == said.model_dump(mode="json")
    assert not (tmp_path / "runs/fakes/config.json").exists(), "a look plans nothing"


def test_a_finished_build_is_forecast_as_it_was(tmp_path: Path) -> None:
    built = build(tmp_path, config(sources=40))
    said = foretell(tmp_path)
    for line in said.stages:
        commits = [done[line.stage] for done in built.done]
        assert line.owed == sum(commit.owed for commit in commits)
        assert line.kept == sum(commit.statuses.get("kept", 0) for commit in commits)
        assert (line.due, line.basis, line.rate.basis) == (0, "measured", "measured")
        assert line.seconds.basis == "measured"
        assert line.seconds.value is not None
        assert line.seconds.value > 0
    assert built.published
    assert said.triplets == built.published.triplets
    assert said.hours is not None
    assert said.gigabytes.basis == "measured"
    pictures = sum(path.stat().st_size for path in (tmp_path / "images").rglob("*.png"))
    assert said.gigabytes.value == pytest.approx(2 * pictures / 1e9, rel=0.3)


def test_part_of_a_run_tells_the_rest(tmp_path: Path) -> None:
    build(tmp_path, config("limit=20", sources=200), publishing=False)
    said = foretell(tmp_path, sources=200)
    assert stage(said, "screen").owed == 200
    assert stage(said, "screen").due == 180
    assert stage(said, "screen").rate.rows == 20
    truth = build(tmp_path / "whole", config(sources=200))
    assert truth.published
    assert said.triplets == pytest.approx(truth.published.triplets, rel=0.35)
    owed = sum(done["verify"].owed for done in truth.done)
    assert stage(said, "verify").owed == pytest.approx(owed, rel=0.35)


def test_another_run_of_the_workspace_will_do(tmp_path: Path) -> None:
    build(tmp_path, config("name=small", sources=20), publishing=False)
    said = foretell(tmp_path, sources=60)
    assert {line.rests_on for line in said.stages} == {"small"}
    assert stage(said, "screen").due == 60
    assert {line.rate.basis for line in said.stages} == {"measured"}
    other = foretell(tmp_path, "generate.measure.editor.params.strength=150", sources=60)
    assert [line.rests_on for line in other.stages] == ["small"] + [""] * 6, "its edits were another editor's"


def test_thresholds_are_forecast_from_what_is_measured(tmp_path: Path) -> None:
    build(tmp_path, config(sources=40), publishing=False)
    assert foretell(tmp_path, "verify.cut.min_change=50").triplets == 0
    moved = foretell(tmp_path, "verify.cut.min_change=2")
    assert stage(moved, "caption").due > 0, "other edits became finalists"
    assert 0 < moved.triplets <= stage(moved, "screen").kept


def test_a_dry_run_measures_screening_and_nothing_else(tmp_path: Path, world: fakes.World) -> None:
    said = screened(tmp_path)
    assert set(world.counts()) == {"load", "analyze", "embed", "vote"}
    assert world.counts()["load"] == 40
    assert stage(said, "screen").rate.basis == "measured"
    assert stage(said, "generate").rate.basis == "assumed"
    before = len(world.asked)
    built = build(tmp_path, config(sources=40), publishing=False)
    assert "load" not in {role for role, _ in world.asked[before:]}, "a build screens again"
    assert stage(said, "generate").owed == sum(done["generate"].owed for done in built.done)


# -- the target -------------------------------------------------------------------------------------------------


def test_a_target_within_reach_takes_the_prefix_that_suffices(tmp_path: Path) -> None:
    build(tmp_path, config(sources=60), publishing=False)
    said = foretell(tmp_path, "publish.cut.target=6", "publish.cut.margin=1.4", "workers=1", sources=60)
    assert (said.needed, said.reachable, said.triplets) == (9, True, 6)
    assert said.sources_needed is not None
    assert said.sources_needed < 60
    assert stage(said, "generate").owed < EDITS * stage(said, "screen").kept


def test_a_target_out_of_reach_says_so_and_what_it_would_take(tmp_path: Path) -> None:
    said = foretell(tmp_path, "publish.cut.target=747")
    assert said.reachable is False
    assert said.sources_needed is not None
    assert said.sources_needed > 747
    assert said.triplets < 40
    none = foretell(tmp_path, "publish.cut.target=747", "forecast.verify=0")
    assert (none.reachable, none.sources_needed, none.triplets) == (False, None, 0)


# -- prices and people ------------------------------------------------------------------------------------------


class Priced:
    """A price as a parameter."""

    class Params(BaseModel, extra="forbid", frozen=True):
        model: str = "m-1"
        price: float | None = None
        name: str = "a"

    @classmethod
    def dollars(cls, params: Any) -> float | None:
        price: float | None = params.price
        return price


class PricedVoter(Priced, FakeVoter):  # type: ignore[misc]
    """Votes outside."""

    sends_pictures_outside = True


class PricedEditor(Priced, FakeEditor):  # type: ignore[misc]
    """Edits outside, and says how long it takes."""

    sends_pictures_outside = True
    seconds = 3.6


class PeopleBoard(AutoBoard):
    """Asks people."""


OUTSIDE = (
    "generate.measure.editor={name: far-priced, params: {price: 0.04}}",
    "verify.measure.panel=[fake, {name: far-priced, params: {price: 0.001}}]",
    "acknowledge_external_api=true",
)


@pytest.fixture
def outside() -> None:
    VOTERS.add("far-priced", PricedVoter)
    EDITORS.add("far-priced", PricedEditor)
    BOARDS.add("far-board", PeopleBoard)


@pytest.mark.usefixtures("outside")
def test_declared_prices_and_times_add_up(tmp_path: Path) -> None:
    said = foretell(tmp_path, *OUTSIDE)
    asks = {ask.role: ask for ask in said.asks if ask.adapter == "far-priced"}
    assert asks["edit"].answers == stage(said, "generate").owed == 28 * EDITS
    assert asks["vote"].answers == stage(said, "verify").owed
    assert asks["edit"].model == "m-1"
    assert said.dollars.basis == "assumed"
    exact = 28 * EDITS * (0.04 + 0.95 * 0.001)
    assert said.dollars.value == pytest.approx(exact, rel=0.01)
    assert said.dollars_per_source.value == pytest.approx(exact / 28, rel=0.01)
    assert stage(said, "generate").device == "outside"
    assert stage(said, "generate").hours == pytest.approx(28 * EDITS / 1000)
    assert stage(said, "generate").refused.value == 0.02


@pytest.mark.usefixtures("outside")
def test_an_unknown_price_is_null_and_never_nothing(tmp_path: Path) -> None:
    unknown = OUTSIDE[1].replace("price: 0.001", "price: null")
    said = foretell(tmp_path, OUTSIDE[0], unknown, OUTSIDE[2])
    assert (said.dollars.value, said.dollars.basis) == (None, "unknown")
    assert said.dollars_per_source.value is None
    assert said.unpriced == ("vote: m-1",)
    assert said.known_dollars == pytest.approx(28 * EDITS * 0.04)


@pytest.mark.usefixtures("outside")
def test_peoples_time(tmp_path: Path) -> None:
    said = foretell(
        tmp_path, "review.measure.board=far-board", "forecast.annotators=2", "forecast.annotator_seconds=90"
    )
    assert said.annotator_hours.value == pytest.approx(28 * 2 * 90 / 3600)
    assert said.annotator_hours.basis == "assumed"
