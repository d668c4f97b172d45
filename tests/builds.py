"""Whole builds with the embedded adapters, without an orchestrator."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from schemas.config import BuildConfig
from tasks.engine.rows import Commit
from tasks.pipeline import Run, build, open_run, work
from tasks.rounds import Job

LABEL_PANEL = [{"name": name, "params": {"granularity": "fine"}} for name in ("fer", "blendshapes")]


def config(**fields: Any) -> BuildConfig:
    """The demo's config: sample photos, unless `pools` says otherwise."""
    return BuildConfig.model_validate(
        {"name": "test", "shard_size": 2, "screen": {"measure": {"label_panel": LABEL_PANEL}}} | fields
    )


def threads(jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Commit]]]:
    with ThreadPoolExecutor(2) as pool:
        yield from zip(jobs, pool.map(work, jobs), strict=True)


def built(workspace: Path, settings: BuildConfig) -> tuple[Run, list[dict[str, Commit]]]:
    """A run, brought up to date."""
    run = open_run(workspace, settings)
    return run, build(run, threads)
