"""The flow that builds a data set: screen → generate → verify → rank → caption → review → instruct → publish."""

from prefect import flow

from flows.artifacts import show_result, shown
from flows.logs import about
from flows.places import WORKSPACE
from flows.runner import on_batches, on_pilot, prefect_mapper
from flows.states import in_states
from schemas.config import BuildConfig
from tasks.engine.places import place
from tasks.engine.store import Store
from tasks.pipeline import build, open_run
from tasks.results import Result, check_released, finish


@flow(name="build-dataset", flow_run_name="{config.name}-{config.edition}", persist_result=False)
@in_states
def build_dataset(config: BuildConfig, workspace: str = WORKSPACE) -> Result:
    """Bring a data set up to date; what is done already is not done again.

    Args:
        config: What to build.
        workspace: The folder where everything lies, or s3://BUCKET/PREFIX.

    Returns:
        Where the data set and its report lie, and the funnel. A run that waits returns the error that says so:
        `flows.states.answer` raises it.

    Raises:
        FedbenchError: With a line for its reader; see its subclasses.
    """
    root = place(workspace)
    check_released(root, config)
    with Store(root).lock():
        run = open_run(root, config)
        run.executor.context.call.tell_of_batches(on_batches.get())
        with about(run=config.name), shown(run):
            with prefect_mapper(run) as mapper:
                done = build(run, mapper, on_pilot.get())
            result = finish(run, done)
        show_result(run, result)
    return result
