"""What lies in a copy of RAF-DB basic, or of its Kaggle mirror: photos, labels, boxes, attributes."""

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.expressions import Expression
from tasks.engine.errors import UnreadableImage
from tasks.sources.folder import escape, read_inside
from tasks.sources.trees import (
    Count,
    Doubts,
    Filed,
    Finding,
    Labelled,
    Survey,
    canonical,
    gaps,
    is_archive,
    is_picture,
    plain,
    walk,
)

PUBLISHED: Final = {"train": 12_271, "test": 3_068}
DIGITS: Final = {"train": 5, "test": 4}

# RAF-DB's own codes; every set has others.
CODES: Final[dict[str, Expression]] = {
    "1": Expression.SURPRISE,
    "2": Expression.FEAR,
    "3": Expression.DISGUST,
    "4": Expression.HAPPY,
    "5": Expression.SAD,
    "6": Expression.ANGER,
    "7": Expression.NEUTRAL,
}
_TRAITS: Final = (
    ("gender", ("male", "female", "unsure")),
    ("race", ("caucasian", "african-american", "asian")),
    ("age", ("0-3", "4-19", "20-39", "40-69", "70+")),
)
_NAME: Final = re.compile(r"(?P<name>(?P<split>train|test)_(?P<number>\d+))(?P<aligned>_aligned)?", re.IGNORECASE)
_LIST: Final = re.compile(r"listpar?titionlabel")
_BOX, _MANUAL = "_boundingbox", "_manu_attri"


@dataclass(frozen=True, slots=True)
class Attributes:
    """A manual attribute file: five points (5, 2) float32 x, y in pixels of the original, and traits as "name=value".

    `points` is None, or a trait missing, where the file does not say.
    """

    points: NDArray[np.float32] | None = None
    traits: tuple[str, ...] = ()


@dataclass(slots=True)
class Tree:
    """A copy.

    Attributes:
        files: Photos, in order of path.
        table: Photo's name → label.
        boxes, manual: Photo's name → path of its bounding box and manual attribute file.
        doubts: What does not fit.
    """

    files: list[Filed] = field(default_factory=list)
    table: dict[str, Labelled] = field(default_factory=dict)
    boxes: dict[str, str] = field(default_factory=dict)
    manual: dict[str, str] = field(default_factory=dict)
    doubts: Doubts = field(default_factory=Doubts)


def split_of(name: str) -> str:
    """ "train" of "train_00001"."""
    return name.partition("_")[0]


def read(root: Path) -> Tree:
    """Walk the copy; label lists are read, photos and annotations only found."""
    tree = Tree()
    for folder, folders, names in walk(root):
        # RAF-DB compound has the same layout and names, and codes of its own: they would be read as basic ones.
        for name in [name for name in folders if plain(name) == "compound"]:
            tree.doubts.add("folders of RAF-DB compound, not read", escape(str(folder / name)))
            folders.remove(name)
        for name in names:
            path = folder / name
            if is_picture(name):
                filed = _filed(path, tree.doubts)
                if filed:
                    tree.files.append(filed)
            elif path.suffix.lower() == ".txt":
                _text_file(root, path, tree)
            elif is_archive(name):
                tree.doubts.add("archives, not read", str(path))
    return tree


def survey(root: Path) -> Survey:
    """All photos and labels."""
    tree = read(root)
    found = list(tree.doubts.findings())
    counts: list[Count] = []
    for version in ("original", "aligned"):
        names = {filed.name for filed in tree.files if filed.version == version}
        for split, published in PUBLISHED.items():
            own = {name for name in names if split_of(name) == split}
            counts.append(Count(f"{version} {split}", len(own), published))
            numbers = {int(name.partition("_")[2]) for name in own}
            if numbers:
                count, ranges = gaps(numbers, published, DIGITS[split])
                if count:
                    found.append(Finding(f"id gaps in {version} {split}", count, ranges[:20]))
        if names and version == "original":
            for what, there in (("bounding boxes", tree.boxes), ("manual attributes", tree.manual)):
                lacking = sorted(names - there.keys())
                if lacking:
                    found.append(Finding(f"originals without {what}", len(lacking), tuple(lacking[:5])))
    for split, published in PUBLISHED.items() if tree.table else ():
        counts.append(Count(f"labels {split}", sum(split_of(name) == split for name in tree.table), published))
    return Survey(tuple(tree.files), tree.table, tuple(counts), tuple(found))


def attributes(root: Path, path: str) -> Attributes:
    """What a manual attribute file says: five lines of x and y (tab or space between), then gender, race, age codes.

    A broken file says nothing, which costs its photo the slices, not its place.
    """
    try:
        words = read_inside(root, path).decode("utf-8-sig").split()
        numbers = [float(word) for word in words]
    except (UnreadableImage, ValueError):
        return Attributes()
    points = np.array(numbers[:10], np.float32).reshape(5, 2) if len(numbers) >= 10 else None
    if points is not None and not np.isfinite(points).all():
        points = None
    traits = tuple(
        f"{trait}={values[int(code)]}"
        for (trait, values), code in zip(_TRAITS, numbers[10:13], strict=False)
        if code in range(len(values))
    )
    return Attributes(points, traits)


def _filed(path: PurePosixPath, doubts: Doubts) -> Filed | None:
    """A photo by its name; the folder says the version too, and the class in the mirror."""
    match = _NAME.fullmatch(path.stem)
    if match is None:
        doubts.add("pictures that are no photo of RAF-DB", escape(str(path)))
        return None
    parents = [plain(part) for part in path.parts[:-1]]
    mirror = len(parents) >= 2 and parents[-1] in CODES and parents[-2] in PUBLISHED
    aligned = bool(match["aligned"]) or mirror or "aligned" in parents
    if not mirror and (aligned != ("aligned" in parents) or bool(match["aligned"]) != aligned):
        doubts.add("name and folder disagree whether it is aligned (then it counts as aligned)", escape(str(path)))
    name = match["name"].lower()
    if mirror and parents[-2] != split_of(name):
        doubts.add("photos in the other split's folder", escape(str(path)))
    label = CODES[parents[-1]] if mirror else None
    return Filed(name, "aligned" if aligned else "original", split_of(name), escape(str(path)), label)


def _text_file(root: Path, path: PurePosixPath, tree: Tree) -> None:
    stem = canonical(path.stem).lower()
    if stem.endswith(_BOX):
        tree.boxes[stem.removesuffix(_BOX)] = str(path)
    elif stem.endswith(_MANUAL):
        tree.manual[stem.removesuffix(_MANUAL)] = str(path)
    elif _LIST.fullmatch(plain(path.stem)):
        for name, row in _labels(root / path, tree.doubts).items():
            if tree.table.setdefault(name, row) != row:
                tree.doubts.add("photos with two labels (the first counts)", name)


def _labels(file: Path, doubts: Doubts) -> dict[str, Labelled]:
    """ "train_00001.jpg 5" a line: names without `_aligned`."""
    rows: dict[str, Labelled] = {}
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        doubts.add("label lists that cannot be read", f"{file.name}: {error}")
        return rows
    for number, line in enumerate(lines, 1):
        words = line.split()
        match = _NAME.fullmatch(PurePosixPath(words[0]).stem) if words else None
        label = CODES.get(words[1]) if len(words) == 2 else None
        if match and label:
            name = match["name"].lower()
            row = Labelled(label, split_of(name))
            if rows.setdefault(name, row) != row:
                doubts.add("photos with two labels (the first counts)", name)
        elif words:
            doubts.add("lines of label lists that name no photo or label", f"{file.name}:{number}")
    return rows
