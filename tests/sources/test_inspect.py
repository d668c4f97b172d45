"""The inspection of a copy: counts beside the published ones, and everything that is wrong with it."""

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tasks.engine.errors import ConfigError
from tasks.sources.inspect import SURVEYS, Inspection, inspect
from tests import commands, trees


def findings(inspection: Inspection) -> dict[str, int]:
    return {finding.what: finding.count for finding in inspection.findings}


def counts(inspection: Inspection) -> dict[str, tuple[int, int | None]]:
    return {count.what: (count.found, count.published) for count in inspection.counts}


def test_sfew_beside_the_published_counts(tmp_path: Path) -> None:
    seen = inspect("sfew", str(trees.write_sfew(tmp_path)))
    assert counts(seen) == {
        "original train": (5, 958),
        "original val": (3, 436),
        "original test": (1, 372),
        "aligned train": (5, 958),
        "aligned val": (3, 436),
        "aligned test": (1, 372),
    }
    assert seen.labels == {
        "test": {"none": 1},
        "train": {"neutral": 1, "happy": 1, "sad": 1, "anger": 2},
        "val": {"surprise": 1, "fear": 1, "disgust": 1},
    }
    assert findings(seen) == {"files without labels (aligned)": 1, "files without labels (original)": 1}


def test_rafdb_beside_the_published_counts(tmp_path: Path) -> None:
    seen = inspect("rafdb", str(trees.write_rafdb(tmp_path)))
    assert counts(seen)["original train"] == (3, 12_271)
    assert counts(seen)["aligned test"] == counts(seen)["labels test"] == (2, 3_068)
    gaps = next(finding for finding in seen.findings if finding.what == "id gaps in original train")
    assert (gaps.count, gaps.examples) == (12_268, ("00004-12271",))
    assert seen.labels["test"] == {"neutral": 1, "anger": 1}


def test_dfew_beside_the_published_counts(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["original", "clip_224x224_16f"])
    seen = inspect("dfew", str(root))
    assert counts(seen) == {
        "clips original": (7, 16_372),
        "clips clip_224x224": (0, 15_906),
        "clips clip_224x224_16f": (6, 15_906),
        "voted on": (7, 16_372),
        "single-labelled": (6, 12_059),
        "fold 1 train": (4, 9_356),
        "fold 1 test": (2, 2_341),
        "fold 2 train": (5, 9_356),
        "fold 2 test": (1, 2_341),
        "fold 3 train": (5, 9_357),
        "fold 3 test": (1, 2_340),
        "fold 4 train": (5, 9_358),
        "fold 4 test": (1, 2_339),
        "fold 5 train": (5, 9_361),
        "fold 5 test": (1, 2_336),
    }
    gaps = next(finding for finding in seen.findings if finding.what == "id gaps in clip_224x224_16f (466 published)")
    assert gaps.examples[:3] == ("00005-00006", "00008-00011", "00013-16372")
    assert findings(seen)["labels without files (clip_224x224_16f)"] == 1
    assert findings(seen)["files without labels (original)"] == 1
    assert sum(sum(split.values()) for split in seen.labels.values()) == 7


def test_empty_and_broken_files_by_header_and_by_pixels(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    photos = root / "basic/Image/original"
    whole = (photos / "train_00003.jpg").read_bytes()
    (photos / "train_00001.jpg").write_bytes(b"")
    (photos / "train_00002.jpg").write_bytes(b"a letter")
    (photos / "train_00003.jpg").write_bytes(whole[: len(whole) // 2])
    (photos / "test_0001.jpg").unlink()
    (photos / "test_0001.jpg").symlink_to("/nowhere/at/all.jpg")
    quick, thorough = inspect("rafdb", str(root)), inspect("rafdb", str(root), decode_all=True)
    for seen in (quick, thorough):
        assert findings(seen)["empty files"] == 1
        assert findings(seen)["unreadable files (not_an_image)"] == 1
    assert "unreadable files (truncated)" not in findings(quick)
    assert findings(thorough)["unreadable files (truncated)"] == 1
    assert (quick.decoded, thorough.decoded) == (False, True)


def test_broken_videos_and_frames(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["original", "clip_224x224"])
    video = root / "Clip/original/00001.mp4"
    video.write_bytes(video.read_bytes()[:-2000])
    (root / "Clip/original/00002.mp4").write_bytes(b"")
    trees.text(root / "Clip/original/readme.txt", "no clip")
    frame = root / "Clip/clip_224x224/00003/00003_00004.jpg"
    frame.write_bytes(frame.read_bytes()[:3000])
    shutil.rmtree(root / "Clip/clip_224x224/00004")
    (root / "Clip/clip_224x224/00004").mkdir()
    for seen in (inspect("dfew", str(root)), inspect("dfew", str(root), decode_all=True)):
        assert findings(seen)["unreadable files (broken)"] == 1
        assert findings(seen)["empty files"] == 2
        assert findings(seen)["files that are no clip"] == 1
        assert ("unreadable files (truncated)" in findings(seen)) == seen.decoded


def test_doubles_leaks_and_mixed_versions(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path)
    happy = root / "Train/Happy/21_001100480_00000010.png"
    trees.save(root / "Train/Happy/21_001100480_00000010.jpg", trees.face("happy", 300))
    (root / "Val/Fear/Renamed_000000001_00000001.png").write_bytes(happy.read_bytes())
    shutil.copy(root / "Train/Angry/OceansThirteen_000550480_00000018.png", root / "Test")
    crop = root / "Train/Train_Aligned_Faces/Sad/Le_Placard_de_Zoé_000200000_00000001.png"
    shutil.copy(crop, root / "Train/Sad")
    shutil.copy(root / "Test/DeepBlueSea_000700000_00000005.png", root / "loose.png")
    (root / "Train_Aligned_Faces.zip").write_bytes(b"PK")
    seen = findings(inspect("sfew", str(root)))
    assert seen["duplicate names"] == 2
    assert seen["byte-identical files across splits"] == 2
    assert seen["clips shared by splits"] == 1
    assert seen["face crops among the originals (two versions mixed)"] == 1
    assert seen["pictures in no split folder, not used"] == 1
    assert seen["archives, not read"] == 1


def test_identical_clips_in_different_folds(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224_16f"])
    shutil.rmtree(root / "Clip/clip_224x224_16f/00002")
    shutil.copytree(root / "Clip/clip_224x224_16f/00001", root / "Clip/clip_224x224_16f/00002")
    assert findings(inspect("dfew", str(root)))["byte-identical files across splits"] == 1


def test_half_a_copy_is_inspected_and_an_empty_one_refused(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path / "labels", media=())
    assert findings(inspect("dfew", str(root)))["labels without files"] == 6
    (tmp_path / "empty").mkdir()
    for kind in SURVEYS:
        with pytest.raises(ConfigError, match=f"nothing of {kind}") as caught:
            inspect(kind, str(tmp_path / "empty"))
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="choose one of: dfew, rafdb, sfew"):
        inspect("folder", str(tmp_path))


def test_an_inspection_is_plain_data(tmp_path: Path) -> None:
    seen = inspect("rafdb", str(trees.write_rafdb_mirror(tmp_path)))
    assert json.loads(json.dumps(asdict(seen)))["labels"]["test"] == {"neutral": 1, "anger": 1}


def test_the_verb_shows_it_without_loading_a_model(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path / "sfew")
    env = commands.environment(tmp_path / "home")
    shown = commands.run(commands.fedbench("pools", "inspect", "sfew", root), env, tmp_path)
    assert shown.returncode == 0, shown.stderr
    for word in ("original train", "958", "files without labels (aligned)", "--decode"):
        assert word in shown.stdout
    told = commands.run(commands.fedbench("pools", "inspect", "sfew", root, "--json", "--decode"), env, tmp_path)
    assert json.loads(told.stdout)["decoded"] is True
    wrong = commands.run(commands.fedbench("pools", "inspect", "sfew", tmp_path / "home2"), env, tmp_path)
    assert wrong.returncode == 2
    assert "does not exist" in wrong.stderr
    code = f"import sys; from tasks.sources.inspect import inspect; inspect('sfew', {str(root)!r}); "
    code += "print(sorted({'mediapipe', 'onnxruntime', 'torch'} & set(sys.modules)))"
    loaded = commands.run([sys.executable, "-c", code], env, tmp_path)
    assert loaded.stdout.strip() == "[]", loaded.stderr
