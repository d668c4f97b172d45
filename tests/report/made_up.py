"""A run whose measurements are made up, so that a report of it needs no model: real stages' cuts, fake measures."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from schemas.config import BuildConfig
from schemas.expressions import POLARITY, Expression, Polarity
from schemas.outcomes import Abstention, FailureKind
from schemas.records import (
    Ballots,
    Candidate,
    CaptionText,
    DenseText,
    Fidelity,
    Finalist,
    GroundTruth,
    Key,
    Motion,
    Opinion,
    Photo,
    Source,
    SourceFacts,
    Vote,
)
from schemas.routes import CallSettings
from tasks.caption import Caption
from tasks.engine.calls import Calls
from tasks.engine.execute import Executor
from tasks.engine.images import ImageStore
from tasks.engine.rows import Commit
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed
from tasks.engine.store import Store
from tasks.generate import Generate
from tasks.instruct import Instruct
from tasks.pipeline import CANDIDATES, Run
from tasks.publish import Publish
from tasks.rank import Rank
from tasks.review import Review
from tasks.screen import Screen
from tasks.verify import Verify

HOSTILE = "<script>alert(1)</script>"


def _vote(voter: str, polarity: Polarity | None) -> Vote:
    silent = None if polarity else Abstention.REFUSED
    return Vote(voter=voter, granularity="coarse", polarity=polarity, confidence=0.9, abstained=silent, raw=HOSTILE)


def _coloured(*key: str) -> Any:
    return np.random.default_rng(sum(map(ord, "".join(key)))).integers(0, 255, (40, 60, 3), dtype=np.uint8)


class _Named:
    def identities(self) -> list[Any]:
        return []


class FakeScreen(_Named, Screen):
    """Sources called `no-face…` have none, `broken…` cannot be read."""

    def measure(self, rows: Sequence[Source], ctx: Context) -> Iterator[tuple[Key, SourceFacts | Failed]]:
        for row in rows:
            if row.key.source_id.startswith("broken"):
                yield row.key, SourceFacts(problem="truncated", detail=HOSTILE)
                continue
            picture = ctx.images.put(_coloured(row.key.source_id))
            facts = SourceFacts(image=picture.digest, width=60, height=40, pixel_sha256=picture.digest, phash="0" * 16)
            if not row.key.source_id.startswith("no-face"):
                embedding = np.zeros(4, "<f4").tobytes()
                facts = facts.model_copy(
                    update={"faces": 1, "inter_eye": 60.0, "sharpness": 90.0, "yaw": -3.0, "embedding": embedding}
                )
            yield row.key, facts


MOVED: Final = Motion(dx=0, dy=-9, zoom=1, stretch=1, turn=0, confidence=1)


class FakeGenerate(_Named, Generate):
    """Refuses fear, and moves the picture where it makes it sad."""

    def measure(self, rows: Sequence[Photo], ctx: Context) -> Iterator[tuple[Key, Candidate | Failed]]:
        for row in rows:
            for key in self.owes(row):
                if key.target == Expression.FEAR:
                    yield key, Failed(FailureKind.REFUSED, HOSTILE)
                    continue
                yield (
                    key,
                    Candidate(
                        key=key,
                        source_image=row.image,
                        source_expression=row.expression,
                        image=ctx.images.put(_coloured(row.key.source_id, key.target)).digest,
                        instruction=f"change it to {key.target}",
                        seed=0,
                        raw_width=60,
                        raw_height=40,
                        changed_pixels=0.5,
                        local_change=50.0,
                        motion=MOVED if key.target == Expression.SAD else None,
                    ),
                )


class FakeVerify(_Named, Verify):
    """One voter always right; the other finds disgust happy and will not judge anger."""

    def measure(self, rows: Sequence[Candidate], ctx: Context) -> Iterator[tuple[Key, Ballots | Failed]]:
        for row in rows:
            right = POLARITY[Expression(row.key.target)]
            other = {"disgust": Polarity.POSITIVE, "anger": None}.get(row.key.target, right)
            yield row.key, Ballots(votes=(_vote("fer", right), _vote("blendshapes", other)), faces=1, change=1.0)


class FakeRank(_Named, Rank):
    def measure(self, rows: Sequence[Candidate], ctx: Context) -> Iterator[tuple[Key, Fidelity | Failed]]:
        for row in rows:
            yield row.key, Fidelity(identity=0.5 + len(row.key.target) / 100, background_rmse=3.0)


class FakeCaption(_Named, Caption):
    def measure(self, rows: Sequence[Finalist], ctx: Context) -> Iterator[tuple[Key, CaptionText | Failed]]:
        for row in rows:
            yield row.key, CaptionText(text=f"a face {HOSTILE}")


class FakeReview(_Named, Review):
    """Nobody has looked at sources called `wait…`."""

    def measure(self, rows: Sequence[Finalist], ctx: Context) -> Iterator[tuple[Key, Opinion | Failed]]:
        for row in rows:
            waits = row.key.source_id.startswith("wait")
            yield row.key, Opinion(mode="auto", chosen=None if waits else row.rank == 1, note="nobody looked")


class FakeInstruct(_Named, Instruct):
    def measure(self, rows: Sequence[GroundTruth], ctx: Context) -> Iterator[tuple[Key, DenseText | Failed]]:
        for row in rows:
            yield row.key, DenseText(text=f"raise {HOSTILE}", back_check="not_checked")


def made_up(folder: Path, ids: Sequence[str], shard_size: int = 4) -> tuple[Run, list[dict[str, Commit]]]:
    """A finished run over sources of these ids, all of them neutral."""
    config = BuildConfig.model_validate(
        {"screen": {"cut": {"duplicates": False, "max_per_identity": None}}, "name": "made-up"}
    )
    store = Store(folder)
    images = ImageStore(store)
    context = Context(0, images, Calls(folder / "answers.sqlite", CallSettings()), lambda _: None)
    sources = [Source(key=Key("pool", one), path=one, label=Expression.NEUTRAL, identity=one) for one in ids]
    shards = [
        Shard(number, f"shard-{number}", tuple(sources[start : start + shard_size]))
        for number, start in enumerate(range(0, len(sources), shard_size))
    ]
    stages = [
        kind(getattr(config, kind.name).measure, getattr(config, kind.name).cut)
        for kind in (FakeScreen, FakeGenerate, FakeVerify, FakeRank, FakeCaption, FakeReview, FakeInstruct, Publish)
    ]
    executor = Executor(store, stages, shards, context)
    done: list[dict[str, Commit]] = [{} for _ in shards]
    for shard in shards:
        executor.measure("screen", shard, shard.sources)
    for commits, commit in zip(done, executor.decide_run("screen", done), strict=True):
        commits["screen"] = commit
    done = [executor.run_shard(shard, CANDIDATES, commits) for shard, commits in zip(shards, done, strict=True)]
    for shard, commits in zip(shards, done, strict=True):
        executor.measure("publish", shard, executor.kept("instruct", shard, commits))
    for commits, commit in zip(done, executor.decide_run("publish", done), strict=True):
        commits["publish"] = commit
    return Run(config, store, images, executor), done
