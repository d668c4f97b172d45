"""The tests' instant adapters without their troubles: every photo can be read, shows one face, and is edited."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.expressions import EXPRESSIONS
from schemas.records import Source
from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.faces.geometry import BLENDSHAPES
from tasks.sources import POOLS, Loaded
from tests import fakes

# By a number's last digit: what the photo has in common with the one before.
PLANTED: Final = {3: "file", 6: "pixels", 9: "near"}


class CountingWorld(fakes.World):
    """Counts what is asked and keeps no list of it, which would be the largest thing in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.tally: Counter[str] = Counter()

    def ask(self, role: str, subject: str) -> None:
        self.tally[role] += 1


class ReadablePool(fakes.FakePool):
    """Every photo can be read and has a label, and is like no other unless `duplicates` are planted."""

    class Params(fakes.FakePool.Params):
        """`duplicates`: of ten photos three show what the one before shows: two its very pixels (once in an equal
        file, once in another), one nearly them."""

        duplicates: bool = False

    params: Params

    def _source(self, number: int) -> Source:
        return super()._source(number).model_copy(update={"label": EXPRESSIONS[number % 7]})

    def load(self, source: Source) -> Loaded:
        fakes.world().ask("load", source.key.source_id)
        number = int(source.key.source_id)
        kind = PLANTED.get(number % 10, "") if self.params.duplicates else ""
        shown = number - 1 if kind else number
        pixels = fakes.draw(fakes.Code(shown, EXPRESSIONS[shown % 7]), self.params.side)
        if kind == "near":
            pixels = fakes.written(pixels + np.uint8(1), fakes.Code(number, EXPRESSIONS[number % 7]))
        return Loaded(pixels, f"{shown if kind == 'file' else number:064x}")


class OneFace(fakes.FakeAnalyzer):
    """The fake's face, always and alone."""

    def analyze(self, picture: Picture) -> tuple[Face, ...]:
        fakes.world().ask("analyze", picture.digest)
        side = picture.pixels.shape[0]
        code = fakes.read(picture)
        shapes = dict.fromkeys(("_neutral", *BLENDSHAPES), 0.0)
        for place in range(6):
            shapes[BLENDSHAPES[7 * place + EXPRESSIONS.index(code.expression)]] = code.strength / 255
        box = np.array([0.28, 0.22, 0.44, 0.56], np.float32) * side
        return (Face(box, 0.9, fakes.LANDMARKS * side, shapes, 0.0, 0.0, 0.0),)


class Embedder(fakes.FakeEmbedder):
    """128 numbers, as SFace gives."""

    def embed(self, picture: Picture, face: Face) -> NDArray[np.float32]:
        fakes.world().ask("embed", picture.digest)
        vector = np.random.default_rng(fakes.read(picture).number).standard_normal(128)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


class Editor(fakes.FakeEditor):
    """Paints a mouth at the photo's own size; refuses nothing."""

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> list[NDArray[np.uint8]]:
        return [self._paint(request) for request in requests]

    def _paint(self, request: EditRequest) -> NDArray[np.uint8]:
        code = fakes.read(request.source)
        fakes.world().ask("edit", "")
        pixels = request.source.pixels.copy()
        side, place = pixels.shape[0], EXPRESSIONS.index(request.target)
        pixels[side * 5 // 8 : side * 6 // 8, side * 3 // 8 : side * 5 // 8] = 40 + 20 * place
        return fakes.written(pixels, fakes.Code(code.number, request.target, 200, 1 + request.seed % 255))


def install() -> CountingWorld:
    """Register them as "fake", beside the tests' voters and describer."""
    fakes.install()
    for registry, adapter in ((POOLS, ReadablePool), (ANALYZERS, OneFace), (EMBEDDERS, Embedder), (EDITORS, Editor)):
        registry.add("fake", adapter)
    world = CountingWorld()
    fakes._world = world
    return world
