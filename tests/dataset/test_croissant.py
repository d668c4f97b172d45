"""croissant.json: valid for `mlcroissant`, which loads every record of every table by it."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import mlcroissant
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tasks.dataset.texts import file_sha256
from tests.dataset.conftest import Releases

# Of mlcroissant's own dependencies.
pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph", "ignore:The inplace keyword")


def rows(folder: Path, part: str) -> list[dict[str, Any]]:
    return [row for path in sorted((folder / part).iterdir()) for row in pq.read_table(path).to_pylist()]


def opened(folder: Path) -> Any:
    return mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))


@pytest.mark.parametrize("name", ["full", "index"])
def test_it_is_valid(releases: Releases, name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        metadata = opened(getattr(releases, name)).metadata
    assert not metadata.ctx.issues.errors
    assert not [warning for warning in metadata.ctx.issues.warnings if "recommended" not in warning]
    assert [record.name for record in metadata.record_sets] == ["triplets", "rejected"]
    assert "not standard" not in caplog.text


@pytest.mark.parametrize("name", ["full", "index"])
@pytest.mark.parametrize(("table", "part"), [("triplets", "data"), ("rejected", "rejected")])
def test_its_records_are_the_rows(releases: Releases, name: str, table: str, part: str) -> None:
    folder = getattr(releases, name)
    records = list(opened(folder).records(table))
    stored = rows(folder, part)
    assert len(records) == len(stored) > 5
    for record, row in zip(records, stored, strict=True):
        for column in ("id", "pool", "licence", "row_sha256", "instruction"):
            assert record[f"{table}/{column}"].decode() == row[column]
        assert record[f"{table}/attempt"] == row["attempt"]
        for column in {"source", "ground_truth", "image"} & row.keys():
            picture = record[f"{table}/{column}"]
            if row[column] is None:
                assert picture is None
            else:
                assert picture.tobytes() == Image.open(io.BytesIO(row[column]["bytes"])).tobytes()


def test_it_lists_the_files_by_hash_and_every_column(releases: Releases) -> None:
    for folder in (releases.full, releases.index):
        said = json.loads((folder / "croissant.json").read_text())
        files = {one["contentUrl"]: one["sha256"] for one in said["distribution"] if one["@type"] == "cr:FileObject"}
        assert files == {
            path.relative_to(folder).as_posix(): file_sha256(path) for path in sorted(folder.rglob("*.parquet"))
        }
        for record, part in zip(said["recordSet"], ("data", "rejected"), strict=True):
            columns = [field["name"].partition("/")[2] for field in record["field"]]
            assert columns == list(rows(folder, part)[0])
        assert said["rai:personalSensitiveInformation"]
        assert said["license"] == ["CC0"]
        assert "dateCreated" not in said
