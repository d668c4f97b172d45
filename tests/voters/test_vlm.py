"""The `vlm` voter where the model extra may be absent: what it refuses before anything is spent."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.answers import Ballot
from schemas.config import BuildConfig
from schemas.expressions import Polarity
from tasks.engine.errors import ConfigError
from tasks.providers.in_process import digest_of
from tasks.voters import VOTERS
from tasks.voters.ballots import to_vote
from tests import fakes

PARAMS = {"model": "somebody/model", "revision": "main"}


def have(monkeypatch: pytest.MonkeyPatch, *, extra: bool) -> None:
    """Seem to have the model extra, or not."""
    find: Callable[..., Any] = importlib.util.find_spec
    seen = find("json") if extra else None
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: seen if name in ("torch", "transformers") else find(name, *rest),
    )


def refused(**params: str) -> str:
    with pytest.raises(ConfigError) as caught:
        VOTERS.check("vlm", PARAMS | params)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_torch_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    have(monkeypatch, extra=False)
    assert "make torch" in refused()
    world = fakes.install()
    with pytest.raises(ConfigError, match="torch, which is not installed"):
        fakes.build(tmp_path, fakes.config("verify.measure.panel=[{name: vlm, params: {model: a/b, revision: c}}]"))
    assert world.asked == []


def test_a_model_is_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    have(monkeypatch, extra=True)
    assert "can move" in refused()
    assert "config.json" in refused(folder=str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    assert digest_of(tmp_path) in refused(folder=str(tmp_path))
    VOTERS.check("vlm", PARAMS | {"folder": str(tmp_path), "revision": digest_of(tmp_path)})


def test_a_folder_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b").write_text("b")
    (tmp_path / "a").write_text("a")
    before = digest_of(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache/lock").write_text("of a download")
    assert digest_of(tmp_path) == before
    (tmp_path / "sub/b").rename(tmp_path / "b")
    moved = digest_of(tmp_path)
    (tmp_path / "b").write_text("bb")
    assert len({before, moved, digest_of(tmp_path)}) == 3


def test_a_changed_wording_is_another_voter() -> None:
    identity = VOTERS.identity("vlm", PARAMS)
    assert identity["prompts"].keys() == {"vote_coarse", "vote_fine", "repair"}
    assert "folder" not in identity["params"]


def test_two_models_in_one_panel_are_told_apart_by_name() -> None:
    def panel(*names: str) -> BuildConfig:
        voters = [{"name": "vlm", "params": PARAMS | {"model": f"a/{place}", "name": name, "family": "qwen"}}
                  for place, name in enumerate(names)]  # fmt: skip
        return BuildConfig.model_validate({"verify": {"measure": {"panel": voters}}})

    voters = panel("Qwen-3B", "Qwen-7B").verify.measure.panel
    votes = [to_vote(voter, "coarse", Ballot(answer=Polarity.NEUTRAL)) for voter in voters]
    assert [vote.voter for vote in votes] == ["Qwen-3B", "Qwen-7B"]
    assert {VOTERS.family(voter.name, voter.params) for voter in voters} == {"qwen"}
    with pytest.raises(ValidationError, match=r"two voters are both called 'vlm'.*give one a `name`"):
        panel("", "")


def test_what_it_is_called_decides_no_answer() -> None:
    named = VOTERS.identity("vlm", PARAMS | {"name": "Qwen", "family": "qwen"})
    assert named == VOTERS.identity("vlm", PARAMS)
