"""Pictures as models outside are shown them: scaled down, encoded, as data URLs; each made once per size."""

import base64
import threading
from collections import OrderedDict
from typing import Final, Literal

import cv2
import numpy as np

from tasks.engine.images import Picture

CACHE_BYTES: Final = 64 * 2**20
JPEG_QUALITY: Final = 95
_cache: Final[OrderedDict[tuple[str, int, str], str]] = OrderedDict()
_lock: Final = threading.Lock()
# Whoever wants a picture that is being encoded waits for it; others do not.
_encoding: Final = tuple(threading.Lock() for _ in range(16))


def data_url(picture: Picture, side: int, encoding: Literal["jpeg", "png"]) -> str:
    """`data:image/...;base64,...` of a picture, the longer side at most `side` pixels. The last 64 MiB are kept."""
    key = (picture.digest, side, encoding)
    with _encoding[int(picture.digest[:2], 16) % len(_encoding)]:
        with _lock:
            if key in _cache:
                _cache.move_to_end(key)
                return _cache[key]
        url = f"data:image/{encoding};base64,{base64.b64encode(_encode(picture, side, encoding)).decode()}"
        with _lock:
            _cache[key] = url
            while sum(map(len, _cache.values())) > CACHE_BYTES and len(_cache) > 1:
                _cache.popitem(last=False)
    return url


def _encode(picture: Picture, side: int, encoding: str) -> bytes:
    pixels = cv2.cvtColor(picture.pixels, cv2.COLOR_RGB2BGR)
    height, width = pixels.shape[:2]
    if (scale := side / max(height, width)) < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    # Full colour resolution: the inside of lips and eyes is small.
    options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x111111]
    done, data = cv2.imencode(f".{encoding}", pixels, options if encoding == "jpeg" else [])
    if not done:
        raise ValueError(f"OpenCV could not encode {pixels.shape} as {encoding}")
    return data.tobytes()
