"""`fedbench publish`, `hydrate` and `export`: what they print and write, and every refusal in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from flows.cli import app
from tasks.dataset.verify import verify
from tests.commands import one_line
from tests.fakes import tree
from tests.flows.conftest import Finished


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def as_json(*words: str | Path) -> Any:
    result = call(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(code: int, *words: str | Path) -> tuple[str, str]:
    result = call(*words)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    return one_line(result.stderr)


@pytest.fixture(scope="module")
def made(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An index and a pack by the command."""
    out = tmp_path_factory.mktemp("made")
    told = as_json("publish", "--release", "index", "--pack", "-w", finished.folder, "--out", out)
    assert told == {"index": str(out / "index"), "pack": str(out / "pack")}
    return {kind: Path(path) for kind, path in told.items()}


def test_index_pack_and_back_to_the_same_bytes(made: dict[str, Path], finished: Finished, tmp_path: Path) -> None:
    for folder in made.values():
        result = call("verify", folder)
        assert result.exit_code == 0, result.stderr
    assert "pictures" in as_json("verify", made["index"])["checked"]
    told = as_json("hydrate", made["index"], "--pack", made["pack"], "--preset", "demo", "--out", tmp_path / "full")
    assert (told["ok"], told["identical"], told["faults"]) == (True, True, [])
    assert tree(tmp_path / "full") == tree(finished.result.dataset)
    shown = call("hydrate", made["index"], "--pack", made["pack"], "--out", tmp_path / "full")
    assert "byte for byte" in shown.stdout


def test_full_asks_for_a_word(finished: Finished, tmp_path: Path) -> None:
    message, hint = refused(2, "publish", "--release", "full", "-w", finished.folder, "--out", tmp_path)
    assert "'samples'" in message
    assert "not redistributable" in message
    assert "--acknowledge samples" in hint
    assert list(tmp_path.iterdir()) == []
    words = ("publish", "--release", "full", "--acknowledge", "samples", "-w", finished.folder, "--out", tmp_path)
    assert as_json(*words) == {"full": str(tmp_path / "full")}
    assert tree(tmp_path / "full") == tree(finished.result.dataset)


def test_a_config_can_acknowledge(copied: Path, tmp_path: Path) -> None:
    (path,) = copied.glob("runs/*/config.json")
    values = json.loads(path.read_text())
    values["publish"]["acknowledge_licences"] = ["samples"]
    path.write_text(json.dumps(values))
    assert call("publish", "--release", "full", "-w", copied, "--out", tmp_path / "out").exit_code == 0


def test_the_default_place_is_the_workspace(copied: Path) -> None:
    result = call("publish", "--release", "index", "--pack", "--no-rejected", "-w", copied)
    assert result.exit_code == 0, result.stderr
    folder = copied / "releases" / "demo" / "v1"
    assert sorted(path.name for path in folder.iterdir()) == ["index", "pack"]
    assert str(folder / "index") in result.stdout
    assert "publish it gated" in result.stdout
    assert verify(folder / "pack") == []
    assert not (folder / "pack" / "rejected").exists()


def test_publish_wants_a_finished_run(copied: Path, tmp_path: Path) -> None:
    assert "which run" in refused(2, "publish", "--release", "index", "-w", tmp_path)[0]
    (copied / "datasets").rename(tmp_path / "away")
    assert "is gone" in refused(2, "publish", "--release", "index", "-w", copied)[0]


def test_hydrate_lists_what_is_missing_and_writes_nothing(made: dict[str, Path], tmp_path: Path) -> None:
    words = ("hydrate", made["index"], "--pack", made["pack"], "--out", tmp_path / "full", "--set")
    result = call(*words, "pools.0.params.pool=other")
    assert result.exit_code == 2
    assert "needs the pool 'samples'" in one_line(result.stderr)[0]
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.png").write_bytes(b"no picture")
    result = call(*words, f"pools=[{{name: folder, params: {{root: {photos}, pool: samples}}}}]")
    assert result.exit_code == 3
    assert "samples/" in result.stderr
    assert "has no such source" in result.stderr
    assert "nothing was written" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


@pytest.mark.parametrize("shape", ["diffusers", "jsonl", "webdataset", "preference"])
def test_export(finished: Finished, tmp_path: Path, shape: str) -> None:
    out = tmp_path / "out"
    result = call("export", finished.result.dataset, "--for", shape, "--prompt", "dense", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert f"export    {out}" in result.stdout
    assert (out / "README.md").is_file()


def test_export_of_an_index_is_refused(made: dict[str, Path], tmp_path: Path) -> None:
    message, hint = refused(2, "export", made["index"], "--for", "jsonl", "--out", tmp_path / "out")
    assert "no source pictures" in message
    assert "fedbench hydrate" in hint
