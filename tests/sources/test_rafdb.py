"""RAF-DB as it lies on disk: both layouts, its label list, boxes, attributes, and what is broken."""

from pathlib import Path

import pytest

from schemas.expressions import Expression
from schemas.records import Source
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS
from tasks.sources.inspect import inspect
from tasks.sources.rafdb import RafdbPool
from tests import trees

LABELS = {
    "train_00001": Expression.SAD,
    "train_00002": Expression.SURPRISE,
    "train_00003": Expression.HAPPY,
    "test_0001": Expression.ANGER,
    "test_0002": Expression.NEUTRAL,
}


def pool(root: Path, **params: object) -> RafdbPool:
    return RafdbPool(RafdbPool.Params.model_validate({"root": str(root)} | params))


def listed(root: Path, **params: object) -> dict[str, Source]:
    return {source.key.source_id: source for source in pool(root, **params).list()}


def refused(root: Path, source: Source, **params: object) -> str:
    with pytest.raises(UnreadableImage) as caught:
        pool(root, **params).load(source)
    return caught.value.reason


@pytest.mark.parametrize("basic", ["basic", "", "RAF-DB/basic"])
@pytest.mark.parametrize("list_name", ["list_patition_label.txt", "list_partition_label.txt"])
@pytest.mark.parametrize("version", ["original", "aligned"])
def test_labels_come_from_the_list_by_names_without_aligned(
    tmp_path: Path, basic: str, list_name: str, version: str
) -> None:
    sources = listed(trees.write_rafdb(tmp_path, basic=basic, list_name=list_name), version=version)
    assert {name: source.label for name, source in sources.items()} == LABELS
    assert {name: source.split for name, source in sources.items()} == {name: name.split("_")[0] for name in LABELS}
    tail = "_aligned.jpg" if version == "aligned" else "1.jpg"
    assert sources["train_00001"].path.endswith(tail)
    assert "non-commercial" in sources["test_0001"].licence


@pytest.mark.parametrize("tabs", [True, False])
def test_gender_race_and_age_are_traits(tmp_path: Path, tabs: bool) -> None:
    sources = listed(trees.write_rafdb(tmp_path, tabs=tabs))
    assert sources["train_00001"].traits == ("gender=female", "race=caucasian", "age=20-39")
    assert sources["train_00002"].traits == ("gender=male", "race=asian", "age=70+")
    assert sources["train_00003"].traits == ("gender=unsure", "race=african-american", "age=0-3")
    assert listed(trees.write_rafdb(tmp_path / "bare", manual=False))["test_0001"].traits == ()


def test_an_original_is_cut_around_the_labelled_face_not_the_bystander(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    source = listed(root)["train_00001"]
    loaded = pool(root).load(source)  # a pool that never listed, as a worker's
    assert loaded.pixels.shape == (440, 440, 3)  # 2.2 × 200
    (found,) = ANALYZERS.get("mediapipe", {}).analyze(Picture("rafdb cut", loaded.pixels))
    assert found.box[2] > 60
    assert "bounding box" in loaded.note
    assert pool(root, margin=1.5).load(source).pixels.shape == (300, 300, 3)
    assert pool(root, margin=6).load(source).pixels.shape == (480, 800, 3), "never beyond the photo"


def test_without_a_box_file_the_five_points_say_where(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path, boxes=False)
    loaded = pool(root).load(listed(root)["train_00001"])
    assert "five points" in loaded.note
    assert ANALYZERS.get("mediapipe", {}).analyze(Picture("rafdb points", loaded.pixels))
    bare = trees.write_rafdb(tmp_path / "bare", boxes=False, manual=False)
    assert refused(bare, listed(bare)["train_00001"]) == "no_box"


@pytest.mark.parametrize("box", ["", "1 2 3", "a b c d", "9 9 5 5", "5000 5000 5100 5100", "nan nan nan nan"])
def test_a_senseless_box_is_a_reason(tmp_path: Path, box: str) -> None:
    root = trees.write_rafdb(tmp_path)
    trees.text(root / "basic/Annotation/boundingbox/train_00001_boundingbox.txt", box)
    assert refused(root, listed(root)["train_00001"]) == "bad_box"


def test_another_box_is_another_stamp(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    before = listed(root)["train_00001"].stamp
    trees.text(root / "basic/Annotation/boundingbox/train_00001_boundingbox.txt", "10 10 90 90 ")
    assert listed(root)["train_00001"].stamp != before


def test_the_mirror_labels_by_folder_with_rafdbs_own_codes(tmp_path: Path) -> None:
    root = trees.write_rafdb_mirror(tmp_path)
    for place in (root, root / "DATASET"):
        sources = listed(place, version="aligned")
        assert {name: source.label for name, source in sources.items()} == LABELS
        assert pool(place, version="aligned").load(sources["test_0001"]).pixels.shape == (100, 100, 3)
    with pytest.raises(ConfigError, match="only aligned ones: set `version: aligned`"):
        pool(root).list()
    (root / "DATASET/train/5/train_00001_aligned.jpg").rename(root / "DATASET/test/6/train_00001_aligned.jpg")
    found = {finding.what: finding.count for finding in inspect("rafdb", str(root)).findings}
    assert found["photos in the other split's folder"] == 1


def test_labels_without_photos_are_missing_and_photos_without_labels_unlabelled(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    (root / "basic/Image/original/train_00002.jpg").unlink()
    trees.save(root / "basic/Image/original/train_00009.jpg", trees.group())
    sources = listed(root)
    assert refused(root, sources["train_00002"]) == "missing"
    assert sources["train_00009"].label is None
    assert listed(root, split="test").keys() == {"test_0001", "test_0002"}


def test_doubtful_lines_are_counted_and_the_rest_is_used(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    with (root / "basic/EmoLabel/list_patition_label.txt").open("a") as file:
        file.write("train_00001.jpg 4\ntrain_00004.jpg 9\nphoto.jpg 1\ntrain_00005.jpg\n\n")
    assert listed(root)["train_00001"].label is Expression.SAD
    found = {finding.what: finding.count for finding in inspect("rafdb", str(root)).findings}
    assert found["photos with two labels (the first counts)"] == 1
    assert found["lines of label lists that name no photo or label"] == 3


def test_versions_in_the_wrong_folder_are_told_apart_by_name(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    for file in (root / "basic/Image/aligned").iterdir():
        file.rename(root / "basic/Image/original" / file.name)
    assert all("_aligned" not in source.path for source in listed(root).values())
    assert all("_aligned" in source.path for source in listed(root, version="aligned").values())
    found = {finding.what: finding.count for finding in inspect("rafdb", str(root)).findings}
    assert found["name and folder disagree whether it is aligned (then it counts as aligned)"] == len(LABELS)


def test_corrupt_photos_are_reasons_at_load(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    photo = root / "basic/Image/original/train_00001.jpg"
    whole = photo.read_bytes()
    source = listed(root)["train_00001"]
    for data, reason in ((b"", "empty"), (whole[: len(whole) // 2], "truncated"), (b"text", "not_an_image")):
        photo.write_bytes(data)
        assert refused(root, source) == reason


def test_wrong_roots_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        pool(tmp_path / "absent").list()
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/basic.zip").write_bytes(b"PK")
    with pytest.raises(ConfigError, match=r"unzip first.*basic\.zip"):
        pool(tmp_path / "packed").list()
    bare = trees.write_rafdb(tmp_path / "bare")
    (bare / "basic/EmoLabel/list_patition_label.txt").unlink()
    with pytest.raises(ConfigError, match="no label of RAF-DB") as caught:
        pool(bare).list()
    assert "\n" not in str(caught.value)
