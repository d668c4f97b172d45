"""SFEW 2.0: stills from films, labelled by class folder.

Layout: `Train/<Class>/*.png` and `Val/<Class>/*.png` (originals), `Test/*.png` (flat, its labels are not public),
`Train/Train_Aligned_Faces/<Class>/`, `Val/Val_Aligned_Faces_new/Val_Aligned_Faces/<Class>/`, `Test/...` (faces of
143 × 181). Folders in between do not matter. `sfew_2.0_labels.csv` labels pictures that lie in no class folder.
"""

import csv
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from pydantic import BaseModel, Field

from schemas.expressions import Expression
from schemas.records import Key, Source
from tasks.engine.decode import decode
from tasks.engine.errors import UnreadableImage
from tasks.engine.registry import Adapter
from tasks.sources import Loaded
from tasks.sources.folder import escape, read_inside, unescape
from tasks.sources.trees import (
    Count,
    Doubts,
    Filed,
    Finding,
    Labelled,
    Survey,
    archives,
    canonical,
    is_picture,
    nothing_usable,
    open_root,
    plain,
    stamp,
    walk,
)

PUBLISHED: Final = {"train": 958, "val": 436, "test": 372}
ALIGNED_SIZE: Final = (143, 181)  # width, height
LICENCE: Final = "SFEW 2.0 EULA: research and education only, images must not be redistributed"

CLASSES: Final[dict[str, Expression]] = {
    "angry": Expression.ANGER,
    "anger": Expression.ANGER,
    "disgust": Expression.DISGUST,
    "disgusted": Expression.DISGUST,
    "fear": Expression.FEAR,
    "fearful": Expression.FEAR,
    "happy": Expression.HAPPY,
    "happiness": Expression.HAPPY,
    "neutral": Expression.NEUTRAL,
    "sad": Expression.SAD,
    "sadness": Expression.SAD,
    "surprise": Expression.SURPRISE,
    "surprised": Expression.SURPRISE,
}
# "Train", "Train_Aligned_Faces", "Val_Aligned_Faces_new", "validation", ...
_SPLIT: Final = re.compile(r"(train|val|test)(?:ing|idation)?(?:set|\d+|alignedfaces.*)?")
_NAME: Final = re.compile(r"(?P<clip>(?:(?P<movie>.+)_)?\d+)_\d+", re.DOTALL)
_LABELS: Final = re.compile(r"sfew.*labels?", re.IGNORECASE)


class SfewPool(Adapter):
    """A user's own copy of SFEW 2.0.

    A source's id is `<split>/<file name without extension>`, Unicode NFC: the same in every copy, however its folders
    are spelled. A picture filed under two classes has no label. `version` is never chosen for you: without originals
    the pool says so.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which pictures.

        Attributes:
            root: The folder with `Train`, `Val` and `Test`, or one above it.
            pool: The pool's name in every key.
            version: Film frames, or the published face crops of 143 × 181, which are too small to edit.
            split: Only this one; empty for all.
            licence: What the card says.
        """

        root: str = Field(min_length=1)
        pool: str = "sfew"
        version: Literal["original", "aligned"] = "original"
        split: Literal["", "train", "val", "test"] = ""
        licence: str = LICENCE

    local = ("root",)
    redistributable = False
    params: Params

    def list(self) -> Iterable[Source]:
        """Every picture of the version and split, sorted by id; and a source for every label without a picture.

        Raises:
            ConfigError: The root is no folder, or holds no such picture.
        """
        params = self.params
        root = open_root(params.pool, params.root)
        found = survey(root)
        files = [filed for filed in found.files if filed.version == params.version]
        if not files:
            other = "aligned" if params.version == "original" else "original"
            hint = "expected Train/<Class>/*.png, Val/<Class>/*.png or Test/*.png below it"
            if found.files:
                hint = f"there are only {other} ones: set `version: {other}` to use those"
            raise nothing_usable(params.pool, root, f"no {params.version} picture of SFEW", hint)
        wanted = [filed for filed in files if params.split in ("", filed.split)]
        if not wanted:
            there = ", ".join(sorted({filed.split for filed in files}))
            raise nothing_usable(params.pool, root, f"no picture of split '{params.split}'", f"there is: {there}")
        groups: dict[str, list[Filed]] = defaultdict(list)
        for filed in wanted:
            groups[f"{filed.split}/{filed.name}"].append(filed)
        sources = [self._source(source_id, group, found) for source_id, group in groups.items()]
        sources += [
            self._absent(name, row)
            for name, row in found.table.items()
            if params.split in ("", row.split) and f"{row.split}/{name}" not in groups
        ]
        return sorted(sources, key=lambda source: source.key)

    def load(self, source: Source) -> Loaded:
        """The whole picture.

        Raises:
            UnreadableImage: `missing`, `wrong_version` (an aligned face where an original should be), or a reason of
                `read_inside` or `decode`.
        """
        data = read_inside(Path(self.params.root), unescape(source.path))
        pixels = decode(data)
        if self.params.version == "original" and pixels.shape[1::-1] == ALIGNED_SIZE:
            raise UnreadableImage("wrong_version", f"'{source.path}' is an aligned face of 143 × 181, no original")
        return Loaded(pixels, hashlib.sha256(data).hexdigest())

    def _source(self, source_id: str, group: Sequence[Filed], found: Survey) -> Source:
        first = group[0]
        labels = {filed.label for filed in group}
        label = labels.pop() if len(labels) == 1 else None
        if label is None and len(group) == 1 and first.name in found.table:
            label = found.table[first.name].label
        return Source(
            key=Key(self.params.pool, source_id),
            path=first.path,
            stamp=stamp(Path(self.params.root) / unescape(first.path)),
            label=label,
            split=first.split,
            clip=first.clip,
            movie=movie_and_clip(first.name)[0],
            licence=self.params.licence,
        )

    def _absent(self, name: str, row: Labelled) -> Source:
        movie, clip = movie_and_clip(name)
        return Source(
            key=Key(self.params.pool, f"{row.split}/{name}"),
            path=f"{row.split.title()}/{name}.png",
            label=row.label,
            split=row.split,
            clip=clip,
            movie=movie,
            licence=self.params.licence,
        )


def movie_and_clip(name: str) -> tuple[str, str]:
    """("OceansThirteen", "OceansThirteen_000550480") of "OceansThirteen_000550480_00000018"; "" for what is not there.

    Read from the right: the name of a film may begin with digits or hold underscores.
    """
    match = _NAME.fullmatch(name)
    return (match["movie"] or "", match["clip"]) if match else ("", "")


def survey(root: Path) -> Survey:
    """All pictures below the root, whatever the nesting."""
    doubts = Doubts()
    files: list[Filed] = []
    table: dict[str, Labelled] = {}
    for folder, _, names in walk(root):
        for name in names:
            path = folder / name
            if path.suffix.lower() == ".csv" and _LABELS.search(path.stem):
                table |= _labels(root / path, doubts)
            elif is_picture(name):
                files.append(_filed(path))
    # A picture outside Train, Val and Test is of this set only if its table says so.
    known = [_with_split(filed, table) for filed in files]
    for filed in known:
        if not filed.split:
            doubts.add("pictures in no split folder, not used", filed.path)
        elif filed.label is None and filed.split != "test" and filed.name not in table:
            doubts.add("pictures in no class folder", filed.path)
        row = table.get(filed.name)
        if row and filed.label and row.label and filed.label is not row.label:
            doubts.add("class folder and label file disagree (the folder counts)", filed.path)
    used = tuple(filed for filed in known if filed.split)
    packed = archives(root)
    extra = (Finding("archives, not read", len(packed), tuple(packed[:5])),) if packed else ()
    return Survey(used, table, _counts(used), (*doubts.findings(), *extra))


def _filed(path: PurePosixPath) -> Filed:
    parents = path.parts[:-1]
    split = next(filter(None, map(_split, parents)), "")
    name = canonical(path.stem)
    return Filed(
        name=name,
        version="aligned" if any("aligned" in plain(part) for part in parents) else "original",
        split=split,
        path=escape(str(path)),
        label=CLASSES.get(plain(parents[-1])) if parents else None,
        clip=movie_and_clip(name)[1],
    )


def _split(word: str) -> str:
    match = _SPLIT.fullmatch(plain(word))
    return match[1] if match else ""


def _with_split(filed: Filed, table: dict[str, Labelled]) -> Filed:
    if filed.split or filed.name not in table:
        return filed
    return Filed(filed.name, filed.version, table[filed.name].split, filed.path, filed.label, filed.clip)


def _labels(file: Path, doubts: Doubts) -> dict[str, Labelled]:
    """`sfew_2.0_labels.csv`: image_name, label, emotion, original_split. Its integer label is never read."""
    rows: dict[str, Labelled] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            if not {"image_name", "emotion"} <= set(reader.fieldnames or ()):
                doubts.add("label files without the columns image_name and emotion", file.name)
                return {}
            for cells in reader:
                name = canonical(PurePosixPath(cells["image_name"] or "").stem)
                label = CLASSES.get(plain(cells["emotion"] or ""))
                split = _split(cells.get("original_split") or "")
                if not name or label is None or not split:
                    doubts.add("rows of label files that name no expression or split", f"{file.name}:{reader.line_num}")
                else:
                    rows[name] = Labelled(label, split)
    except (OSError, ValueError, csv.Error) as error:
        doubts.add("label files that cannot be read", f"{file.name}: {error}")
    return rows


def _counts(files: tuple[Filed, ...]) -> tuple[Count, ...]:
    """Pictures by version and split, each name once."""
    return tuple(
        Count(f"{version} {split}", len({f.name for f in files if (f.version, f.split) == (version, split)}), published)
        for version in ("original", "aligned")
        for split, published in PUBLISHED.items()
    )
