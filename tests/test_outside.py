"""Faces of restricted pools leave the machine only with the user's word; without it nothing is asked of anybody."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks import pipeline
from tasks.describers import DESCRIBERS
from tasks.editors import EDITORS
from tasks.engine.errors import ConfigError
from tasks.engine.registry import Adapter
from tasks.faces import EMBEDDERS
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


def test_no_shipped_adapter_sends_anything() -> None:
    assert Adapter.sends_pictures_outside is False
    for registry in (EDITORS, VOTERS, DESCRIBERS, EMBEDDERS):
        shipped = [name for name in registry.names() if not name.startswith(("fake", "far"))]
        assert not [name for name in shipped if registry.adapter_class(name).sends_pictures_outside]
