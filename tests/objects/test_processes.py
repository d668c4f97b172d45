"""A build in a bucket by processes of its own: the same bytes as in a folder, and each process asks for its share."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from flows.processes import processes
from tasks import pipeline
from tasks.dataset.write import publish
from tasks.engine.bucket import Bucket
from tasks.engine.places import place
from tasks.engine.rows import Commit
from tasks.engine.store import Store
from tasks.rounds import Job
from tests import fakes
from tests.objects.conftest import elsewhere

pytestmark = pytest.mark.s3
SETTINGS = fakes.config("shard_size=2", sources=9)


def work(job: Job) -> dict[str, Commit]:
    """As `tasks.pipeline.work`, in a process that pytest never saw."""
    assert job.workspace.startswith("s3://")
    fakes.install()
    return pipeline.work(job)


def test_processes_make_the_same_in_a_bucket(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = fakes.build(tmp_path / "local", SETTINGS)
    pipeline._worker.cache_clear()
    with processes(2) as held, ThreadPoolExecutor(2) as threads, Store(place(bucket.url)).lock():
        run = pipeline.open_run(place(bucket.url), SETTINGS)

        def mapped(jobs: Sequence[Job]) -> Iterable[tuple[Job, dict[str, Commit]]]:
            yield from zip(jobs, threads.map(lambda job: held.do(partial(work, job)), jobs), strict=True)

        assert fakes.tree(publish(run, pipeline.build(run, mapped)).folder) == local.tree()
    elsewhere(monkeypatch, tmp_path / "other")
    assert fakes.tree(place(f"{bucket.url}/datasets/fakes/v1", everything=True)) == local.tree()
