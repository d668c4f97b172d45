"""Portraits of folders, data sets and workspace runs, on real photos."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest

from schemas.config import BuildConfig
from schemas.outcomes import Status
from schemas.portraits import Portrait
from schemas.screening import ScreenMeasure
from schemas.sections import Adapter
from tasks.dataset.write import publish
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.faces import analyzer
from tasks.leakage.compare import compare
from tasks.leakage.eye import Eye
from tasks.leakage.sides import portraits
from tests import photos
from tests.builds import built, config
from tests.trees import save

EYE = Eye.of(ScreenMeasure())
Pixels = np.ndarray


@dataclass(frozen=True)
class Set:
    """A run of some sample photos, and its data set."""

    workspace: Path
    dataset: Path
    kept: int


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Set:
    """Four sample photos; none is rejected by a threshold, so that as many triplets as can be come out."""
    folder = tmp_path_factory.mktemp("small") / "workspace"
    cut = {"verify": {"cut": {"min_change": 0}}, "generate": {"measure": {"targets": ["happy", "sad"]}}}
    run, done = built(folder, config(limit=4, seed=3, **cut))
    kept = sum(commits["screen"].statuses.get(Status.KEPT, 0) for commits in done)
    return Set(folder, publish(run, done).folder, kept)


def pictures(dataset: Path) -> dict[str, Pixels]:
    """The source pictures of a data set, by id."""
    rows = [row for file in (dataset / "data").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    found = {}
    for row in rows:
        data = np.frombuffer(row["source"]["bytes"], np.uint8)
        found[row["source_id"]] = cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    return found


def index_of(dataset: Path, out: Path) -> Path:
    """The data set without its pictures, as an index release has it."""
    shutil.copytree(dataset, out)
    for file in (out / "data").glob("*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns(["source", "ground_truth"]), file)
    return out


def names(rows: Sequence[Portrait]) -> list[str]:
    return sorted(str(row.key) for row in rows)


def test_a_workspace_needs_no_model_and_no_pool(small: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a model was asked")

    monkeypatch.setattr(Eye, "look", refuse)
    rows = portraits(str(small.workspace), EYE)
    assert len(rows) == small.kept
    assert all(row.embedding and row.face_phash and row.mirror_phash and row.model == EYE.model for row in rows)
    assert names(portraits(f"{small.workspace}#test", EYE)) == names(rows)


def test_a_data_set_and_its_workspace_have_equal_portraits(small: Set) -> None:
    stored = {row.key: row for row in portraits(str(small.workspace), EYE)}
    rows = portraits(str(small.dataset), EYE)
    assert rows
    for row in rows:
        other = stored[row.key]
        assert row.model_copy(update={"embedding": None}) == other.model_copy(update={"embedding": None})
        one, two = (np.frombuffer(of.embedding or b"", "<f4") for of in (row, other))
        assert one @ two > 0.9999
    found = compare(list(stored.values()), rows)
    assert set(found.must_go) == {row.key for row in rows}
    assert found.unchecked == ()


def test_a_folder_of_altered_copies_leaks_and_strangers_do_not(small: Set, tmp_path: Path) -> None:
    name, pixels = next(iter(pictures(small.dataset).items()))
    height, width = pixels.shape[:2]
    save(tmp_path / "f/crop.png", pixels[height // 12 : height * 11 // 12, width // 10 :])
    save(tmp_path / "f/mirror.png", pixels[:, ::-1])
    save(tmp_path / "f/small.jpg", cv2.resize(pixels, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA))
    save(tmp_path / "f/stranger.png", photos.frame(0).pixels)
    a = portraits(str(small.workspace), EYE)
    strangers = [row for row in a if "portrait" not in row.key.source_id]  # the man of the video
    found = compare(strangers, portraits(str(tmp_path / "f"), EYE))
    assert [str(key) for key in found.must_go] == ["folder/crop.png", "folder/mirror.png", "folder/small.jpg"]
    by_rule = {(str(leak.b), leak.rule): str(leak.a) for leak in found.leaks}
    assert by_rule["folder/mirror.png", "picture"] == by_rule["folder/crop.png", "identity"] == f"samples/{name}"
    assert found.unchecked == ()


def test_a_folder_says_what_has_no_face_and_what_is_broken(tmp_path: Path) -> None:
    shutil.copy(photos.file_of("landscape"), tmp_path / "landscape.jpg")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing more")
    shutil.copy(photos.file_of("hopper"), tmp_path / "hopper.jpg")
    rows = portraits(str(tmp_path), EYE)
    assert compare([], rows).unchecked == (
        "near duplicates not checked for 1 of 3 sources of B: not readable (truncated) 1",
        "identity not checked for 2 of 3 sources of B: not readable (truncated) 1, no face found 1",
    )


def test_an_index_release_gives_clips_and_pixels_only(small: Set, tmp_path: Path) -> None:
    rows = portraits(str(index_of(small.dataset, tmp_path / "index")), EYE)
    found = compare(portraits(str(small.workspace), EYE), rows)
    assert {leak.rule for leak in found.leaks} == {"pixels", "person"}
    assert found.must_go == tuple(row.key for row in rows)
    count = len(rows)
    assert found.unchecked == (
        f"near duplicates not checked for {count} of {count} sources of B: no picture {count}",
        f"identity not checked for {count} of {count} sources of B: no picture {count}",
    )


def test_another_model_looks_at_the_stored_pictures_and_says_where_they_are_gone(small: Set, tmp_path: Path) -> None:
    other = Eye(Adapter(name="mediapipe", params={"min_score": 0.7}), Adapter(name="sface"))
    rows = portraits(str(small.workspace), other)
    assert all(row.model == other.model and row.embedding for row in rows)
    copy = Path(shutil.copytree(small.workspace, tmp_path / "copy"))
    shutil.rmtree(copy / "images")
    gone = portraits(str(copy), other)
    assert all(row.model == EYE.model for row in gone)
    assert compare(rows, gone).unchecked[0].endswith("different identity models")


def test_what_was_looked_at_is_remembered(small: Set, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Store(tmp_path)
    rows = portraits(str(small.dataset), EYE, memory=memory)
    analyzer.forget()
    monkeypatch.setattr(Eye, "look", None)
    assert portraits(str(small.dataset), EYE, memory=memory) == rows


def test_the_note_of_a_run_holds_no_path_and_is_only_written_once(small: Set) -> None:
    note = small.workspace / "runs/test/screened.json"
    assert str(small.workspace) not in note.read_text()
    written = note.stat().st_mtime_ns
    settings = BuildConfig.model_validate(
        config(limit=4, seed=3, verify={"cut": {"min_change": 0}}, generate={"measure": {"targets": ["happy", "sad"]}})
    )
    built(small.workspace, settings)
    assert note.stat().st_mtime_ns == written
    assert json.loads(note.read_text())["run"] == "test"


def test_every_wrong_path_is_one_line(small: Set, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    wrong = {
        str(tmp_path / "nowhere"): "does not exist",
        str(tmp_path / "file"): "is not a folder",
        str(tmp_path / "empty"): "no image in",
        f"{tmp_path / 'empty'}#run": "is no workspace",
        f"{small.workspace}#other": "which run of .* screened are: test",
    }
    for path, words in wrong.items():
        with pytest.raises(ConfigError, match=words) as caught:
            portraits(path, EYE)
        assert caught.value.hint
        assert "\n" not in str(caught.value)
