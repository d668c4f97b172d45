"""The one place where a shard's share of a segment becomes a Prefect task."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, cast

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.utilities.annotations import quote

from flows.states import answer, in_states
from schemas.forecasts import PilotFound
from tasks.engine.errors import FedbenchError
from tasks.engine.rows import Commit
from tasks.pipeline import work
from tasks.rounds import Job, Mapper

Progress = Callable[[str, int, int], None]


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
    task_run_name="{segment}-{shard:05d}",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=1,
    retry_delay_seconds=1,
    retry_condition_fn=infrastructure_only,
)
@in_states
def run_shard(segment: str, shard: int, job: Job) -> dict[str, Commit]:  # noqa: ARG001 - they name the task run
    """Do one shard's share of a segment. The workspace, not Prefect, knows what is done; results stay small.

    Args:
        segment: Its name, for the task run's.
        shard: The shard's place in the plan, likewise.
        job: What to do.
    """
    return work(job)


def prefect_mapper(workers: int) -> Mapper:
    """A mapper for `tasks.pipeline.build`: one sub-flow per segment, one task per shard that is not done."""

    def mapper(jobs: Sequence[Job]) -> Iterable[tuple[Job, dict[str, Commit]]]:
        name = jobs[0].segment[0] if len(jobs[0].segment) == 1 else f"{jobs[0].segment[0]}-to-{jobs[0].segment[-1]}"

        threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=workers)

        @flow(name=name, flow_run_name=name, task_runner=threads, persist_result=False)
        @in_states
        def segment() -> list[tuple[Job, dict[str, Commit]]]:
            return _submit_and_watch(name, jobs)

        return answer(segment())

    return mapper


def _submit_and_watch(name: str, jobs: Sequence[Job]) -> list[tuple[Job, dict[str, Commit]]]:
    tell, started = on_progress.get(), time.monotonic()
    tell(name, 0, len(jobs))
    artifact: Any = create_progress_artifact(0.0, key=f"progress-{name}", description=f"{name}: {len(jobs)} shards")
    # Quoted, so that Prefect does not search every row of it for futures.
    job_of = {run_shard.submit(name, job.shard.index, cast(Job, quote(job))): job for job in jobs}
    results = []
    for future in as_completed(list(job_of)):
        results.append((job_of[future], answer(future.result())))
        tell(name, len(results), len(jobs))
        # An artifact costs a request; a few a minute are as good as all.
        if len(results) == len(jobs) or time.monotonic() - started > 2:
            update_progress_artifact(artifact, 100 * len(results) / len(jobs))
            started = time.monotonic()
    return results
