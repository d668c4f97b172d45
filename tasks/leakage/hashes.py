"""What a picture is known by: its exact pixels, and hashes that survive re-encoding, scaling and mirroring."""

import hashlib

import cv2
import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tasks.faces import Face
from tasks.faces.geometry import align


def pixel_sha256(pixels: NDArray[np.uint8]) -> str:
    """Hash of a picture's shape and (H, W, 3) uint8 pixels, whatever file they came from."""
    digest = hashlib.sha256(repr(pixels.shape).encode())
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.hexdigest()


def perceptual_hashes(pixels: NDArray[np.uint8]) -> tuple[str, str]:
    """The 64-bit DCT hashes of a picture and of its mirror image (`imagehash.phash`), 16 hexadecimal digits each.

    Args:
        pixels: RGB (H, W, 3) uint8.
    """
    # Shrinking by area averaging first makes the library's own resize cheap and changes few bits; and a small picture
    # is mirrored for nothing.
    small = cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), (128, 128), interpolation=cv2.INTER_AREA)
    return str(imagehash.phash(Image.fromarray(small))), str(imagehash.phash(Image.fromarray(cv2.flip(small, 1))))


def picture_hashes(pixels: NDArray[np.uint8]) -> dict[str, str]:
    """The fields of a `Portrait` that follow from RGB (H, W, 3) uint8 pixels alone."""
    phash, mirror_phash = perceptual_hashes(pixels)
    return {"pixel_sha256": pixel_sha256(pixels), "phash": phash, "mirror_phash": mirror_phash}


def face_hashes(pixels: NDArray[np.uint8], face: Face) -> dict[str, str]:
    """The fields of a `Portrait` that follow from the aligned face, which no crop around it changes."""
    phash, mirror_phash = perceptual_hashes(align(pixels, face))
    return {"face_phash": phash, "face_mirror_phash": mirror_phash}
