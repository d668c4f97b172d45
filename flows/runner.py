"""The one place where a shard's share of a segment becomes a Prefect task."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows import logs
from flows.crews import Crew, Watching, crew
from flows.parts import Part, Where, parts
from flows.states import answer, in_states
from schemas.forecasts import PilotFound
from tasks.engine.errors import FedbenchError
from tasks.engine.rows import Commit
from tasks.pipeline import Run, work
from tasks.rounds import Job, Mapper

_log = logging.getLogger("fedbench")
Progress = Callable[[str, int, int], None]
Future = PrefectFuture[dict[str, Commit]]
Submit = Callable[[Part, Job], Future]


def _log_progress(segment: str, done: int, total: int) -> None:
    get_run_logger().info("%s: %d of %d shards", segment, done, total)


# Told after every shard: segment, shards done, shards in all. The command line puts a progress bar here.
on_progress: ContextVar[Progress] = ContextVar("on_progress", default=_log_progress)


def _log_pilot(found: PilotFound) -> None:
    told = ", ".join(f"{one.what} {one.measured}" for one in found.compared)
    get_run_logger().info("pilot of %d sources: %s", found.sources, told)


# Told what the pilot found, where the build goes on behind it.
on_pilot: ContextVar[Callable[[PilotFound], None]] = ContextVar("on_pilot", default=_log_pilot)


def _log_batches(words: str) -> None:
    get_run_logger().info(words)


# Told in words how batches of questions to models outside go.
on_batches: ContextVar[Callable[[str], None]] = ContextVar("on_batches", default=_log_batches)


def infrastructure_only(_task: Any, _run: Any, state: Any) -> bool:
    """Retry what the machine did to us; what the work itself says (an error with words) would say it again."""
    try:
        state.result()
    except FedbenchError:
        return False
    except Exception:  # noqa: BLE001 - the question is only whether it is one of ours
        return True
    return False


@task(
    task_run_name="{part}-{shard:05d}",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=1,
    retry_delay_seconds=1,
    retry_condition_fn=infrastructure_only,
)
@in_states
def run_shard(part: str, shard: int, do: Callable[[], dict[str, Commit]]) -> dict[str, Commit]:
    """Do one shard's share of a segment. The workspace, not Prefect, knows what is done; results stay small.

    Args:
        part: The name of the stages that are done, for the task run's.
        shard: The shard's place in the plan, likewise.
        do: Does it. A callable holds its job from Prefect, which would search every row of it for futures.
    """
    started = time.monotonic()
    with logs.about(stage=part, shard=shard):
        commits = do()
        seconds = round(time.monotonic() - started, 3)
        rows = {name: commit.owed for name, commit in commits.items() if name in part.split("-")} or None
        _log.info("%s %05d took %.1f s", part, shard, seconds, extra={"seconds": seconds, "rows": rows})
    return commits


# What the sub-flow under way does. Not in its closure: a flow goes to Ray's workers with every task, pickled.
_doing: ContextVar[Callable[[], list[tuple[Job, dict[str, Commit]]]]] = ContextVar("_doing")


@in_states
def _segment() -> list[tuple[Job, dict[str, Commit]]]:
    return _doing.get()()


@contextmanager
def prefect_mapper(run: Run) -> Iterator[Mapper]:
    """A mapper for `tasks.pipeline.build`: one sub-flow per segment, one task per part of it and shard that is due.

    With threads the segment is one part. Elsewhere it is cut where it asks models outside, which is done here.
    """
    with crew(run) as elsewhere:

        def mapper(jobs: Sequence[Job]) -> Iterable[tuple[Job, dict[str, Commit]]]:
            segment = jobs[0].segment
            name = Part(segment, Where.HERE).name
            token = _doing.set(partial(_map, name, parts(segment, run.config, run.executor.stages), elsewhere, jobs))
            try:
                return answer(
                    flow(name=name, flow_run_name=f"{len(jobs)} shard{'s' * (len(jobs) > 1)}", persist_result=False)(
                        _segment
                    )()
                )
            finally:
                _doing.reset(token)

        yield mapper


def _map(name: str, ways: Sequence[Part], elsewhere: Crew, jobs: Sequence[Job]) -> list[tuple[Job, dict[str, Commit]]]:
    threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=jobs[0].config.workers)
    with threads as here, elsewhere.runner.duplicate() as there:

        def submit(part: Part, job: Job) -> Future:
            named = {"part": part.name, "shard": job.shard.index}
            future: Future
            if part.where is Where.HERE:
                future = here.submit(run_shard, named | {"do": partial(work, job)})
            else:
                with elsewhere.asking(part):
                    future = there.submit(run_shard, named | {"do": elsewhere.bound(work, job)})
            return future

        return _Shards(ways, submit, elsewhere.watching).done(name, jobs)


class _Shards:
    """The shards of a sub-flow on their way through its parts; none waits for another."""

    def __init__(self, ways: Sequence[Part], submit: Submit, watching: Watching) -> None:
        self._ways, self._submit, self._watching = ways, submit, watching
        self._results: list[tuple[Job, dict[str, Commit]]] = []
        self._ready: SimpleQueue[tuple[Future, Job, int]] = SimpleQueue()

    def done(self, name: str, jobs: Sequence[Job]) -> list[tuple[Job, dict[str, Commit]]]:
        """Every job with its commits, once all are done; those that wait for a batch are missing."""
        tell, started, shown = on_progress.get(), time.monotonic(), 0
        tell(name, 0, len(jobs))
        artifact: Any = create_progress_artifact(0.0, key=f"progress-{name}", description=f"{name}: {len(jobs)} shards")
        for job in jobs:
            self._go_on(job, job.done, 0)
        while len(self._results) < len(jobs):
            future, job, place = self._ready.get()
            with self._watching(job.shard.index):
                commits = answer(future.result())
            # What waits for a batch is missing there, and what a barrier will decide.
            self._go_on(job, commits, place + 1 if self._ways[place].stages[-1] in commits else len(self._ways))
            if len(self._results) == shown:
                continue
            shown = len(self._results)
            tell(name, shown, len(jobs))
            # An artifact costs a request; a few a minute are as good as all.
            if shown == len(jobs) or time.monotonic() - started > 2:
                update_progress_artifact(artifact, 100 * shown / len(jobs))
                started = time.monotonic()
        return self._results

    def _go_on(self, job: Job, commits: dict[str, Commit], place: int) -> None:
        """Submit a job's next part that is due, from `place` on; without one the job is done."""
        while place < len(self._ways) and self._ways[place].stages[-1] in commits:
            place += 1
        if place == len(self._ways):
            self._results.append((job, commits))
            return
        part = self._ways[place]
        future = self._submit(part, replace(job, segment=part.stages, done=commits))
        future.add_done_callback(lambda one: self._ready.put((one, job, place)))
