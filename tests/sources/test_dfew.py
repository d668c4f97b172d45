"""DFEW as it lies on disk: folds, votes, media, frame names, and which frame becomes the source."""

from pathlib import Path

import numpy as np
import pytest

from schemas.expressions import Expression
from schemas.records import Source
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS
from tasks.sources.dfew import DfewPool
from tasks.sources.dfew_tables import clip_name
from tasks.sources.frames import Frame, best_frame, frame_names, spread
from tasks.sources.inspect import inspect
from tests import trees

LABELS = {
    "00001": Expression.HAPPY,
    "00002": Expression.ANGER,
    "00003": Expression.FEAR,
    "00004": Expression.NEUTRAL,
    "00009": Expression.SURPRISE,
    "00012": Expression.SAD,
}
SHARES = {"00001": 0.9, "00002": 0.8, "00003": 0.6, "00004": 1.0, "00009": 0.7, "00012": 0.7}


def pool(root: Path, **params: object) -> DfewPool:
    return DfewPool(DfewPool.Params.model_validate({"root": str(root)} | params))


def listed(root: Path, **params: object) -> dict[str, Source]:
    return {source.clip: source for source in pool(root, **params).list()}


def refused(root: Path, source: Source, **params: object) -> str:
    with pytest.raises(UnreadableImage) as caught:
        pool(root, **params).load(source)
    return caught.value.reason


def found(root: Path) -> dict[str, int]:
    return {finding.what: finding.count for finding in inspect("dfew", str(root)).findings}


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trees.write_dfew(tmp_path_factory.mktemp("dfew"))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Labels, votes and 16-frame clips: quick to write."""
    return trees.write_dfew(tmp_path / "dfew", media=["clip_224x224_16f"])


def test_single_labelled_clips_with_their_share_of_the_votes(videos: Path) -> None:
    sources = listed(videos)
    assert {clip: source.label for clip, source in sources.items()} == LABELS
    assert {clip: source.label_confidence for clip, source in sources.items()} == pytest.approx(SHARES)
    assert {clip for clip, source in sources.items() if source.split == "test"} == {"00004", "00012"}
    one = sources["00012"]
    assert (one.key.source_id, one.path) == ("00012@apex", "Clip/original/00012.mp4")
    assert one.stamp
    assert "non-commercial" in one.licence
    assert listed(videos, frame="middle")["00012"].key.source_id == "00012@middle"


@pytest.mark.parametrize(
    "options",
    [
        {"labels": "EmoLabel-DataSplit"},
        {"parts": "{}(single_labeled)"},
        {"parts": "{}_single-labelled"},
        {"below": "DFEW"},
        {"below": "data/DFEW-part1"},
        {"crlf": False},
        {"shuffled": False},
    ],
)
def test_every_spelling_and_nesting_gives_the_same_sources(tmp_path: Path, options: dict[str, object]) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224_16f"], **options)  # type: ignore[arg-type]
    sources = listed(root)
    assert {clip: source.label for clip, source in sources.items()} == LABELS
    assert {clip: source.label_confidence for clip, source in sources.items()} == pytest.approx(SHARES)


def test_splits_and_folds_are_those_of_the_files(bare: Path) -> None:
    assert listed(bare, split="test").keys() == {"00004", "00012"}
    for fold in range(1, 6):
        sources = listed(bare, fold=fold)
        assert sources.keys() == LABELS.keys()
        assert {int(clip): source.split for clip, source in sources.items()} == {
            int(clip): trees.in_fold(int(clip), fold) for clip in sources
        }


def test_a_clip_must_have_the_votes_that_are_asked_for(bare: Path, tmp_path: Path) -> None:
    assert listed(bare, min_vote_share=0.75).keys() == {"00001", "00002", "00004"}
    alone = trees.write_dfew(tmp_path / "alone", media=["clip_224x224_16f"], votes=False)
    assert {source.label_confidence for source in listed(alone).values()} == {None}
    with pytest.raises(ConfigError, match="there are no votes"):
        pool(alone, min_vote_share=0.7).list()


def test_clips_nobody_agreed_on_are_listed_only_when_asked(bare: Path) -> None:
    sources = listed(bare, unlabelled=True)
    assert sources.keys() - LABELS.keys() == {"00007"}
    assert (sources["00007"].label, sources["00007"].split) == (None, "")


def test_without_folds_the_votes_label(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224_16f"], folds=())
    sources = listed(root)
    assert {clip: source.label for clip, source in sources.items()} == LABELS
    assert {source.split for source in sources.values()} == {""}
    with pytest.raises(ConfigError, match="no label of fold 1 test"):
        pool(root, split="test").list()
    other = trees.write_dfew(tmp_path / "other", media=["clip_224x224_16f"], folds=(2,))
    with pytest.raises(ConfigError, match="no label of fold 3"):
        pool(other, fold=3).list()


@pytest.mark.parametrize("text", ["1", "00001", "1.0", "00001.mp4", " 1 ", "000001"])
def test_clip_names_are_filled_to_five(text: str) -> None:
    assert clip_name(text) == "00001"


@pytest.mark.parametrize("text", ["", "None", "part_1", "1-2", "123456", "-1"])
def test_what_is_no_clip_name_is_none(text: str) -> None:
    assert clip_name(text) == ""


def test_auto_takes_originals_where_there_are_any(tmp_path: Path, videos: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224", "clip_224x224_16f"])
    assert listed(root)["00001"].path == "Clip/clip_224x224/00001"
    assert listed(root, media="clip_224x224_16f")["00001"].path == "Clip/clip_224x224_16f/00001"
    assert listed(videos)["00001"].path.endswith(".mp4")
    with pytest.raises(ConfigError, match=r"no clip of 'original'.*there is: clip_224x224, clip_224x224_16f"):
        pool(root, media="original").list()


def test_a_clip_lost_to_face_detection_is_listed_and_missing(bare: Path) -> None:
    source = listed(bare)["00009"]
    assert source.stamp == ""
    assert refused(bare, source) == "missing"
    assert refused(bare, source.model_copy(update={"path": "Clip/original/00009.mp4"})) == "missing"


@pytest.mark.parametrize("style", ["readme", "authors", "plain"])
def test_frames_come_in_the_order_of_time(tmp_path: Path, style: str) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224_16f"], frames=style)
    names = frame_names(root / "Clip/clip_224x224_16f/00012")
    assert names == [trees.frame_name(style, 12, number) for number in range(1, 17)]
    loaded = pool(root).load(listed(root)["00012"])
    assert loaded.pixels.shape == (224, 224, 3)
    assert f"frame {trees.APEX} of 16" in loaded.note
    assert trees.frame_name(style, 12, trees.APEX) in loaded.note


def test_the_apex_of_a_video_is_its_strongest_frame_cut_around_the_face(videos: Path) -> None:
    clips = pool(videos, max_frames=None)
    source = listed(videos)["00001"]
    loaded = clips.load(source)
    assert loaded.note == f"frame {trees.APEX} of {trees.FRAMES}"
    (face,) = ANALYZERS.get("mediapipe", {}).analyze(Picture("dfew cut", loaded.pixels))
    height, width = loaded.pixels.shape[:2]
    assert height in (360, width)
    assert width < 640
    assert face.box[2] > 0.2 * width
    again = pool(videos, max_frames=None).load(source)
    assert np.array_equal(again.pixels, loaded.pixels)
    assert again.file_sha256 == loaded.file_sha256


def test_the_other_policies(videos: Path) -> None:
    source = listed(videos)["00001"]
    assert pool(videos, frame="middle", max_frames=None).load(source).note == "frame 9 of 18"
    assert "of 18" in pool(videos, frame="sharpest", max_frames=4).load(source).note


def test_a_video_without_a_face_gives_its_whole_middle_frame(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224_16f"])
    grey = [np.full((120, 160, 3), 100, np.uint8)] * 5
    trees.write_video(root / "Clip/original/00001.mp4", grey)
    loaded = pool(root).load(listed(root)["00001"])
    assert loaded.pixels.shape == (120, 160, 3)
    assert loaded.note == "frame 3 of 5, no face in any looked at"


def test_a_short_clip_is_used_and_counted(bare: Path) -> None:
    folder = bare / "Clip/clip_224x224_16f/00001"
    for number in range(5, 17):
        (folder / trees.frame_name("authors", 1, number)).unlink()
    assert "of 4" in pool(bare).load(listed(bare)["00001"]).note
    assert found(bare)["clips of the 16-frame version without 16 frames"] == 1


def test_unreadable_frames_are_passed_over_until_none_is_left(bare: Path) -> None:
    folder = bare / "Clip/clip_224x224_16f/00001"
    names = frame_names(folder)
    (folder / names[trees.APEX - 1]).write_bytes(b"")
    source = listed(bare)["00001"]
    assert "of 16" in pool(bare).load(source).note
    for name in names:
        (folder / name).write_bytes(b"")
    assert refused(bare, source) == "empty"
    for name in names:
        (folder / name).unlink()
    assert refused(bare, source) == "empty"


@pytest.mark.parametrize(("cut", "reason"), [(0, "empty"), (100, "broken"), (-2000, "broken")])
def test_a_broken_video_is_a_reason(tmp_path: Path, videos: Path, cut: int, reason: str) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224_16f"])
    data = (videos / "Clip/original/00001.mp4").read_bytes()
    (root / "Clip/original").mkdir()
    (root / "Clip/original/00001.mp4").write_bytes(data[:cut])
    assert refused(root, listed(root)["00001"]) == reason


def test_a_join_by_row_number_would_be_wrong(tmp_path: Path) -> None:
    # The fixture is worth something only if the order of rows and of clips really differ.
    import openpyxl  # type: ignore[import-untyped]

    file = trees.write_votes(tmp_path / "annotation.xlsx")
    names = [row[8] for row in list(openpyxl.load_workbook(file).active.values)[1:]]
    assert names != sorted(names)


def test_doubtful_tables_are_counted_and_the_rest_is_used(bare: Path) -> None:
    train = bare / "EmoLabel_DataSplit/train(single-labeled)/set_1.csv"
    with train.open("a") as file:
        file.write("1,2\r\n77,9\r\nabc,1\r\n12,2\r\n")
    (bare / "EmoLabel_DataSplit/test(single-labeled)/set_3.csv").write_text("clip;code\n1;1\n")
    assert listed(bare)["00001"].label is Expression.HAPPY
    seen = found(bare)
    assert seen["clips with two labels in one fold file (the first counts)"] == 1
    assert seen["rows of fold files that name no clip or label"] == 2
    assert seen["clips in both train and test of one fold"] == 1
    assert seen["fold files without the columns video_name and label"] == 1


@pytest.mark.parametrize("keep", [0, 100, 3000])
def test_a_broken_spreadsheet_costs_the_votes_only(bare: Path, keep: int) -> None:
    file = bare / "Annotation/annotation.xlsx"
    file.write_bytes(file.read_bytes()[:keep])
    trees.text(bare / "Annotation/~$annotation.xlsx", "a lock of Excel's")
    assert {source.label_confidence for source in listed(bare).values()} == {None}
    assert found(bare)["annotation.xlsx cannot be read"] == 1


def test_wrong_roots_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        pool(tmp_path / "absent").list()
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/original_part1.zip").write_bytes(b"PK")
    with pytest.raises(ConfigError, match=r"unzip first.*original_part1\.zip"):
        pool(tmp_path / "packed").list()
    trees.write_video(tmp_path / "half/Clip/original/00001.mp4", trees.clip_frames()[:2])
    with pytest.raises(ConfigError, match=r"no label of fold 1.*set_1\.csv") as caught:
        pool(tmp_path / "half").list()
    assert "\n" not in str(caught.value)
    trees.write_dfew(tmp_path / "labels", media=())
    with pytest.raises(ConfigError, match="no clip of DFEW"):
        pool(tmp_path / "labels").list()


def test_frames_are_spread_from_the_first_to_the_last() -> None:
    assert spread(5, None) == [0, 1, 2, 3, 4]
    assert spread(5, 16) == [0, 1, 2, 3, 4]
    assert spread(100, 4) == [0, 33, 66, 99]
    assert spread(9, 1) == [4]
    assert spread(0, 3) == []


def test_of_equal_frames_the_earliest_wins_and_a_turned_head_never_does() -> None:
    from dataclasses import replace
    from typing import Any

    shown = trees.face("happy", 200)
    (face,) = ANALYZERS.get("mediapipe", {}).analyze(Picture("dfew policy", shown))

    def frame(number: int, jaw: float, yaw: float = 0.0) -> Frame:
        changed: Any = replace(face, blendshapes=face.blendshapes | {"jawOpen": jaw}, yaw=yaw)
        return Frame(number, shown, changed)

    calm = [frame(number, 0.1) for number in range(1, 5)]
    assert best_frame([*calm, frame(5, 0.6), frame(6, 0.6)], "apex", 6).number == 5
    assert best_frame([*calm, frame(5, 0.4), frame(6, 0.9, yaw=60)], "apex", 6).number == 5
    assert best_frame(calm, "apex", 4).number == 1
    assert best_frame(calm, "sharpest", 4).number == 1
    assert best_frame([Frame(1, shown), Frame(2, shown)], "apex", 2).number == 1
    assert best_frame([Frame(1, shown), frame(4, 0.1)], "middle", 4).number == 4
