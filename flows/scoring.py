"""The flow that scores editors on a published data set: edit → measure → judge, then the table of scores."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.utilities.annotations import quote

from flows.editions import data_set_folder
from flows.places import WORKSPACE
from flows.runner import infrastructure_only, on_batches, on_progress
from flows.states import answer, in_states
from schemas.score_config import ScoreConfig
from tasks.engine.places import place
from tasks.engine.store import Store
from tasks.scoring.drift import check_drift, planned
from tasks.scoring.price import judges_are_asked
from tasks.scoring.results import Results, finish
from tasks.scoring.run import Mapper, Place, Work, due, measure, open_scoring


@flow(name="score-editors", flow_run_name="{config.name}", persist_result=False)
@in_states
def score_editors(config: ScoreConfig, workspace: str = WORKSPACE) -> Results:
    """Bring the scores of a run up to date; what is measured and judged already is not done again.

    Args:
        config: Which editors, on which data set, by which judges.
        workspace: The folder where everything lies.

    Returns:
        The summaries, and where the table lies.

    Raises:
        FedbenchError: With a line for its reader; see its subclasses.
    """
    root = place(workspace)
    config = config.model_copy(update={"dataset": str(data_set_folder(config.dataset, root))})
    with Store(root).lock():
        run = open_scoring(root, config)
        try:
            tell, today = on_progress.get(), datetime.now(UTC).date()
            run.call.tell_of_batches(on_batches.get())
            # First, so that what is stopped here is taken up by the next run: it then has the same questions to ask.
            check_drift(run, planned(run, today, asks=judges_are_asked(due(run))), today)
            measure(run, prefect_mapper(config.workers), lambda done, total: tell("score", done, total))
            results = finish(run)
        finally:
            run.call.close()
    create_markdown_artifact(results.markdown(), key=f"scores-{config.name.replace('.', '-')}", description="Scores")
    return results


@task(
    task_run_name="score-{shard:05d}",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=1,
    retry_delay_seconds=1,
    retry_condition_fn=infrastructure_only,
)
@in_states
def score_shard(shard: int, work: Work, place: Place) -> None:  # noqa: ARG001 - it names the task run
    """One shard's share of all editors. The workspace, not Prefect, knows what is done."""
    work(place)


def prefect_mapper(workers: int) -> Mapper:
    """A mapper for `tasks.scoring.run.measure`: one sub-flow, one task per shard that is not done."""

    def mapper(work: Work, places: Sequence[Place], tick: Callable[[], None]) -> None:
        threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=workers)

        @flow(name="score-shards", flow_run_name=f"{len(places)} shards", task_runner=threads, persist_result=False)
        @in_states
        def shards() -> None:
            futures = [
                score_shard.submit(place[0].index, cast(Work, quote(work)), cast(Place, quote(place)))
                for place in places
            ]
            for future in as_completed(futures):
                answer(future.result())
                tick()

        answer(shards())

    return mapper
