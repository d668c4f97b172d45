"""Instant adapters: drawn photos whose first two pixels say what they show, and models that read it there.

Everything follows from a source's number, so that two builds agree wherever they run. `install` registers all under
the name "fake" and gives a new `World`, where tests count, bend and break things.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from flows.options import assign, validate
from schemas.answers import Ballot
from schemas.config import BuildConfig
from schemas.expressions import EXPRESSIONS, POLARITY, Expression, Polarity
from schemas.outcomes import Abstention, FailureKind
from schemas.records import Key, Source
from tasks import pipeline
from tasks.dataset.write import Published, publish
from tasks.describers import DESCRIBERS
from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed, UnreadableImage
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.engine.rows import Commit
from tasks.engine.store import Store
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.faces.geometry import BLENDSHAPES
from tasks.pipeline import Run
from tasks.rounds import Job, Mapper
from tasks.sources import POOLS, Loaded
from tasks.voters import VOTERS
from tests.drawn import LANDMARKS, SIDE, Code, Pixels, draw, read, written


@dataclass
class World:
    """What the fakes look at and write down.

    Attributes:
        asked: One entry per piece of work: its role ("load", "analyze", "embed", "edit", "vote", "caption",
            "instruct") and what it was about (a source's id, pictures by digest, a target). Nothing is remembered
            between askings, as real models do remember faces.
        extra: Sources the pool lists beyond its parameter `sources`.
        reverse: Whether the pool lists them backwards.
        stamps: Stamps of changed sources, by id.
        repainted: Ids of sources whose file was replaced by another picture.
        trouble: Given role and subject, an exception to raise instead of an answer, or None.
    """

    asked: list[tuple[str, str]] = field(default_factory=list)
    extra: int = 0
    reverse: bool = False
    stamps: dict[str, str] = field(default_factory=dict)
    repainted: set[str] = field(default_factory=set)
    trouble: Callable[[str, str], Exception | None] | None = None

    def ask(self, role: str, subject: str) -> None:
        """Write one piece of work down, and break it if the test says so."""
        self.asked.append((role, subject))  # atomic in CPython
        problem = self.trouble(role, subject) if self.trouble else None
        if problem is not None:
            raise problem

    def counts(self) -> Counter[str]:
        """How much was asked of every role."""
        return Counter(role for role, _ in self.asked)


_world = World()


def world() -> World:
    """The world that the fakes live in now."""
    return _world


def install() -> World:
    """Register all fakes and give them a new world."""
    global _world  # noqa: PLW0603 - one per process, as registries are
    _world = World()
    POOLS.add("fake", FakePool)
    ANALYZERS.add("fake", FakeAnalyzer)
    EMBEDDERS.add("fake", FakeEmbedder)
    EDITORS.add("fake", FakeEditor)
    EDITORS.add("fake-plain", FakePlainEditor)
    DESCRIBERS.add("fake", FakeDescriber)
    VOTERS.add("fake", FakeVoter)
    VOTERS.add("fake-coarse", FakeCoarseVoter)
    return _world


def chance(what: object, sides: int) -> int:
    """A die of so many sides that falls for `what` as it always does."""
    return zlib.crc32(repr(what).encode()) % sides


# -- adapters ---------------------------------------------------------------------------------------------------


class FakePool(Adapter):
    """Sources by number. Some cannot be read, some show another's photo, some have no label."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """`sources`: how many; `side`: of a picture, a multiple of 8."""

        pool: str = "fake"
        sources: int = Field(default=12, ge=1, le=60_000)
        side: int = Field(default=SIDE, ge=32, multiple_of=8)

    params: Params

    def list(self) -> Iterable[Source]:
        numbers = range(self.params.sources + _world.extra)
        return [self._source(number) for number in (reversed(numbers) if _world.reverse else numbers)]

    def _source(self, number: int) -> Source:
        id_ = f"{number:05d}"
        return Source(
            key=Key(self.params.pool, id_),
            path=f"{id_}.png",
            stamp=_world.stamps.get(id_, ""),
            label=None if number % 5 == 4 else EXPRESSIONS[number % 7],
            label_confidence=0.6 + number % 9 / 20,
            clip=f"clip-{number // 3}",
            movie=f"movie-{number // 8}",
            licence="CC0",
        )

    def load(self, source: Source) -> Loaded:
        id_ = source.key.source_id
        _world.ask("load", id_)
        number = int(id_)
        if number % 13 == 7:
            raise UnreadableImage("broken", "drawn that way")
        shown = number - 1 if number % 17 == 1 else number
        pixels = draw(Code(shown, EXPRESSIONS[shown % 7]), self.params.side)
        pixels[0, 2, 0] ^= id_ in _world.repainted
        return Loaded(pixels, sha256(pixels.tobytes()))


class FakeAnalyzer(Adapter):
    """One face in the middle, sometimes none, sometimes a second one."""

    def analyze(self, picture: Picture) -> tuple[Face, ...]:
        _world.ask("analyze", picture.digest)
        code = read(picture)
        side = picture.pixels.shape[0]
        shapes = dict.fromkeys(("_neutral", *BLENDSHAPES), 0.0)
        for place in range(6):
            shapes[BLENDSHAPES[7 * place + EXPRESSIONS.index(code.expression)]] = code.strength / 255
        if code.number % 19 == 8 or chance(("face", code.number, code.salt), 23) == 0:
            return ()
        face = Face(
            box=np.array([0.28, 0.22, 0.44, 0.56], np.float32) * side,
            score=0.9,
            landmarks=LANDMARKS * side,
            blendshapes=shapes,
            yaw=float(code.number * 13 % 72 - 36),
            pitch=float(code.number * 7 % 40 - 20),
            roll=0.0,
        )
        if code.number % 6 == 2:
            second = Face(face.box * (0.2 + code.number % 5 / 10), 0.8, face.landmarks, shapes, 0.0, 0.0, 0.0)
            return face, second
        return (face,)


class FakeEmbedder(Adapter):
    """Two numbers are one person; an edit is a little less so."""

    def embed(self, picture: Picture, face: Face) -> NDArray[np.float32]:
        _world.ask("embed", picture.digest)
        code = read(picture)
        person = np.random.default_rng(code.number // 2).standard_normal(32)
        drift = np.random.default_rng(1_000_000 + code.salt).standard_normal(32) * (0.4 if code.salt else 0.0)
        vector = person + drift
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


class FakeEditor(Adapter):
    """Draws a mouth and tints the background, at twice the size; some edits are refused, some come out wrong."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """`strength`: of the new expression."""

        strength: int = Field(default=200, ge=0, le=255)

    params: Params

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[Pixels | ItemFailed]:
        return [self._edit(request) for request in requests]

    def _edit(self, request: EditRequest) -> Pixels | ItemFailed:
        code = read(request.source)
        try:
            _world.ask("edit", f"{code.number}:{request.target}")
        except ItemFailed as error:
            return error
        kind = request.seed % 16
        if kind == 0:
            return ItemFailed(FailureKind.REFUSED, "drawn that way")
        shown = request.source_expression if kind == 1 else request.target
        pixels = request.source.pixels.copy()
        side = pixels.shape[0]
        pixels[:] = pixels + kind // 2  # at most 209 + 7
        if kind != 2:
            pixels[side * 5 // 8 : side * 6 // 8, side * 3 // 8 : side * 5 // 8] = 40 + 20 * EXPRESSIONS.index(shown)
        strength = 10 if kind == 3 else self.params.strength
        pixels = written(pixels, Code(code.number, shown, strength, 1 + request.seed % 255))
        return pixels.repeat(2, axis=0).repeat(2, axis=1)


class FakePlainEditor(FakeEditor):
    """Another editor, that knows no seed: all its attempts at an edit are one picture, and all come out right."""

    uses_seed = False

    def _edit(self, request: EditRequest) -> Pixels | ItemFailed:
        return super()._edit(replace(request, seed=EXPRESSIONS.index(request.target) + 5))


class FakeVoter(Adapter):
    """Reads the expression; now and then errs or abstains."""

    granularity = "fine"

    class Params(BaseModel, extra="forbid", frozen=True):
        """`name` makes another voter of it; `note` changes nothing but the identity."""

        name: str = "a"
        note: str = ""

    params: Params

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        _world.ask("vote", f"{picture.digest}:{self.granularity}-{self.params.name}")
        luck = chance((self.params.name, zlib.crc32(picture.pixels.tobytes())), 12)
        if luck == 0:
            return Ballot(abstained=Abstention.CANNOT_TELL, raw="?")
        shown = EXPRESSIONS[luck % 7] if luck == 1 else read(picture).expression
        return Ballot(answer=self._answer(shown), confidence=0.5 + luck / 24, raw=str(shown))

    def _answer(self, shown: Expression) -> Expression | Polarity:
        return shown


class FakeCoarseVoter(FakeVoter):
    """Names the polarity alone."""

    granularity = "coarse"

    def _answer(self, shown: Expression) -> Expression | Polarity:
        return POLARITY[shown]


class FakeDescriber(Adapter):
    """Says what it reads."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """`word`: the verb of every sentence."""

        word: str = "shows"

    params: Params

    def caption(self, picture: Picture, call: Calls) -> str:
        _world.ask("caption", picture.digest)
        return f"the face {self.params.word} {read(picture).expression}"

    def instruct(self, source: Picture, ground_truth: Picture, call: Calls, mistaken: str = "") -> str:
        _world.ask("instruct", f"{source.digest}:{ground_truth.digest}")
        return f"the face {self.params.word} {read(source).expression}, then {read(ground_truth).expression}"


# -- builds -----------------------------------------------------------------------------------------------------

_BASE: Final = {
    "name": "fakes",
    "pools": [{"name": "fake", "params": {"sources": 12}}],
    "shard_size": 3,
    "max_failed": 1.0,
    "screen": {
        "measure": {
            "faces": "fake",
            "identity": "fake",
            "label_panel": [{"name": "fake", "params": {"name": "l"}}],
            "check_labels": True,
        },
        "cut": {"min_inter_eye_px": 8, "min_sharpness": 20},
    },
    "generate": {"measure": {"editor": "fake"}},
    "verify": {
        "measure": {"panel": ["fake", {"name": "fake", "params": {"name": "b"}}, "fake-coarse"], "faces": "fake"}
    },
    "rank": {"measure": {"faces": "fake", "identity": "fake"}},
    "caption": {"measure": {"describer": "fake"}},
    "instruct": {"measure": {"describer": "fake"}},
}


def config(*sets: str, sources: int = 12) -> BuildConfig:
    """A config that uses the fakes alone, with 12 sources in shards of 3.

    Args:
        sets: Options as `--set` takes them: `rank.cut.top_k=1`.
        sources: How many the pool lists.
    """
    values: dict[str, Any] = BuildConfig.model_validate(_BASE).model_dump(mode="json")
    values["pools"][0]["params"]["sources"] = sources
    for option in sets:
        assign(values, option)
    return validate(values)


@dataclass(frozen=True)
class Built:
    """What a build left, and what it asked the fakes; `published` is None where it was not asked to."""

    run: Run
    done: list[dict[str, Commit]]
    published: Published | None
    asked: list[tuple[str, str]]

    @property
    def counts(self) -> Counter[str]:
        return Counter(role for role, _ in self.asked)

    def tree(self) -> dict[str, bytes]:
        """Every file of the published data set, as it lies there now."""
        assert self.published is not None
        return tree(self.published.folder)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its name there."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def mapper(threads: int) -> Mapper:
    """Maps jobs over so many threads; with one, in this thread."""

    def in_threads(jobs: Sequence[Job]) -> Iterable[tuple[Job, dict[str, Commit]]]:
        if threads == 1:
            yield from ((job, pipeline.work(job)) for job in jobs)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from zip(jobs, pool.map(pipeline.work, jobs), strict=True)

    return in_threads


def build(workspace: Path, config: BuildConfig, threads: int = 1, *, publishing: bool = True) -> Built:
    """Build and publish as the flow does, without Prefect, and as a process that has just started would."""
    pipeline._worker.cache_clear()
    before = len(_world.asked)
    with Store(workspace).lock():
        run = pipeline.open_run(workspace, config)
        done = pipeline.build(run, mapper(threads))
        published = publish(run, done) if publishing else None
    return Built(run, done, published, _world.asked[before:])
