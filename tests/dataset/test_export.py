"""Exports: each is loaded back by what it is for, and gives the stored bytes."""

import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any, get_args

import datasets
import pyarrow.parquet as pq
import pytest
import webdataset

from flows.release_verbs import Shape
from tasks.dataset import export_files
from tasks.dataset.export import FORMATS, Format, export
from tasks.engine.errors import ConfigError
from tests.dataset.conftest import Built, Releases
from tests.fakes import tree

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def triplets(drawn: Built) -> Rows:
    (path,) = (drawn.folder / "data").iterdir()
    return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]


def rejected(drawn: Built) -> Rows:
    (path,) = (drawn.folder / "rejected").iterdir()
    return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]


def loaded(folder: Path, cache: Path, kind: str | None = None) -> Any:
    """A split as `datasets` gives it, its pictures undecoded."""
    named = {"path": kind, "data_dir": str(folder)} if kind else {"path": str(folder)}
    rows = datasets.load_dataset(**named, split="train", cache_dir=str(cache))
    for name, feature in rows.features.items():
        if feature == datasets.Image():
            rows = rows.cast_column(name, datasets.Image(decode=False))
    return rows


def bytes_of(cell: dict[str, Any]) -> bytes:
    return cell["bytes"] or Path(cell["path"]).read_bytes()


@pytest.mark.parametrize("prompt", ["simple", "dense"])
def test_diffusers_reads_it(drawn: Built, triplets: Rows, tmp_path: Path, prompt: Any) -> None:
    made = export(drawn.folder, "diffusers", tmp_path / "out", prompt)
    assert (made.rows, made.triplets) == (9, 9)
    rows = loaded(tmp_path / "out", tmp_path / "cache")
    assert {"input_image", "edit_prompt", "edited_image"} <= set(rows.column_names)
    for row, full in zip(rows, triplets, strict=True):
        assert row["edit_prompt"] == full["instruction" if prompt == "simple" else "dense_instruction"]
        assert bytes_of(row["input_image"]) == full["source"]["bytes"]
        assert bytes_of(row["edited_image"]) == full["ground_truth"]["bytes"]
        assert (row["licence"], row["synthetic"]) == ("CC0", True)


def test_imagefolder_reads_the_json_lines(drawn: Built, triplets: Rows, tmp_path: Path) -> None:
    export(drawn.folder, "jsonl", tmp_path / "out")
    rows = loaded(tmp_path / "out", tmp_path / "cache", "imagefolder")
    assert len(rows) == 9
    for row, full in zip(rows, triplets, strict=True):
        assert bytes_of(row["source"]) == full["source"]["bytes"]
        assert bytes_of(row["ground_truth"]) == full["ground_truth"]["bytes"]
        for column in ("id", "target", "instruction", "dense_instruction", "licence", "synthetic", "identity"):
            assert row[column] == full[column]


def test_webdataset_and_datasets_read_the_shards(
    drawn: Built, triplets: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_files, "BYTES_PER_SHARD", 3 * len(triplets[0]["source"]["bytes"]))
    export(drawn.folder, "webdataset", tmp_path / "out")
    shards = sorted(str(path) for path in (tmp_path / "out").glob("*.tar"))
    assert len(shards) > 1
    samples = list(webdataset.WebDataset(shards, shardshuffle=False))
    rows = datasets.load_dataset("webdataset", data_files={"train": shards}, split="train",
                                 cache_dir=str(tmp_path / "cache"))  # fmt: skip
    for name in ("source.png", "target.png"):
        rows = rows.cast_column(name, datasets.Image(decode=False))
    for sample, row, full in zip(samples, rows, triplets, strict=True):
        assert sample["source.png"] == bytes_of(row["source.png"]) == full["source"]["bytes"]
        assert sample["target.png"] == bytes_of(row["target.png"]) == full["ground_truth"]["bytes"]
        told = json.loads(sample["json"])
        assert told == row["json"]
        assert told == {name: full[name] for name in told} | {"traits": "; ".join(full["traits"]), "review": "auto"}
        assert {"id", "instruction", "dense_instruction", "licence", "synthetic"} <= set(told)
    with tarfile.open(shards[0]) as tar:
        assert {(member.mtime, member.uid, member.gid, member.mode) for member in tar} == {(0, 0, 0, 0o644)}


def test_preference_sets_the_ground_truth_against_the_runner_up(drawn: Built, triplets: Rows, tmp_path: Path) -> None:
    made = export(drawn.folder, "preference", tmp_path / "out")
    rows = list(loaded(tmp_path / "out", tmp_path / "cache"))
    losers = {row["id"]: row for row in rejected(drawn) if row["reason"] == "not_chosen"}
    assert made.rows == len(rows) == len(losers)
    by_id = {row["id"]: row for row in triplets}
    for row in rows:
        winner, loser = by_id[row["id"]], losers[row["rejected_id"]]
        assert winner["source_id"] == loser["source_id"]
        assert loser["evidence"].startswith("rank 2;")
        assert bytes_of(row["image"]) == winner["source"]["bytes"]
        assert bytes_of(row["chosen"]) == winner["ground_truth"]["bytes"]
        assert bytes_of(row["rejected"]) == loser["image"]["bytes"]
        assert row["prompt"] == winner["instruction"]
        assert row["same_target"] == (winner["target"] == loser["target"])
        assert row["rejected_instruction"] == loser["instruction"]
        assert row["rejected_identity"] == loser["identity"]
    assert "same_target" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("shape", FORMATS)
def test_every_export_is_the_same_twice_and_says_what_it_is(drawn: Built, tmp_path: Path, shape: Format) -> None:
    export(drawn.folder, shape, tmp_path / "a")
    export(drawn.folder, shape, tmp_path / "b")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    notes = (tmp_path / "a" / "README.md").read_text()
    assert "synthetic" in notes
    assert "fake: CC0" in notes
    listed = dict(re.findall(r"^(\w{64})  (.+)$", (tmp_path / "a" / "checksums.sha256").read_text(), re.M))
    assert set(listed.values()) == set(tree(tmp_path / "a")) - {"checksums.sha256"}


def test_the_command_offers_what_there_is() -> None:
    assert get_args(Shape) == FORMATS


def test_an_index_cannot_be_exported(releases: Releases, tmp_path: Path) -> None:
    for shape in FORMATS:
        with pytest.raises(ConfigError, match="no source pictures"):
            export(releases.index, shape, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_lands_in_the_data_set(drawn: Built) -> None:
    before = tree(drawn.folder)
    for out in (drawn.folder, drawn.folder / "export"):
        with pytest.raises(ConfigError, match="lies in the data set"):
            export(drawn.folder, "jsonl", out)
    assert tree(drawn.folder) == before


def test_a_tar_is_a_tar_of_plain_files(drawn: Built, tmp_path: Path) -> None:
    export(drawn.folder, "webdataset", tmp_path / "out")
    data = (tmp_path / "out" / "train-00000.tar").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getnames()
    assert names[:3] == ["0000000.source.png", "0000000.target.png", "0000000.json"]
    assert len(names) == 27
