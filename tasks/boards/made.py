"""Pictures that are made to test people: a photo as an edit that changed nothing, and an edit with another's face."""

from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from tasks.engine.decode import encode_png
from tasks.engine.fingerprint import sha256
from tasks.engine.images import ImageStore
from tasks.engine.store import Store
from tasks.faces import FaceAnalyzer
from tasks.faces.geometry import FACE_OVAL, FIVE_POINTS, face_mask, similarity

# Apart from the pictures that rows name: a withdrawal deletes those that no row names.
FOLDER: Final = "review/made"
# So coarse that bytes and size of the file differ from the photo's, and nobody sees it.
QUALITY: Final = 92


def names_of(image: str) -> tuple[str, str]:
    """Where in the workspace a picture of a question may lie."""
    return ImageStore.path(image), f"{FOLDER}/{image}.png"


def path_of(store: Store, image: str) -> Path:
    """Where a picture of a question lies: among those of the stages, or among the made ones."""
    name, made = names_of(image)
    return store.local(name if store.exists(name) else made)


def forget_made(store: Store, image: str) -> None:
    """Delete a made picture; a picture of a stage is none."""
    store.remove(f"{FOLDER}/{image}.png")


class Maker:
    """Makes pictures and keeps them in the workspace.

    Args:
        store: The workspace.
        images: The pictures of the stages.
        analyzer: Finds faces.
    """

    def __init__(self, store: Store, images: ImageStore, analyzer: FaceAnalyzer) -> None:
        self._store = store
        self._images = images
        self._analyzer = analyzer

    def copied(self, image: str) -> str:
        """A picture as an editor returns it that does nothing: the same to the eye, not to the byte; its digest."""
        pixels = self._images.get(image).pixels
        _, coded = cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        return self._put(cv2.cvtColor(cv2.imdecode(coded, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))

    def swapped(self, image: str, donor: str) -> str | None:
        """A picture with the face of another one; its digest, or None where one of them shows no face.

        The donor's face is moved, turned and scaled onto the other's (least squares over the oval, eyes, nose and
        mouth corners) and blended in (Pérez et al. 2003), so that light, hair and scene stay.
        """
        into, other = self._images.get(image), self._images.get(donor)
        faces, others = self._analyzer.analyze(into), self._analyzer.analyze(other)
        if not faces or not others:
            return None
        points = [*FACE_OVAL, *FIVE_POINTS]
        matrix = similarity(*(one[0].landmarks[points, :2].astype(np.float64) for one in (others, faces)))
        height, width = into.pixels.shape[:2]
        moved = cv2.warpAffine(other.pixels, matrix, (width, height), flags=cv2.INTER_LINEAR)
        seen = cv2.warpAffine(np.full(other.pixels.shape[:2], 255, np.uint8), matrix, (width, height))
        mask = (face_mask(into.pixels.shape, faces[0]) & (seen == 255)).astype(np.uint8) * 255
        mask[[0, 1, -2, -1], :] = mask[:, [0, 1, -2, -1]] = 0  # blending looks one pixel beyond the mask
        if not mask.any():
            return None
        left, top, wide, high = cv2.boundingRect(mask)
        centre = (left + wide // 2, top + high // 2)
        return self._put(cv2.seamlessClone(moved, into.pixels.copy(), mask, centre, cv2.NORMAL_CLONE))

    def _put(self, pixels: NDArray[np.uint8]) -> str:
        data = encode_png(pixels)
        digest = sha256(data)
        if not self._store.exists(f"{FOLDER}/{digest}.png"):
            self._store.write(f"{FOLDER}/{digest}.png", data, durable=False)
        return digest
