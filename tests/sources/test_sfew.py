"""SFEW 2.0 as it lies on disk: nestings, spellings, names, labels, and what a wrong root is told."""

import unicodedata
from pathlib import Path

import pytest

from schemas.expressions import Expression
from schemas.records import Source
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.sources.inspect import inspect
from tasks.sources.sfew import CLASSES, SfewPool, movie_and_clip
from tests import trees


def pool(root: Path, **params: object) -> SfewPool:
    return SfewPool(SfewPool.Params.model_validate({"root": str(root)} | params))


def listed(root: Path, **params: object) -> dict[str, Source]:
    return {source.key.source_id: source for source in pool(root, **params).list()}


IDS = {f"{split.lower()}/{name}" for split, _, name in trees.SFEW}
LABELS = {f"{split.lower()}/{name}": CLASSES.get(label.lower()) for split, label, name in trees.SFEW}


def test_originals_are_the_sources_and_the_class_folder_the_label(tmp_path: Path) -> None:
    sources = listed(trees.write_sfew(tmp_path))
    assert {name: source.label for name, source in sources.items()} == LABELS
    one = sources["train/OceansThirteen_000550480_00000018"]
    assert (one.label, one.split, one.movie) == (Expression.ANGER, "train", "OceansThirteen")
    assert (one.clip, one.path) == ("OceansThirteen_000550480", "Train/Angry/OceansThirteen_000550480_00000018.png")
    assert one.clip == sources["train/OceansThirteen_000550480_00000058"].clip
    assert one.stamp
    assert "redistributed" in one.licence
    assert all("Aligned" not in source.path for source in sources.values())
    assert pool(tmp_path).load(one).pixels.shape == (240, 300, 3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nested_val": False},
        {"below": "SFEW_2.0"},
        {"below": "SFEW/SFEW 2"},
        {"suffix": ".PNG"},
        {"suffix": ".jpg"},
        {"spelling": {"Angry": "Anger", "Happy": "Happiness", "Sad": "SADNESS", "Fear": "fear"}},
    ],
)
def test_every_nesting_and_spelling_gives_the_same_ids_and_labels(tmp_path: Path, options: dict[str, object]) -> None:
    root = trees.write_sfew(tmp_path, **options)  # type: ignore[arg-type]
    for version in ("original", "aligned"):
        sources = listed(root, version=version)
        assert {name: source.label for name, source in sources.items()} == LABELS
    assert all("Aligned" in source.path for source in sources.values())


def test_aligned_faces_come_as_they_are_and_only_when_asked(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path, originals=False)
    with pytest.raises(ConfigError, match="only aligned ones: set `version: aligned`"):
        pool(root).list()
    faces = pool(root, version="aligned")
    assert faces.load(next(iter(faces.list()))).pixels.shape == (181, 143, 3)


def test_the_test_split_is_flat_and_unlabelled(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path)
    (only,) = listed(root, split="test").values()
    assert (only.label, only.split, only.movie) == (None, "test", "DeepBlueSea")
    assert {source.split for source in listed(root, split="val").values()} == {"val"}


@pytest.mark.parametrize(
    ("name", "movie", "clip"),
    [
        ("OceansThirteen_000550480_00000018", "OceansThirteen", "OceansThirteen_000550480"),
        ("21_001100480_00000010", "21", "21_001100480"),
        ("Up_In_The_Air_000600000_00000004", "Up_In_The_Air", "Up_In_The_Air_000600000"),
        ("10_000_BC_000600000_00000004", "10_000_BC", "10_000_BC_000600000"),
        ("Le_Placard_de_Zoé_000200000_00000001", "Le_Placard_de_Zoé", "Le_Placard_de_Zoé_000200000"),
        ("英雄_000200000_00000001", "英雄", "英雄_000200000"),
        ("000550480_00000018", "", "000550480"),
        ("portrait", "", ""),
        ("portrait_of_a_lady", "", ""),
    ],
)
def test_movie_and_clip_are_read_from_the_right(name: str, movie: str, clip: str) -> None:
    assert movie_and_clip(name) == (movie, clip)


def test_a_copy_unpacked_on_a_mac_has_the_same_ids(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path)
    for file in sorted(root.rglob("*é*")):
        file.rename(file.with_name(unicodedata.normalize("NFD", file.name)))
    trees.text(root / "__MACOSX/Train/Angry/._OceansThirteen_000550480_00000018.png", "twin")
    trees.text(root / "Train/Angry/.DS_Store", "")
    trees.text(root / "Train/Angry/Thumbs.db", "")
    sources = listed(root)
    assert sources.keys() == IDS
    zoe = next(source for name, source in sources.items() if "Zo" in name)
    assert pool(root).load(zoe).pixels.shape == (240, 300, 3)


def test_the_label_file_names_what_no_folder_does_and_its_integers_are_not_read(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path, aligned=False, labels_csv=True, flat=True)
    assert {name: source.label for name, source in listed(root).items()} == {
        name: label for name, label in LABELS.items() if label
    }
    (root / "images/Juno_000500000_00000003.png").unlink()
    absent = listed(root)["val/Juno_000500000_00000003"]
    assert absent.label is Expression.DISGUST
    with pytest.raises(UnreadableImage) as caught:
        pool(root).load(absent)
    assert caught.value.reason == "missing"
    found = {finding.what: finding.count for finding in inspect("sfew", str(root)).findings}
    assert found["labels without files (original)"] == 1
    assert found["pictures in no split folder, not used"] == 1


def test_the_folder_counts_where_the_label_file_disagrees(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path, aligned=False)
    trees.text(
        root / "sfew_2.0_labels.csv",
        "image_name,label,emotion,original_split\n21_001100480_00000010.png,0,sad,train\nx.png,9,joyful,train\n",
    )
    assert listed(root)["train/21_001100480_00000010"].label is Expression.HAPPY
    found = {finding.what: finding.count for finding in inspect("sfew", str(root)).findings}
    assert found["class folder and label file disagree (the folder counts)"] == 1
    assert found["rows of label files that name no expression or split"] == 1


def test_a_picture_in_two_classes_is_listed_once_without_a_label(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path)
    name = "OceansThirteen_000550480_00000018.png"
    trees.save(root / "Train/Sad" / name, trees.face("happy", 300))
    sources = listed(root)
    assert sources.keys() == IDS
    assert sources[f"train/{name[:-4]}"].label is None
    found = {finding.what: finding.count for finding in inspect("sfew", str(root)).findings}
    assert found["names with two labels"] == 1


def test_corrupt_pictures_are_reasons_at_load(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path)
    crop = root / "Train/Train_Aligned_Faces/Happy/21_001100480_00000010.png"
    (root / "Train/Happy/21_001100480_00000010.png").write_bytes(crop.read_bytes())
    (root / "Train/Sad/Le_Placard_de_Zoé_000200000_00000001.png").write_bytes(b"")
    (root / "Val/Fear/Orphan_000400000_00000002.png").write_text("no picture")
    sources = listed(root)
    for name, reason in (
        ("train/21_001100480_00000010", "wrong_version"),
        ("train/Le_Placard_de_Zoé_000200000_00000001", "empty"),
        ("val/Orphan_000400000_00000002", "not_an_image"),
    ):
        with pytest.raises(UnreadableImage) as caught:
            pool(root).load(sources[name])
        assert caught.value.reason == reason


def test_wrong_roots_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        pool(tmp_path / "absent").list()
    for name in ("Train_Aligned_Faces.zip", "Val_Aligned_Faces_new.zip"):
        (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(ConfigError, match=r"unzip first.*Train_Aligned_Faces\.zip"):
        pool(tmp_path).list()
    other = trees.write_rafdb(tmp_path / "rafdb")
    with pytest.raises(ConfigError, match="no original picture of SFEW") as caught:
        pool(other).list()
    assert "\n" not in str(caught.value)
    half = trees.write_sfew(tmp_path / "half")
    for file in (half / "Test").rglob("*.png"):
        file.unlink()
    with pytest.raises(ConfigError, match=r"split 'test'.*there is: train, val"):
        pool(half, split="test").list()
