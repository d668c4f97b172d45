"""A withdrawal reaches what another version of fedbench published: nobody must wait for an update to be deleted."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from schemas.published import PICTURES, SCHEMA_VERSION
from schemas.records import Key
from tasks.dataset.read import read_manifest
from tasks.dataset.release import packed, released
from tasks.dataset.texts import checksums, file_sha256
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.withdrawal.withdraw import Wish, withdraw
from tests import fakes


def made_by_another(folder: Path, version: int) -> None:
    """What a folder would be had another version written it: another manifest, other columns."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest |= {"schema_version": version, "of_another_version": [1, 2]}
    del manifest["fedbench"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    croissant = folder / "croissant.json"
    for path in folder.glob("*/*.parquet"):
        before = file_sha256(path)
        table = pq.read_table(path)
        table = table.append_column("of_another_version", pa.array(range(len(table))))
        pq.write_table(table.drop_columns(["id"] if "id" in table.column_names else []), path, row_group_size=5)
        if croissant.exists():
            croissant.write_text(croissant.read_text().replace(before, file_sha256(path)))
    (folder / "checksums.sha256").write_text(checksums(folder))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("other") / "workspace"
    fakes.install()
    made = fakes.build(root, fakes.config(sources=20))
    assert made.published
    for kind, pictures in (("full", PICTURES), ("index", ())):
        released(made.published.folder, root / f"releases/fakes/v1/{kind}", pictures)
    packed(made.published.folder, root / "releases/fakes/v1/pack", PICTURES)
    return root


def folders(root: Path) -> list[Path]:
    return [root / "datasets/fakes/v1", *sorted((root / "releases/fakes/v1").iterdir())]


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob("*/*.parquet")) for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_rows_of_another_version_go_and_all_else_stays(built: Path, tmp_path: Path, version: int) -> None:
    fakes.install()
    root = tmp_path / "workspace"
    shutil.copytree(built, root)
    for folder in folders(root):
        made_by_another(folder, version)
        with pytest.raises(ConfigError, match=f"has schema version {version}, this fedbench reads {SCHEMA_VERSION}"):
            read_manifest(folder)
    before = {folder: rows(folder) for folder in folders(root)}
    row = before[folders(root)[0]][0]
    key = Key(row["pool"], row["source_id"])
    digests = {str(row["source_sha256"]), str(row["ground_truth_sha256"])}
    with Store(root).lock():
        found, _ = withdraw(Store(root), Wish((str(key),), day="2026-11-30"))
    assert [edition.manifest for edition in found.editions] == [None] * 4
    for folder in folders(root):
        expected = [one for one in before[folder] if Key(one["pool"], one["source_id"]) != key]
        assert len(expected) < len(before[folder])
        assert rows(folder) == expected
        manifest = json.loads((folder / "manifest.json").read_bytes())
        assert manifest["of_another_version"] == [1, 2]
        assert sum(manifest["files"].values()) == len(expected)
        assert (folder / "checksums.sha256").read_text() == checksums(folder)
        assert "## Withdrawn" in (folder / "README.md").read_text()
        told = {path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert not any(digest.encode() in data for digest in digests for data in told)
    croissant = json.loads((folders(root)[0] / "croissant.json").read_bytes())
    named = {one["sha256"] for one in croissant["distribution"] if "sha256" in one}
    tables = {file_sha256(path) for path in folders(root)[0].glob("*/*.parquet")}
    assert tables <= named
    again = fakes.build(root, fakes.config(sources=20))
    assert again.published
    assert again.published.written, "the next build writes the edition in its own version"
    assert not pc.any(pc.equal(pq.read_table(root / "datasets/fakes/v1/data")["source_id"], key.source_id)).as_py()


def test_what_is_no_data_set_is_refused_in_words(built: Path, tmp_path: Path) -> None:
    fakes.install()
    root = tmp_path / "workspace"
    shutil.copytree(built, root)
    (folders(root)[1] / "manifest.json").write_text('{"files": {}')
    with Store(root).lock(), pytest.raises(ConfigError, match=r"it cannot be cleaned: .*manifest\.json"):
        withdraw(Store(root), Wish(("fake/00000",), day="2026-11-30"))
    made_by_another(folders(root)[0], 4)
    (folders(root)[1] / "manifest.json").write_text('{"files": {}}')
    next(folders(root)[1].glob("data/*.parquet")).write_bytes(b"PAR1")
    with Store(root).lock(), pytest.raises(ConfigError, match=r"cannot read .*\.parquet"):
        withdraw(Store(root), Wish(("fake/00000",), day="2026-11-30"))
    assert not (root / "withdrawn.json").exists(), "nothing was begun"
