"""Copies of SFEW 2.0, DFEW and RAF-DB in small: the published names and file shapes, photos from installed packages.

Every quirk of the real sets is an option, so that a test says which one it is about.
"""

import random
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from tests import photos

Pixels = NDArray[np.uint8]

SFEW: Final[tuple[tuple[str, str, str], ...]] = (
    ("Train", "Angry", "OceansThirteen_000550480_00000018"),
    ("Train", "Angry", "OceansThirteen_000550480_00000058"),
    ("Train", "Happy", "21_001100480_00000010"),
    ("Train", "Sad", "Le_Placard_de_Zoé_000200000_00000001"),
    ("Train", "Neutral", "Hangover_000300000_00000031"),
    ("Val", "Fear", "Orphan_000400000_00000002"),
    ("Val", "Disgust", "Juno_000500000_00000003"),
    ("Val", "Surprise", "Up_In_The_Air_000600000_00000004"),
    ("Test", "", "DeepBlueSea_000700000_00000005"),
)
# Clip → code, votes for 1happy ... 7fear, fold 1's split. 00009 is one of the real gaps, 00007 has no single label.
DFEW: Final[dict[int, tuple[int, tuple[int, ...], str]]] = {
    1: (1, (9, 0, 1, 0, 0, 0, 0), "train"),
    2: (4, (0, 1, 1, 8, 0, 0, 0), "train"),
    3: (7, (0, 0, 0, 0, 4, 0, 6), "train"),
    4: (3, (0, 0, 10, 0, 0, 0, 0), "test"),
    7: (0, (3, 0, 2, 2, 1, 1, 1), ""),
    9: (5, (0, 0, 0, 0, 7, 0, 3), "train"),
    12: (2, (0, 7, 3, 0, 0, 0, 0), "test"),
}
GAP: Final = 9
# Name → code and gender, race, age.
RAFDB: Final[dict[str, tuple[int, tuple[int, int, int]]]] = {
    "train_00001": (5, (1, 0, 2)),
    "train_00002": (1, (0, 2, 4)),
    "train_00003": (4, (2, 1, 0)),
    "test_0001": (6, (0, 0, 3)),
    "test_0002": (7, (1, 2, 1)),
}
FRAMES: Final = 18
APEX: Final = 13  # counted from 1


@cache
def face(name: str, side: int) -> Pixels:
    """A square photo of one face, RGB."""
    pixels = photos.photo(name).pixels
    short = min(pixels.shape[:2])
    return np.asarray(cv2.resize(pixels[:short, :short], (side, side), interpolation=cv2.INTER_AREA), np.uint8)


def marked(pixels: Pixels, name: str) -> Pixels:
    """A copy that differs by its name in one corner, so that no two files are equal."""
    copy = pixels.copy()
    copy[:8, :8] = [sum(name.encode()) % 256, len(name) * 7 % 256, name.encode()[-1]]
    copy[:2, 8 : 8 + len(name)] = np.frombuffer(name.encode()[: copy.shape[1] - 8], np.uint8)[: len(name), None]
    return copy


def save(path: Path, pixels: Pixels) -> Path:
    """Write RGB pixels, in the format of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(path.suffix.lower(), pixels[:, :, ::-1])[1].tobytes())
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path


def write_sfew(
    root: Path,
    *,
    originals: bool = True,
    aligned: bool = True,
    spelling: dict[str, str] | None = None,
    nested_val: bool = True,
    below: str = "",
    suffix: str = ".png",
    labels_csv: bool = False,
    flat: bool = False,
) -> Path:
    """SFEW 2.0.

    Args:
        root: Where.
        originals, aligned: Which versions.
        spelling: Class folder → as it is called here ("Angry" → "Anger").
        nested_val: `Val/Val_Aligned_Faces_new/Val_Aligned_Faces/`, as published, or `Val/Val_Aligned_Faces/`.
        below: A folder in between, such as "SFEW_2.0".
        suffix: Of the pictures.
        labels_csv: Write `sfew_2.0_labels.csv`.
        flat: Pictures in `images/`, in no class folder and no split.
    """
    top = root / below
    val = Path("Val_Aligned_Faces_new/Val_Aligned_Faces" if nested_val else "Val_Aligned_Faces")
    crops = {"Train": Path("Train_Aligned_Faces"), "Val": val, "Test": Path("Test_Aligned_Faces")}
    for split, label, name in SFEW:
        folder = (spelling or {}).get(label, label)
        if originals:
            place = top / "images" if flat else top / split / folder
            save(place / f"{name}{suffix}", marked(face("happy", 300)[:240], name))
        if aligned:
            crop = cv2.resize(face("happy", 200), (143, 181))
            save(top / split / crops[split] / folder / f"{name}{suffix}", marked(np.asarray(crop, np.uint8), name))
    if labels_csv:
        rows = [f"{name}{suffix},6,{label.lower()},{split.lower()}" for split, label, name in SFEW if label]
        text(top / "sfew_2.0_labels.csv", "\r\n".join(["image_name,label,emotion,original_split", *rows, ""]))
    return root


@cache
def clip_frames() -> tuple[Pixels, ...]:
    """Frames of 360 × 640: a calm face in the left half, with one strong smile at `APEX`."""
    calm, smile = face("hopper", 300), face("smiling", 300)
    frames = []
    for number in range(1, FRAMES + 1):
        frame = np.full((360, 640, 3), 90 + number, np.uint8)
        frame[30:330, 20:320] = smile if number == APEX else calm
        frames.append(frame)
    return tuple(frames)


def write_video(path: Path, frames: Sequence[Pixels]) -> Path:
    """An mp4 of RGB frames."""
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = frames[0].shape[:2]
    video = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"mp4v"), 25, (width, height))  # type: ignore[attr-defined]
    assert video.isOpened()
    for frame in frames:
        video.write(np.ascontiguousarray(frame[:, :, ::-1]))
    video.release()
    return path


def frame_name(style: str, clip: int, number: int) -> str:
    """As the official readme has it, the authors' code, or the loaders of the 16-frame version."""
    styles = {"readme": f"{clip}_{number}", "authors": f"{clip:05}_{number:05}", "plain": f"{number}"}
    return f"{styles[style]}.jpg"


def write_dfew(
    root: Path,
    *,
    media: Sequence[str] = ("original",),
    labels: str = "EmoLabel_DataSplit",
    parts: str = "{}(single-labeled)",
    folds: Sequence[int] = (1, 2, 3, 4, 5),
    votes: bool = True,
    shuffled: bool = True,
    frames: str = "authors",
    below: str = "",
    crlf: bool = True,
) -> Path:
    """DFEW.

    Args:
        root: Where.
        media: Of original, clip_224x224, clip_224x224_16f. Clip 9 has no aligned version, as in the real set.
        labels, parts: How the label folder and its two parts are called.
        folds: Which folds have their files.
        votes: Write `Annotation/annotation.xlsx`.
        shuffled: Its rows in another order than the clips', so that a join by row is wrong.
        frames: Style of frame names.
        below: A folder in between.
        crlf: Line ends of the CSVs.
    """
    top = root / below
    for clip in DFEW:
        if "original" in media:
            stripe = np.full((20, 640, 3), 18 * clip, np.uint8)  # wide enough to survive the codec
            shown = [np.vstack([stripe, frame[20:]]) for frame in clip_frames()]
            write_video(top / f"Clip/original/{clip:05}.mp4", shown)
        for medium in media:
            if medium != "original" and clip != GAP:
                count = 16 if medium.endswith("16f") else FRAMES
                for number, frame in enumerate(clip_frames()[:count], 1):
                    crop = np.asarray(cv2.resize(frame[30:330, 20:320], (224, 224)), np.uint8)
                    path = top / f"Clip/{medium}/{clip:05}/{frame_name(frames, clip, number)}"
                    save(path, marked(crop, f"{clip:05}-{number}"))
    for fold in folds:
        for part in ("train", "test"):
            rows = [
                f"{clip},{code}" for clip, (code, _, split) in DFEW.items() if split and in_fold(clip, fold) == part
            ]
            lines = ["video_name,label", *rows, ""]
            text(top / labels / parts.format(part) / f"set_{fold}.csv", ("\r\n" if crlf else "\n").join(lines))
    if votes:
        write_votes(top / "Annotation/annotation.xlsx", shuffled=shuffled)
    return root


def in_fold(clip: int, fold: int) -> str:
    """Fold 1 is as `DFEW` says; the clips of its training part are the test parts of the other folds in turn."""
    others = [other for other in DFEW if DFEW[other][2] == "train"]
    own = 1 if clip not in others else 2 + others.index(clip) % 4
    return "test" if own == fold else "train"


def write_votes(
    path: Path, *, shuffled: bool = True, clips: Mapping[int, tuple[int, tuple[int, ...], str]] = DFEW
) -> Path:
    """The spreadsheet: order, the votes, clip name, annotation. `order` runs on whatever the rows' order."""
    import openpyxl  # type: ignore[import-untyped]

    path.parent.mkdir(parents=True, exist_ok=True)
    book = openpyxl.Workbook()
    sheet = book.active
    names = ["1happy", "2sad", "3neutral", "4angry", "5surprise", "6disgust", "7fear"]
    sheet.append(["order", *names, "clip name", "annotation"])
    rows: list[tuple[Any, ...]] = [(*votes, clip, code) for clip, (code, votes, _) in clips.items()]
    if shuffled:
        random.Random(1).shuffle(rows)
    for order, row in enumerate(rows, 1):
        sheet.append([order, *row])
    book.save(path)
    return path


@cache
def group() -> Pixels:
    """480 × 800 RGB: a bystander on the left as large as the labelled face on the right, far apart."""
    shown = np.full((480, 800, 3), 128, np.uint8)
    shown[120:420, 20:320] = face("hopper", 300)
    shown[120:420, 480:780] = face("happy", 300)
    return shown


LABELLED_BOX: Final = (560.0, 170.0, 700.0, 370.0)  # x0 y0 x1 y1 in `group`


def write_rafdb(
    root: Path,
    *,
    basic: str = "basic",
    list_name: str = "list_patition_label.txt",
    versions: Sequence[str] = ("original", "aligned"),
    boxes: bool = True,
    manual: bool = True,
    tabs: bool = True,
) -> Path:
    """RAF-DB basic as its authors give it.

    Args:
        root: Where.
        basic: The folder in between, or "".
        list_name: Of the label list.
        versions: Of original and aligned.
        boxes, manual: Which annotations; sets before v1.1 have no boxes.
        tabs: What stands between x and y in the manual files.
    """
    top = root / basic
    for name, (_, traits) in RAFDB.items():
        if "original" in versions:
            save(top / f"Image/original/{name}.jpg", marked(group(), name))
        if "aligned" in versions:
            save(top / f"Image/aligned/{name}_aligned.jpg", marked(face("happy", 100), name))
        if boxes:
            corners = " ".join(str(value) for value in LABELLED_BOX)
            text(top / f"Annotation/boundingbox/{name}_boundingbox.txt", f"{corners} \n")
        if manual:
            points = [(600, 250), (660, 250), (630, 280), (605, 315), (655, 315)]
            lines = [("\t" if tabs else " ").join(map(str, point)) for point in points]
            text(top / f"Annotation/manual/{name}_manu_attri.txt", "\n".join([*lines, *map(str, traits), ""]))
        text(top / f"Annotation/auto/{name}_auto_attri.txt", "1 2\n" * 37)
    labels = [f"{name}.jpg {code}" for name, (code, _) in RAFDB.items()]
    text(top / "EmoLabel" / list_name, "\n".join([*labels, ""]))
    return root


def write_rafdb_mirror(root: Path, below: str = "DATASET") -> Path:
    """The Kaggle mirror: aligned faces in folders by split and code."""
    for name, (code, _) in RAFDB.items():
        split = name.partition("_")[0]
        save(root / below / split / str(code) / f"{name}_aligned.jpg", marked(face("happy", 100), name))
    return root


@cache
def shared_root(kind: str) -> str:
    """A whole copy for tests that only read, one per process."""
    root = Path(_shared().name) / kind
    {"sfew": write_sfew, "dfew": write_dfew, "rafdb": write_rafdb}[kind](root)
    return str(root)


@cache
def _shared() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="fedbench-trees-")  # removed when the process ends
