"""Makes portraits of pictures with the models of a screening."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.portraits import Portrait
from schemas.records import Key
from schemas.screening import ScreenMeasure
from schemas.sections import Adapter
from tasks.engine.fingerprint import fingerprint
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.leakage.hashes import face_hashes, picture_hashes

# Rises when equal pictures would get other portraits from equal models.
VERSION: Final = 1
# Decoded pictures held at once, per thread.
_AHEAD: Final = 4

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Eye:
    """A face analyzer and an identity model, by name."""

    faces: Adapter
    identity: Adapter

    @classmethod
    def of(cls, measure: ScreenMeasure) -> "Eye":
        """The models that screening measures with."""
        return cls(measure.faces, measure.identity)

    @cached_property
    def model(self) -> str:
        """What vectors of this eye are signed with: the identity model's name, and a digest of both models.

        The analyzer counts too, since it aligns the face: SFace vectors of one photo aligned by two detectors had
        a mean cosine of .967.
        """
        faces = ANALYZERS.identity(self.faces.name, self.faces.params)
        identity = EMBEDDERS.identity(self.identity.name, self.identity.params)
        return f"{self.identity.name} {fingerprint(VERSION, faces, identity)[:12]}"

    def look(self, known: Portrait, pixels: Pixels) -> Portrait:
        """A portrait with everything that its RGB (H, W, 3) uint8 pixels tell; of several faces the largest."""
        found = picture_hashes(pixels)
        picture = Picture(f"pixels {found['pixel_sha256']}", pixels)
        faces = ANALYZERS.get(self.faces.name, self.faces.params).analyze(picture)
        if not faces:
            return known.model_copy(update=found | {"lacking": "no face found"})
        vector = EMBEDDERS.get(self.identity.name, self.identity.params).embed(picture, faces[0])
        found |= face_hashes(pixels, faces[0])
        made = {"embedding": vector.astype("<f4").tobytes(), "model": self.model, "lacking": ""}
        return known.model_copy(update=found | made)

    def look_at_all(
        self, known: dict[Key, Portrait], pictures: Iterable[tuple[Key, Pixels | str]], threads: int
    ) -> Iterator[Portrait]:
        """Portraits of pictures as they come, a few at a time; where there is none, a word says why.

        Args:
            known: What is known of each without its picture.
            pictures: Key → pixels, or why there are none.
            threads: How many look at once.
        """

        def look(item: tuple[Key, Pixels | str]) -> Portrait:
            key, pixels = item
            if isinstance(pixels, str):
                # What was stored of a picture that is gone still holds.
                return known[key] if known[key].embedding else known[key].model_copy(update={"lacking": pixels})
            return self.look(known[key], pixels)

        coming = iter(pictures)
        with ThreadPoolExecutor(threads) as pool:
            while batch := list(islice(coming, _AHEAD * threads)):
                yield from pool.map(look, batch)
