"""The scheduled rebuild: an edition of what was built before, and what differs from the last one."""

from datetime import date
from typing import Annotated, Literal

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run
from pydantic import Field

from flows.build import build_dataset
from flows.places import WORKSPACE
from flows.states import answer, in_states
from schemas.config import BuildConfig
from tasks.dataset.diff import Difference, diff
from tasks.engine.lineage import editions
from tasks.engine.places import fetched, place
from tasks.engine.store import Store
from tasks.results import Result, saved_config


@flow(name="rebuild-benchmark", flow_run_name="rebuild-{run}", persist_result=False)
@in_states
def rebuild_benchmark(
    run: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="A run of the workspace.")] = (
        "benchmark"
    ),
    workspace: Annotated[str, Field(min_length=1, description="The folder where everything lies.")] = WORKSPACE,
    mode: Annotated[
        Literal["replay", "refresh"],
        Field(description="Keep stored answers and fill gaps, or ask again where models or prompts changed."),
    ] = "replay",
    edition: Annotated[
        Literal["dated", "same"],
        Field(description="An edition named after the scheduled day, or the run's own brought up to date."),
    ] = "dated",
) -> Result:
    """Build a run of the workspace again, under the config it was built with, and say what differs.

    Args:
        run: Its name; what it takes stands in the workspace, and nowhere twice.
        workspace: The folder where everything lies.
        mode: As `BuildConfig.mode`.
        edition: A retry of a run has its scheduled day, and so goes on with the same edition.

    Returns:
        As `build_dataset`.

    Raises:
        FedbenchError: With a line for its reader; see its subclasses.
    """
    root = place(workspace)
    config = saved_config(root, run)
    before = [one.edition for one in editions(Store(root), f"runs/{run}")]
    config = rebuilt(config, mode, flow_run.scheduled_start_time.date() if edition == "dated" else None)
    result = answer(build_dataset(config, workspace))
    if last := next((name for name in reversed(before) if name != config.edition), None):
        found = diff(fetched(result.dataset.parent / last), fetched(result.dataset))
        create_markdown_artifact(
            difference_markdown(found, last, config.edition), key=f"diff-{run}", description="Against the last edition"
        )
    return result


def rebuilt(config: BuildConfig, mode: Literal["replay", "refresh"], day: date | None) -> BuildConfig:
    """The config of a rebuild: everything as it was, but for mode and, where a day is given, the edition."""
    changed = {"mode": mode} | ({"edition": f"{day:%Y-%m-%d}"} if day else {})
    return config.model_copy(update=changed)


def difference_markdown(found: Difference, before: str, after: str) -> str:
    """What a rebuild changed, as Markdown."""
    lines = [
        f"**{before} → {after}**: {found.a.triplets} triplets, then {found.b.triplets}; {len(found.removed)} went, "
        f"{len(found.added)} came, {len(found.changed)} changed, {found.kept} stayed as they were.",
        "",
    ]
    if found.settings:
        lines += ["| setting | was | is |", "|:--|:--|:--|"]
        lines += [f"| {one.where} | {_cell(one.before)} | {_cell(one.after)} |" for one in found.settings]
    return "\n".join(lines) + f"\nAll of it: `fedbench diff {found.b.name}/{before} {found.b.name}/{after}`\n"


def _cell(value: object) -> str:
    return str(value).replace("|", "/")[:60]
