"""Faces of restricted pools leave the machine only with the user's word; without it nothing is asked of anybody."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import schemas.config
from schemas.reviewing import ReviewMeasure
from schemas.screening import ScreenMeasure
from schemas.sections import Section
from tasks import pipeline
from tasks.describers import CHECKERS, DESCRIBERS
from tasks.editors import EDITORS
from tasks.engine.errors import ConfigError
from tasks.engine.registry import Adapter
from tasks.faces import EMBEDDERS
from tasks.judges import JUDGES
from tasks.outside import BY_FIELD
from tasks.pipeline import open_run
from tasks.sources import POOLS
from tasks.voters import VOTERS
from tests import fakes
from tests.fakes import build, config


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    pipeline._worker.cache_clear()
    return fakes.install()


class FarEditor(fakes.FakeEditor):
    sends_pictures_outside = True


class FarVoter(fakes.FakeVoter):
    sends_pictures_outside = True


class FarDescriber(fakes.FakeDescriber):
    sends_pictures_outside = True


class FarEmbedder(fakes.FakeEmbedder):
    sends_pictures_outside = True


class FreePool(fakes.FakePool):
    redistributable = True


FAR: dict[str, tuple[Callable[[], None], str, str]] = {
    "editor": (
        lambda: EDITORS.add("far", FarEditor),
        "generate.measure.editor=far",
        "editor 'far' of stage 'generate'",
    ),
    "second editor": (
        lambda: EDITORS.add("far", FarEditor),
        "generate.measure.top_up=[{target: happy, editor: far}]",
        "editor 'far' of stage 'generate'",
    ),
    "voter": (lambda: VOTERS.add("far", FarVoter), "verify.measure.panel=[fake, far]", "voter 'far' of stage 'verify'"),
    "label panel": (lambda: VOTERS.add("far", FarVoter), "screen.measure.label_panel=[far]", "of stage 'screen'"),
    "identity": (lambda: EMBEDDERS.add("far", FarEmbedder), "rank.measure.identity=far", "of stage 'rank'"),
    "writer": (lambda: DESCRIBERS.add("far", FarDescriber), "instruct.measure.describer=far", "of stage 'instruct'"),
}


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (EDITORS, VOTERS, DESCRIBERS, EMBEDDERS, POOLS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))  # put back, whatever is added


@pytest.mark.parametrize("role", FAR)
def test_it_is_refused_before_anything_is_asked(world: fakes.World, tmp_path: Path, role: str) -> None:
    register, option, words = FAR[role]
    register()
    with pytest.raises(ConfigError) as caught:
        build(tmp_path, config(option, sources=6))
    assert words in caught.value.message
    assert "'fake'" in caught.value.message
    assert "acknowledge_external_api: true" in caught.value.hint
    assert world.asked == []
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("role", FAR)
def test_a_word_or_free_pictures_let_it_through(tmp_path: Path, role: str) -> None:
    register, option, _ = FAR[role]
    register()
    open_run(tmp_path, config(option, "acknowledge_external_api=true", sources=6))
    POOLS.add("fake", FreePool)
    open_run(tmp_path, config(option, sources=6))


def route(api_base: str) -> dict[str, Any]:
    return {"model": "openai/m", "provider": "p", "api_base": api_base}


@pytest.mark.parametrize(
    ("routes", "outside"),
    [
        ([{"model": "gemini/gemini-2.5-pro", "key_env": "K"}], True),
        ([route("https://api.moonshot.ai/v1")], True),
        ([route("http://8.8.8.8/v1")], True),
        ([route("http://localhost.example.org/v1")], True),
        ([route("http://127.0.0.1:8000/v1")], False),
        ([route("http://localhost:8000/v1"), route("http://[::1]:8000/v1"), route("http://192.168.1.7/v1")], False),
        ([route("http://10.0.0.7/v1"), route("https://api.z.ai/v1")], True),
    ],
)
def test_models_behind_an_address_outside_are_outside(routes: list[dict[str, Any]], outside: bool) -> None:
    for registry in (VOTERS, DESCRIBERS, CHECKERS, JUDGES):
        assert registry.sends_outside("mllm", {"name": "m", "routes": routes}) is outside
    assert EDITORS.sends_outside("api", {"name": "m", "routes": routes}) is outside


def test_no_other_shipped_adapter_sends_anything() -> None:
    for registry in {id(registry): registry for registry in BY_FIELD.values()}.values():
        for name in registry.names():
            if not name.startswith(("fake", "far", "mllm", "api")):
                declared = registry.adapter_class(name)
                assert not declared.sends_pictures_outside
                assert declared.sends_outside.__func__ is Adapter.sends_outside.__func__  # type: ignore[attr-defined]


def test_every_adapter_of_a_config_is_looked_up() -> None:
    fields = {
        name
        for section in (ScreenMeasure, ReviewMeasure, *(getattr(schemas.config, kind) for kind in dir(schemas.config)))
        if isinstance(section, type) and issubclass(section, Section) and section.__name__.endswith("Measure")
        for name, field in section.model_fields.items()
        if "Adapter" in str(field.annotation)
    }
    assert fields == BY_FIELD.keys()


class BrokenEditor(fakes.FakeEditor):
    @classmethod
    def check(cls, params: Any) -> None:  # noqa: ARG003 - for every choice
        raise ConfigError("its model is not on this machine", "fetch it")


def test_an_adapter_of_any_kind_that_cannot_work_stops_a_build_before_it_begins(
    world: fakes.World, tmp_path: Path
) -> None:
    EDITORS.add("fake-broken", BrokenEditor)
    with pytest.raises(ConfigError, match="its model is not on this machine"):
        open_run(tmp_path, config("generate.measure.editor=fake-broken"))
    assert not world.asked
    assert not list(tmp_path.rglob("*.parquet"))
