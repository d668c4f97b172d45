"""DFEW: clips from films, labelled by ten people each; one frame of a clip is a source.

Layout: `Clip/original/<clip>.mp4`, `Clip/clip_224x224/<clip>/` (every frame), `Clip/clip_224x224_16f/<clip>/` (16 by
time interpolation); `EmoLabel_DataSplit/{train,test}(single-labeled)/set_{1..5}.csv`; `Annotation/annotation.xlsx`.
Hyphens, underscores, folders in between and the padding of frame names do not matter.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, Field

from schemas import sections
from schemas.records import Key, Source
from tasks.engine.decode import decode
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.registry import Adapter
from tasks.sources import Loaded
from tasks.sources.dfew_tables import Tables
from tasks.sources.dfew_tree import MEDIA, read, share_of
from tasks.sources.folder import escape, read_inside, unescape
from tasks.sources.frames import Frame, Policy, best_frame, frame_names, spread, video_frames, with_face
from tasks.sources.trees import Filed, Labelled, cut_around, nothing_usable, open_root, stamp

LICENCE: Final = "DFEW licence: non-commercial research and education only, no redistribution"


class DfewPool(Adapter):
    """A user's own copy of DFEW.

    A source's id is `<clip>@<frame policy>` ("00012@apex"): listing opens no clip, so the frame is known only once it
    is loaded, and then told by `Loaded.note`. Every clip with a single label is listed; one without a file (466 were
    lost to face detection in the aligned versions) is `missing` at load. Labels are those of the fold's CSVs; the
    share of the ten votes that the label has is its confidence.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which clips, and which frame of each.

        Attributes:
            root: The folder with `Clip`, `EmoLabel_DataSplit` and `Annotation`, or one above it.
            pool: The pool's name in every key.
            fold: Which of the five train/test splits.
            split: Only this one; empty for both.
            media: What pictures are taken from; `auto` is the first of original, clip_224x224, clip_224x224_16f of
                which the root holds a clip, for all clips alike. Only originals are large enough to edit well.
            frame: `apex`, `sharpest` or `middle`, see `frames.best_frame`.
            max_frames: How many frames of a clip are looked at, evenly spread (ours: as many as the authors' own 16);
                null for all.
            min_vote_share: Clips whose label has a smaller share of the votes are not listed, 0..1. Above 0 a clip
                without votes is not listed either.
            unlabelled: Whether clips without a single label are listed too, for the label panel.
            margin: Side of the crop from an original, over the longer side of the face (ours).
            faces: Face analyzer that finds the face and its strength.
            licence: What the card says.
        """

        root: str = Field(min_length=1)
        pool: str = "dfew"
        fold: int = Field(default=1, ge=1, le=5)
        split: Literal["", "train", "test"] = ""
        media: Literal["auto", "original", "clip_224x224", "clip_224x224_16f"] = "auto"
        frame: Policy = "apex"
        max_frames: int | None = Field(default=16, ge=1)
        min_vote_share: float = Field(default=0.0, ge=0, le=1)
        unlabelled: bool = False
        margin: float = Field(default=2.2, ge=1, le=6)
        faces: sections.AdapterField = sections.Adapter(name="mediapipe")
        licence: str = LICENCE

    weights = ("yunet", "face_landmarker")
    local = ("root",)
    redistributable = False
    params: Params

    def list(self) -> Iterable[Source]:
        """Every clip of the fold and split, sorted by id; no clip is opened.

        Raises:
            ConfigError: The root is no folder, or holds no such clip, no labels for the fold, or no votes where
                `min_vote_share` asks for them.
        """
        params = self.params
        root = open_root(params.pool, params.root)
        files, tables, _ = read(root)
        medium = self._medium(root, files)
        here = {filed.name: filed for filed in reversed(files) if filed.version == medium}
        labelled = self._labelled(root, tables)
        if params.unlabelled and not params.split:
            labelled |= {name: Labelled(None, "") for name in here if name not in labelled}
        if not here.keys() & labelled.keys():
            raise nothing_usable(
                params.pool, root, "no clip that a label names", "are clips and labels of the same set?"
            )
        return [self._source(name, labelled[name], medium, here.get(name)) for name in sorted(labelled)]

    def load(self, source: Source) -> Loaded:
        """The chosen frame: of an original the face with its surroundings, of an aligned clip the frame as it is.

        An original without a face gives the whole frame nearest its middle, for screening to reject. `file_sha256` is
        that of the video, or of the frame's file; `note` says which frame it was.

        Raises:
            UnreadableImage: `missing`, `empty`: a folder without frames; or a reason of `read_inside`, `decode` or
                `video_frames`. Unreadable frames of a folder are passed over as long as one can be read.
        """
        path = unescape(source.path)
        root = Path(self.params.root)
        return self._from_folder(root, path) if (root / path).is_dir() else self._from_video(root, path)

    def _from_video(self, root: Path, path: str) -> Loaded:
        params = self.params
        data = read_inside(root, path)
        frames, count = video_frames(root / path, lambda count: spread(count, params.max_frames))
        chosen = best_frame([with_face(frame, params.faces) for frame in frames], params.frame, count)
        face, pixels = chosen.face, chosen.pixels
        note = f"frame {chosen.number} of {count}" + ("" if face else ", no face in any looked at")
        return Loaded(cut_around(pixels, face.box, params.margin) if face else pixels, _sha256(data), note)

    def _from_folder(self, root: Path, path: str) -> Loaded:
        params = self.params
        names = frame_names(root / path)
        frames: list[Frame] = []
        hashes: dict[int, str] = {}
        trouble: UnreadableImage | None = None
        for place in spread(len(names), params.max_frames):
            try:
                data = read_inside(root, f"{path}/{names[place]}")
                frames.append(Frame(place + 1, decode(data)))
                hashes[place + 1] = _sha256(data)
            except UnreadableImage as error:
                trouble = trouble or error
        if not frames:
            raise trouble or UnreadableImage("empty", f"no frame in '{escape(path)}'")
        if params.frame != "middle":
            frames = [with_face(frame, params.faces) for frame in frames]
        chosen = best_frame(frames, params.frame, len(names))
        note = f"frame {chosen.number} of {len(names)}, {escape(names[chosen.number - 1])}"
        return Loaded(chosen.pixels, hashes[chosen.number], note)

    def _medium(self, root: Path, files: Sequence[Filed]) -> str:
        params = self.params
        present = [medium for medium in MEDIA if any(filed.version == medium for filed in files)]
        if params.media != "auto" and params.media not in present and present:
            raise nothing_usable(params.pool, root, f"no clip of '{params.media}'", f"there is: {', '.join(present)}")
        if not present:
            hint = "expected Clip/original/*.mp4, Clip/clip_224x224/*/ or Clip/clip_224x224_16f/*/ below it"
            raise nothing_usable(params.pool, root, "no clip of DFEW", hint)
        return present[0] if params.media == "auto" else params.media

    def _labelled(self, root: Path, tables: Tables) -> dict[str, Labelled]:
        """What is listed, by clip."""
        params = self.params
        if params.min_vote_share > 0 and not tables.votes:
            hint = "bring Annotation/annotation.xlsx, or leave min_vote_share at 0"
            raise nothing_usable(params.pool, root, "min_vote_share is set, and there are no votes", hint)
        fold = tables.folds.get(params.fold, {})
        rows = {name: Labelled(label, split) for split in fold for name, label in fold[split].items()}
        if not rows and not tables.folds and not params.split:
            rows = {name: Labelled(votes.label, "") for name, votes in tables.votes.items() if votes.label}
        rows = {name: row for name, row in rows.items() if params.split in ("", row.split)}
        if not rows:
            hint = "expected EmoLabel_DataSplit/{train,test}(single-labeled)/set_1.csv to set_5.csv below it"
            raise nothing_usable(params.pool, root, f"no label of fold {params.fold} {params.split}".rstrip(), hint)
        rows = {name: Labelled(row.label, row.split, share_of(tables, name, row.label)) for name, row in rows.items()}
        least = params.min_vote_share
        kept = {name: row for name, row in rows.items() if least == 0 or (row.confidence or 0) >= least}
        if not kept:
            raise ConfigError(f"pool '{params.pool}': no clip has a vote share of {least:g}", "lower min_vote_share")
        return kept

    def _stamp(self, filed: Filed) -> str:
        params = self.params
        path = Path(params.root) / unescape(filed.path)
        return stamp(path, params.margin, params.max_frames, params.faces.model_dump_json())

    def _source(self, name: str, row: Labelled, medium: str, filed: Filed | None) -> Source:
        params = self.params
        return Source(
            key=Key(params.pool, f"{name}@{params.frame}"),
            path=filed.path if filed else f"Clip/{medium}/{name}{'.mp4' if medium == 'original' else ''}",
            stamp=self._stamp(filed) if filed else "",
            label=row.label,
            label_confidence=row.confidence,
            split=row.split,
            clip=name,
            licence=params.licence,
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
