"""Scoring runs on drawn photos, as tests make them: adapters, a judge's answers, configs, and a run without Prefect."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.outcomes import FailureKind
from schemas.score_config import ScoreConfig
from schemas.score_manifest import ScoreManifest
from schemas.scoring import ScoreRow
from tasks.editors import EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.registry import Adapter
from tasks.engine.store import Store
from tasks.leaderboard.entrants import ScoredRun, score_rows
from tasks.scoring.results import Results, finish
from tasks.scoring.run import Mapper, Place, Work, measure, open_scoring
from tasks.scoring.table import read_manifest
from tests.doors import routes
from tests.providers.loopback import Asked, Loopback

Pixels = NDArray[np.uint8]


class Mean(Adapter):
    """The mean difference of two crops."""

    asked = 0

    def between(self, one: Pixels, other: Pixels) -> float:
        Mean.asked += 1
        return float(np.abs(one.astype(float) - other.astype(float)).mean() / 255)


class Odd(Adapter):
    """By the target: refuses, gives another size, a flat colour, somebody without a face, or the source."""

    uses_seed = False

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[Pixels | ItemFailed]:
        return [self._edit(request) for request in requests]

    def _edit(self, request: EditRequest) -> Pixels | ItemFailed:
        kind = int(request.key.source_id) % 4
        pixels = request.source.pixels
        if kind == 0:
            return ItemFailed(FailureKind.REFUSED, "no")
        if kind == 1:
            return np.zeros_like(pixels)
        return pixels.repeat(2, axis=0) if kind == 2 else pixels.copy()


def score_of(asked: Asked) -> str:
    """PQ 9; SC and GTA by the pictures' first bytes, so that they differ."""
    told = 9.0 if len(asked.pictures) == 1 else sum(asked.pictures[0][-40:]) % 90 / 10
    return json.dumps({"reason": f"{len(asked.pictures)} seen", "score": told})


def config(dataset: Path, provider: Loopback | None, **changes: Any) -> ScoreConfig:
    judges = (
        [{"name": "mllm", "params": {"name": name, "routes": routes(provider, name)}} for name in ("Ada", "Bo")]
        if provider
        else []
    )
    values: dict[str, Any] = {
        "name": "scores",
        "dataset": str(dataset),
        "editors": [{"called": "fake", "adapter": "fake"}, {"called": "plain", "adapter": "fake-plain"}],
        "judges": judges,
        "shard_size": 4,
        "calls": {"backoff_s": 0.01, "attempts": 2},
        "measure": {"faces": "fake", "identity": "fake", "distance": "mean"},
        "max_failed": 1.0,
    }
    return ScoreConfig.model_validate(values | changes)


def in_threads(count: int) -> Mapper:
    def mapper(work: Work, places: Sequence[Place], tick: Callable[[], None]) -> None:
        with ThreadPoolExecutor(count) as pool:
            for _ in pool.map(work, places):
                tick()

    return mapper


def score(workspace: Path, settings: ScoreConfig, threads: int = 1) -> Results:
    with Store(workspace).lock():
        run = open_scoring(workspace, settings)
        try:
            measure(run, in_threads(threads), lambda *_: None)
            return finish(run)
        finally:
            run.call.close()


def read_scores(folder: Path) -> tuple[ScoreManifest, list[ScoreRow]]:
    manifest = read_manifest(folder)
    return manifest, list(score_rows(ScoredRun(folder, manifest)))


def rows_of(results: Results) -> list[ScoreRow]:
    return read_scores(results.table.parent)[1]


def files(results: Results) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in results.table.parent.iterdir()}
