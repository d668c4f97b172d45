"""The pilot gate: it stops where the first sources differ from what was expected, and never changes a byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.answers import Ballot
from schemas.forecasts import Forecast, PilotFound
from schemas.outcomes import FailureKind
from tasks import pilot, pipeline
from tasks.engine.calls import Calls, Reply, Request
from tasks.engine.errors import ItemFailed, PilotStopped
from tasks.engine.images import Picture
from tasks.engine.store import Store
from tasks.forecast.forecast import forecast
from tasks.report.html import write_report
from tasks.voters import VOTERS
from tests import fakes
from tests.fakes import FakeVoter, build, config

SOURCES = 40
SMALL = ("pilot.sources=5",)


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[PilotFound]:
    """What builds tell of their pilots."""
    heard: list[PilotFound] = []
    original = pipeline.build
    monkeypatch.setattr(pipeline, "build", lambda run, mapper: original(run, mapper, heard.append))
    return heard


def foretell(workspace: Path, *sets: str, change: Callable[[dict[str, Any]], None] | None = None) -> Forecast:
    """Forecast, and perhaps falsify what is saved."""
    settings = config(*sets, sources=SOURCES)
    pipeline._worker.cache_clear()
    said = forecast(pipeline.open_run(workspace, settings, extend=False))
    if change:
        values = said.model_dump(mode="json")
        change(values)
        Store(workspace).write_json(pilot.forecast_file(settings), values)
    return said


def found(workspace: Path) -> PilotFound:
    saved = Store(workspace).read_as(pilot.pilot_file(config()), PilotFound)
    assert saved
    return saved


def set_rate(stage: str, field: str, value: float) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        line = next(line for line in values["stages"] if line["stage"] == stage)
        line[field] = {"value": value, "basis": "assumed", "rows": 0}

    return change


def test_with_nothing_to_compare_the_pilot_is_told_and_the_build_goes_on(
    tmp_path: Path, told: list[PilotFound]
) -> None:
    off = build(tmp_path / "off", config("pilot.sources=0", sources=SOURCES))
    assert not told
    on = build(tmp_path / "on", config(*SMALL, sources=SOURCES))
    (pilot_,) = told
    assert pilot_ == found(tmp_path / "on")
    assert pilot_.against == ""
    assert pilot_.sources >= 5
    assert not any(one.beyond for one in pilot_.compared)
    assert on.tree() == off.tree()


def test_the_pilot_goes_first_through_all_stages(tmp_path: Path, told: list[PilotFound]) -> None:
    built = build(tmp_path, config(*SMALL, "shard_size=5", sources=SOURCES), publishing=False)
    (pilot_,) = told
    photos = [
        [photo.key.source_id for photo in built.run.executor.kept("screen", shard, done)]
        for shard, done in zip(built.run.executor.shards, built.done, strict=True)
    ]
    first = [id_ for ids in photos[: pilot_.shards] for id_ in ids]
    assert len(first) == pilot_.sources
    edited = list(dict.fromkeys(subject.partition(":")[0] for role, subject in built.asked if role == "edit"))
    assert len(edited) == sum(map(len, photos))
    last = max(place for place, (role, _) in enumerate(built.asked) if role == "edit")
    assert any(role == "instruct" for role, _ in built.asked[:last])


@pytest.mark.parametrize(
    ("change", "told_words"),
    [
        (set_rate("verify", "rate", 0.05), "verify: kept of owed"),
        (set_rate("generate", "refused", 0.5), "generate: refused of owed"),
    ],
)
def test_a_difference_stops_the_build_and_a_new_forecast_lets_it_go_on(
    tmp_path: Path, world: fakes.World, change: Callable[[dict[str, Any]], None], told_words: str
) -> None:
    settings = config(*SMALL, sources=SOURCES)
    foretell(tmp_path, *SMALL, change=change)
    with pytest.raises(PilotStopped, match=told_words) as stopped:
        build(tmp_path, settings)
    assert stopped.value.exit_code == 4
    assert "fedbench forecast" in stopped.value.hint
    assert told_words in [one.what for one in found(tmp_path).compared if one.beyond]
    assert not (tmp_path / "datasets").exists()
    asked = len(world.asked)
    with pytest.raises(PilotStopped):
        build(tmp_path, settings)
    assert world.asked[asked:] == [], "a rerun did something again"
    said = foretell(tmp_path, *SMALL)
    assert all(stage.rate.basis == "measured" for stage in said.stages)
    built = build(tmp_path, settings)
    assert not any(one.beyond for one in found(tmp_path).compared)
    edits = [subject for role, subject in world.asked if role == "edit"]
    assert len(edits) == len(set(edits)), "an edit was made twice"
    off = build(tmp_path.with_name("plain"), config("pilot.sources=0", sources=SOURCES))
    assert built.tree() == off.tree()


@pytest.mark.parametrize("option", ["pilot.sources=0", "pilot.band=50"])
def test_a_stop_can_be_overruled(tmp_path: Path, option: str) -> None:
    foretell(tmp_path, change=set_rate("verify", "rate", 0.05))
    assert build(tmp_path, config(*SMALL, option, sources=SOURCES)).published


def test_a_difference_that_n_cannot_support_does_not_stop(tmp_path: Path) -> None:
    foretell(tmp_path, change=set_rate("verify", "rate", 0.45))
    settings = config("pilot.sources=2", sources=SOURCES)
    assert build(tmp_path, settings).published
    one = next(one for one in found(tmp_path).compared if one.what == "verify: kept of owed")
    assert one.measured is not None
    assert one.low is not None
    assert one.low < 0.45 * 1.5 < one.measured
    assert not one.beyond


def test_refusals_that_begin_stop_a_later_edition(tmp_path: Path, world: fakes.World) -> None:
    build(tmp_path, config(sources=SOURCES))

    def refuse(role: str, subject: str) -> Exception | None:
        return ItemFailed(FailureKind.REFUSED, "no") if role == "edit" and len(subject) % 2 else None

    world.trouble = refuse
    changed = config(*SMALL, "edition=v2", "generate.measure.editor.params.strength=199", sources=SOURCES)
    with pytest.raises(PilotStopped, match=r"edition v1.*generate: refused of owed") as stopped:
        build(tmp_path, changed)
    assert "verify: kept" not in stopped.value.message


def test_a_finished_build_needs_no_pilot(tmp_path: Path, told: list[PilotFound]) -> None:
    build(tmp_path, config(*SMALL, sources=SOURCES))
    foretell(tmp_path, change=set_rate("verify", "rate", 0.05))
    build(tmp_path, config(*SMALL, sources=SOURCES))
    assert len(told) == 1


# -- cost -------------------------------------------------------------------------------------------------------

_calls: list[Calls] = []


class PaidVoter(FakeVoter):
    """Asks a service whose answers cost `cents`."""

    class Params(FakeVoter.Params):
        """`model` as in the ledger; `declared`: dollars an answer is said to cost."""

        model: str = "dear"
        declared: float | None = 0.01

    sends_pictures_outside = True
    cents = 1.0

    @classmethod
    def dollars(cls, params: Any) -> float | None:
        declared: float | None = params.declared
        return declared

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        request = Request("vote", "service", self.params.model, images=(picture.digest,))  # type: ignore[attr-defined]
        call.ask(request, lambda: Reply(raw="said", cost=self.cents / 100))
        return super().vote(picture, call)


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers "far-paid", which writes into the ledger of the run at work."""
    VOTERS.add("far-paid", PaidVoter)
    monkeypatch.setattr(PaidVoter, "cents", 1.0)

    def open_calls(*args: Any) -> Calls:
        for one in _calls:  # as if another process had ended
            one.close()
        _calls.append(Calls(*args))
        return _calls[-1]

    monkeypatch.setattr(pipeline, "Calls", open_calls)


PANEL = ("verify.measure.panel=[fake, fake-coarse, far-paid]", "acknowledge_external_api=true", "pilot.slack=1")


@pytest.mark.usefixtures("paid")
def test_cost_beyond_the_band_stops_and_is_then_forecast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = foretell(tmp_path, *PANEL)
    assert said.dollars.basis == "assumed"
    monkeypatch.setattr(PaidVoter, "cents", 5.0)
    settings = config(*PANEL, "pilot.sources=5", sources=SOURCES)
    with pytest.raises(PilotStopped, match="dollars per source"):
        build(tmp_path, settings)
    cost = found(tmp_path).compared[-1]
    votes = sum(one.answers for one in _calls[-1].spent())
    assert cost.measured == pytest.approx(votes * 0.05 / found(tmp_path).sources)
    again = foretell(tmp_path, *PANEL)
    assert again.dollars_per_source.basis == "measured"
    assert again.dollars_per_source.value == pytest.approx(cost.measured)
    assert again.spent == pytest.approx(votes * 0.05)
    assert next(ask for ask in again.asks if ask.adapter == "far-paid").price.value == pytest.approx(0.05)
    built = build(tmp_path, settings)
    total = _calls[-1].spent()[0].dollars
    assert again.dollars.value == pytest.approx(total - votes * 0.05, rel=0.4)
    assert len(_calls[-1].spent()) == 1
    write_report(built.run, built.done, "reports/fakes")
    page = (tmp_path / "reports/fakes/index.html").read_text()
    assert "dollars per source" in page


@pytest.mark.usefixtures("paid")
def test_a_cost_within_the_band_goes_on_through_a_kill(tmp_path: Path, world: fakes.World) -> None:
    foretell(tmp_path, *PANEL)
    settings = config(*PANEL, "pilot.sources=9", "pilot.band=1", sources=SOURCES)

    def die(role: str, subject: str) -> Exception | None:  # noqa: ARG001
        return KeyboardInterrupt() if role == "caption" and world.counts()["caption"] > 8 else None  # type: ignore[return-value]

    world.trouble = die
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, settings)
    world.trouble = None
    build(tmp_path, settings)
    cost = found(tmp_path).compared[-1]
    assert cost.measured is not None
    candidates = sum(one.rows for one in found(tmp_path).compared if one.what == "verify: kept of owed")
    assert cost.measured == pytest.approx(candidates * 0.01 / found(tmp_path).sources, rel=0.05)
