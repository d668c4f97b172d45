"""What a picture is known by: its exact pixels, and hashes that survive re-encoding, scaling and mirroring."""

import cv2
import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tasks.engine.fingerprint import sha256
from tasks.faces import Face
from tasks.faces.geometry import align


def pixel_sha256(pixels: NDArray[np.uint8]) -> str:
    """Hash of a picture's shape and (H, W, 3) uint8 pixels, whatever file they came from."""
    return sha256(repr(pixels.shape).encode() + pixels.tobytes())


def perceptual_hash(pixels: NDArray[np.uint8]) -> str:
    """The 64-bit DCT hash of RGB (H, W, 3) uint8 pixels (`imagehash.phash`), 16 hexadecimal digits."""
    # Shrinking by area averaging first makes the library's own resize cheap and changes few bits.
    small = cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), (128, 128), interpolation=cv2.INTER_AREA)
    return str(imagehash.phash(Image.fromarray(small)))


def picture_hashes(pixels: NDArray[np.uint8]) -> dict[str, str]:
    """The fields of a `Portrait` that follow from RGB (H, W, 3) uint8 pixels alone."""
    return {
        "pixel_sha256": pixel_sha256(pixels),
        "phash": perceptual_hash(pixels),
        "mirror_phash": perceptual_hash(np.ascontiguousarray(pixels[:, ::-1])),
    }


def face_hashes(pixels: NDArray[np.uint8], face: Face) -> dict[str, str]:
    """The fields of a `Portrait` that follow from the aligned face, which no crop around it changes."""
    aligned = align(pixels, face)
    return {
        "face_phash": perceptual_hash(aligned),
        "face_mirror_phash": perceptual_hash(np.ascontiguousarray(aligned[:, ::-1])),
    }
