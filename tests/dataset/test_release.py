"""Releases and packs: what they hold, what they never hold, who may make them, and that `verify` knows them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from schemas.published import PICTURES, Manifest, RejectedRow, TripletRow
from tasks.dataset.card import render_card, render_pack_card
from tasks.dataset.read import data_set
from tasks.dataset.release import check_acknowledged, packed, released
from tasks.dataset.texts import checksums
from tasks.dataset.verify import verified_words, verify
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import sha256
from tasks.sources import POOLS, redistributable
from tests.dataset.conftest import Built, Releases
from tests.fakes import FakePool, tree


def rows(folder: Path, part: str) -> list[dict[str, Any]]:
    return [row for path in sorted((folder / part).iterdir()) for row in pq.read_table(path).to_pylist()]


def faults(folder: Path) -> set[tuple[str, str]]:
    return {(fault.where, fault.rule) for fault in verify(folder)}


@pytest.fixture
def copied(releases: Releases, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of the releases, to damage."""
    return lambda name: Path(shutil.copytree(getattr(releases, name), tmp_path / name))


# -- full and index -----------------------------------------------------------------------------------------------


def test_a_full_release_is_the_data_set(drawn: Built, releases: Releases) -> None:
    assert tree(releases.full) == tree(drawn.folder)


def test_a_release_leaves_the_data_set_alone_and_can_be_made_again(drawn: Built, tmp_path: Path) -> None:
    before = tree(drawn.folder)
    first = tree(released(drawn.folder, tmp_path / "out", ()))
    (tmp_path / "out" / "left over").write_text("")
    assert tree(released(drawn.folder, tmp_path / "out", ())) == first
    assert tree(drawn.folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_texts_are_of_the_program_that_releases(drawn: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built yesterday with another card: full and index still are of one release."""
    monkeypatch.setattr("tasks.dataset.texts.render_card", lambda manifest: render_card(manifest) + "new")
    full = released(drawn.folder, tmp_path / "full", PICTURES)
    index = released(drawn.folder, tmp_path / "index", ())
    assert tree(full) != tree(drawn.folder)
    assert data_set(index).full_sha256 == sha256((full / "checksums.sha256").read_bytes())


def test_an_index_has_every_row_and_no_picture(drawn: Built, releases: Releases) -> None:
    pictures = {cell["bytes"] for part in ("data", "rejected") for row in rows(drawn.folder, part)
                for cell in (row.get(column) for column in PICTURES) if cell}  # fmt: skip
    assert len(pictures) > 20
    for part, kind in (("data", TripletRow), ("rejected", RejectedRow)):
        kept = [column for column in kind.model_fields if column not in PICTURES]
        assert [list(row) for row in rows(releases.index, part)] == [kept] * len(rows(drawn.folder, part))
        full = [{column: row[column] for column in kept} for row in rows(drawn.folder, part)]
        assert rows(releases.index, part) == full
        for path in (releases.index / part).iterdir():
            assert all(field.type != pa.binary() for field in pq.read_schema(path))
    for path in releases.index.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"\x89PNG" not in data
            assert not [picture for picture in pictures if picture[-64:] in data]
    loaded = datasets.load_dataset(str(releases.index), split="train")
    assert loaded["id"] == [row["id"] for row in rows(drawn.folder, "data")]


def test_without_rejected_pictures(drawn: Built, tmp_path: Path) -> None:
    folder = released(drawn.folder, tmp_path / "full", PICTURES[:2])
    assert verify(folder) == []
    assert "no image pictures" in verified_words(folder)
    assert rows(folder, "data") == rows(drawn.folder, "data")
    assert "image" not in rows(folder, "rejected")[0]
    with pytest.raises(ConfigError, match="lacks pictures"):
        released(folder, tmp_path / "again", ())


def test_every_release_verifies_and_says_what_was_not_checked(releases: Releases) -> None:
    for folder in (releases.full, releases.index, releases.pack):
        assert verify(folder) == []
    assert "were not checked" in verified_words(releases.index)
    assert "not" not in verified_words(releases.full)
    assert "hydrating" in verified_words(releases.pack)


def test_a_changed_data_set_is_not_released(drawn: Built, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(drawn.folder, tmp_path / "copy"))
    (copy / "manifest.json").write_bytes((copy / "manifest.json").read_bytes() + b" ")
    for make in (released, packed):
        with pytest.raises(ConfigError, match="not what was written"):
            make(copy, tmp_path / "out", PICTURES)
    assert not (tmp_path / "out").exists()


def test_other_folders_are_never_replaced(drawn: Built, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"mine")
    with pytest.raises(ConfigError, match="holds something else"):
        released(drawn.folder, tmp_path / "photos", ())
    before = tree(drawn.folder)
    for out in (drawn.folder, drawn.folder / "index", drawn.folder.parent):
        with pytest.raises(ConfigError, match="not apart"):
            released(drawn.folder, out, ())
    assert tree(drawn.folder) == before
    assert (tmp_path / "photos" / "a.jpg").read_bytes() == b"mine"


def test_a_verdict_that_does_not_follow_is_found_in_an_index_too(copied: Callable[[str], Path]) -> None:
    folder = copied("index")
    path = next((folder / "data").iterdir())
    table = pq.read_table(path)
    first = table["rank"].to_pylist()
    forged = table.set_column(table.schema.get_field_index("rank"), "rank", pa.array([first[0] + 1, *first[1:]]))
    pq.write_table(forged, path, write_page_index=True)
    found = faults(folder)
    assert {rule for _, rule in found} >= {"row", "rank"}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"pictures": ["source"]}, "schema"),
        ({"pictures": ["ground_truth", "source"]}, "pictures"),
        ({"pools": []}, "pools"),
        ({"roles": []}, "roles"),
        ({"cells": []}, "count"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_manifest_that_says_otherwise_is_found(
    copied: Callable[[str], Path], change: dict[str, Any], rule: str
) -> None:
    folder = copied("index")
    values = json.loads((folder / "manifest.json").read_text()) | change
    (folder / "manifest.json").write_text(json.dumps(values))
    (folder / "checksums.sha256").write_text(checksums(folder))
    assert rule in {rule for _, rule in faults(folder)}


# -- licences -----------------------------------------------------------------------------------------------------


def test_no_shipped_pool_may_be_passed_on_unasked() -> None:
    assert [kind for kind in ("samples", "folder", "sfew", "dfew", "rafdb") if redistributable(kind)] == []


def test_full_needs_a_word_for_every_restricted_pool(releases: Releases) -> None:
    manifest = data_set(releases.full)
    with pytest.raises(ConfigError) as caught:
        check_acknowledged(manifest, ())
    assert all(word in str(caught.value) for word in ("'fake'", "CC0", "--acknowledge fake"))
    check_acknowledged(manifest, ["fake"])
    with pytest.raises(ConfigError, match="no pool 'sfew'"):
        check_acknowledged(manifest, ["fake", "sfew"])
    free = manifest.pools[0].model_copy(update={"redistributable": True})
    check_acknowledged(manifest.model_copy(update={"pools": (free,)}), ())


def test_a_manifest_cannot_free_a_pool(copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied("index")
    values = json.loads((folder / "manifest.json").read_text())
    values["pools"][0]["redistributable"] = True
    (folder / "manifest.json").write_text(json.dumps(values))
    assert ("manifest.json", "pools") in faults(folder)

    class FreePool(FakePool):
        redistributable = True

    monkeypatch.setitem(POOLS._entries, "fake", FreePool)
    assert ("manifest.json", "pools") not in faults(folder)


# -- the pack -----------------------------------------------------------------------------------------------------


def test_a_pack_holds_edits_alone(drawn: Built, releases: Releases) -> None:
    truths = rows(releases.pack, "data")
    assert [set(row) - {"pool", "source_id", "target", "editor", "attempt", "id"} for row in truths] == [
        {"ground_truth", "ground_truth_sha256"}
    ] * 9
    for row, full in zip(truths, rows(drawn.folder, "data"), strict=True):
        assert row == {column: full[column] for column in row}
        assert sha256(row["ground_truth"]["bytes"]) == row["ground_truth_sha256"]
    edits = [row for row in rows(drawn.folder, "rejected") if row["image"]]
    assert [row["image"] for row in rows(releases.pack, "rejected")] == [row["image"] for row in edits]
    sources = {row["source"]["bytes"] for row in rows(drawn.folder, "data")}
    assert not sources & {row["ground_truth"]["bytes"] for row in truths}
    loaded = datasets.load_dataset(str(releases.pack), split="train")
    assert loaded.features["ground_truth"] == datasets.Image()


def test_a_pack_of_ground_truths_alone(drawn: Built, tmp_path: Path) -> None:
    folder = packed(drawn.folder, tmp_path / "pack", PICTURES[:2])
    assert verify(folder) == []
    assert not (folder / "rejected").exists()


def test_the_gate_asks_for_the_upstream_licence(releases: Releases) -> None:
    card = (releases.pack / "README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    assert "already hold those licences" in head["extra_gated_prompt"]
    assert "fake (CC0)" in head["extra_gated_prompt"]
    assert head["extra_gated_fields"]["I hold the upstream licence of fake, signed for my institution"] == "checkbox"
    for entry in head["configs"]:
        assert list(releases.pack.glob(entry["data_files"][0]["path"]))


def test_a_gate_survives_any_licence_text(releases: Releases) -> None:
    nasty = 'a: "b" #c | {d}\n---\n- e'
    for folder, render in ((releases.pack, render_pack_card), (releases.full, render_card)):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["pools"][0]["licences"] = {nasty: 1}
        head = yaml.safe_load(render(manifest).split("---\n")[1])
        assert head["license"] == "other"


@pytest.mark.parametrize(
    ("name", "rule"),
    [("README.md", "card"), ("data/train-00000-of-00001.parquet", "readable"), ("manifest.json", "checksum")],
)
def test_a_changed_pack_is_found(copied: Callable[[str], Path], name: str, rule: str) -> None:
    folder = copied("pack")
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    assert {(name, "checksum"), (name, rule)} <= faults(folder)


def test_a_swapped_picture_of_a_pack_is_found(copied: Callable[[str], Path]) -> None:
    folder = copied("pack")
    path = next((folder / "data").iterdir())
    values = pq.read_table(path).to_pylist()
    values[0]["ground_truth"], values[1]["ground_truth"] = values[1]["ground_truth"], values[0]["ground_truth"]
    table = pa.Table.from_pylist(values, schema=pq.read_schema(path))
    pq.write_table(table, path, write_page_index=True)
    assert {(row["id"], "ground_truth hash") for row in values[:2]} <= faults(folder)
    assert {(row["id"], "ground_truth name") for row in values[:2]} <= faults(folder)


def test_a_pack_is_no_data_set(releases: Releases) -> None:
    with pytest.raises(ConfigError, match="is a pack"):
        data_set(releases.pack)
    assert isinstance(data_set(releases.index), Manifest)
