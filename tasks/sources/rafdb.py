"""RAF-DB, basic emotions: photos from the web, labelled by about forty people each.

Layout, `basic/` or its inside: `Image/original/train_00001.jpg`, `Image/aligned/train_00001_aligned.jpg` (100 × 100),
`EmoLabel/list_patition_label.txt` (their spelling), `Annotation/manual/<name>_manu_attri.txt`,
`Annotation/boundingbox/<name>_boundingbox.txt`. Also the Kaggle mirror, `DATASET/{train,test}/{1..7}/`, which has the
aligned faces only.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from schemas.records import Key, Source
from tasks.engine.decode import decode
from tasks.engine.errors import UnreadableImage
from tasks.engine.registry import Adapter
from tasks.sources import Loaded
from tasks.sources.folder import escape, read_inside, unescape
from tasks.sources.rafdb_tree import Attributes, attributes, read, split_of
from tasks.sources.trees import Filed, Labelled, cut_around, nothing_usable, open_root, stamp

LICENCE: Final = "RAF-DB terms: non-commercial research and education only, no redistribution; authors own no copyright"

# Ours: the five points (eyes, nose, mouth corners) of a frontal face span about half of what a face box does.
_POINTS_TO_BOX: Final = 2.0


class RafdbPool(Adapter):
    """A user's own copy of RAF-DB basic.

    A source's id is the photo's name ("train_00001"). A label without a photo is listed and `missing` at load; a photo
    without a label is listed without one. Gender, race and age are the source's `traits`.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which photos.

        Attributes:
            root: The folder `basic`, or one above it; or the mirror's `DATASET`.
            pool: The pool's name in every key.
            version: Whole photos cut around the labelled face, or the published faces of 100 × 100, which are too
                small to edit.
            split: Only this one; empty for both.
            margin: Side of the crop from an original, over the longer side of the face box (ours).
            licence: What the card says.
        """

        root: str = Field(min_length=1)
        pool: str = "rafdb"
        version: Literal["original", "aligned"] = "original"
        split: Literal["", "train", "test"] = ""
        margin: float = Field(default=2.2, ge=1, le=6)
        licence: str = LICENCE

    local = ("root",)
    redistributable = False
    params: Params

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self._boxes: dict[str, str] | None = None
        self._points: dict[str, str] = {}

    def list(self) -> Iterable[Source]:
        """Every photo of the version and split, sorted by id. Opens no photo.

        Raises:
            ConfigError: The root is no folder, or holds no such photo.
        """
        params = self.params
        root = open_root(params.pool, params.root)
        found = read(root)
        files = {filed.name: filed for filed in reversed(found.files) if filed.version == params.version}
        if not files:
            hint = "expected basic/Image/original/train_00001.jpg and basic/EmoLabel/list_patition_label.txt below it"
            if found.files:
                other = "aligned" if params.version == "original" else "original"
                hint = f"there are only {other} ones: set `version: {other}` to use those"
            raise nothing_usable(params.pool, root, f"no {params.version} photo of RAF-DB", hint)
        if not found.table and not any(filed.label for filed in files.values()):
            hint = "expected EmoLabel/list_patition_label.txt, or the mirror's folders 1 to 7"
            raise nothing_usable(params.pool, root, "no label of RAF-DB", hint)
        self._boxes, self._points = found.boxes, found.manual
        names = [name for name in {*files, *found.table} if params.split in ("", split_of(name))]
        if not names:
            raise nothing_usable(params.pool, root, f"no photo of split '{params.split}'", "leave `split` empty")
        return [self._source(root, name, files.get(name), found.table.get(name)) for name in sorted(names)]

    def load(self, source: Source) -> Loaded:
        """An original cut around the labelled face, or the aligned face as it is; `file_sha256` is the whole photo's.

        The face is that of the bounding box file (since v1.1 of the set), else the one around the five points of the
        manual annotation. Without either nobody knows which of several faces the label is of.

        Raises:
            UnreadableImage: `missing`, `no_box`, `bad_box` (not four numbers, or outside the photo), or a reason of
                `read_inside` or `decode`.
        """
        root = Path(self.params.root)
        data = read_inside(root, unescape(source.path))
        pixels, digest = decode(data), hashlib.sha256(data).hexdigest()
        if self.params.version == "aligned":
            return Loaded(pixels, digest)
        box, whence = self._box(root, source.key.source_id)
        height, width = pixels.shape[:2]
        left, top, across, down = box.tolist()
        if not np.isfinite(box).all() or across <= 0 or down <= 0:
            raise UnreadableImage("bad_box", f"the {whence} of '{source.key.source_id}' is empty")
        if left >= width or top >= height or left + across <= 0 or top + down <= 0:
            raise UnreadableImage(
                "bad_box", f"the {whence} of '{source.key.source_id}' lies outside {width} × {height}"
            )
        return Loaded(cut_around(pixels, box, self.params.margin), digest, f"cut around the {whence}")

    def _box(self, root: Path, name: str) -> tuple[NDArray[np.float32], str]:
        """(4,) x, y, width, height of the labelled face, and where it is from."""
        if self._boxes is None:  # a worker loads without having listed
            found = read(root)
            self._boxes, self._points = found.boxes, found.manual
        if name in self._boxes:
            path = self._boxes[name]
            try:
                text = read_inside(root, path).decode("utf-8-sig")
                corners = np.array([float(word) for word in text.split()], np.float32)
            except ValueError as error:
                raise UnreadableImage("bad_box", f"'{escape(path)}': {error}") from error
            if corners.shape != (4,):
                raise UnreadableImage("bad_box", f"'{escape(path)}' has {corners.size} numbers, not four")
            return np.concatenate([corners[:2], corners[2:] - corners[:2]]), "bounding box"
        known = attributes(root, self._points[name]) if name in self._points else Attributes()
        if known.points is None:
            hint = "no bounding box and no five points, so nobody knows which face is meant"
            raise UnreadableImage("no_box", f"'{name}': {hint}")
        low, high = known.points.min(axis=0), known.points.max(axis=0)
        side = float(max(high - low)) * _POINTS_TO_BOX
        return np.array([*((low + high) / 2 - side / 2), side, side], np.float32), "five points"

    def _source(self, root: Path, name: str, filed: Filed | None, row: Labelled | None) -> Source:
        params = self.params
        tail = "_aligned" if params.version == "aligned" else ""
        return Source(
            key=Key(params.pool, name),
            path=filed.path if filed else f"basic/Image/{params.version}/{name}{tail}.jpg",
            stamp=self._stamp(root, name, filed) if filed else "",
            label=row.label if row else filed.label if filed else None,
            split=split_of(name),
            licence=params.licence,
            traits=attributes(root, self._points[name]).traits if name in self._points else (),
        )

    def _stamp(self, root: Path, name: str, filed: Filed) -> str:
        """Of the photo and, for originals, of the box it is cut by."""
        own = stamp(root / unescape(filed.path), self.params.margin)
        box = (self._boxes or {}).get(name) or self._points.get(name)
        return f"{own} {stamp(root / box)}" if box and self.params.version == "original" else own
