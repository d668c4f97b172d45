"""The two short flows around the people: one asks, one collects and, when enough is decided, lets the build go on."""

from typing import Any

from prefect import State, flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.states import Completed

from flows.build import build_dataset
from flows.places import WORKSPACE
from flows.reviews import daily_cells, enough_is_decided, go_on_is_due, lines_of, percent
from flows.states import WORKSPACE_IN_USE, ended, in_states
from schemas.config import BuildConfig
from tasks.boards.collecting import in_short
from tasks.boards.projects import one_at_a_time
from tasks.engine.errors import FedbenchError, WaitingForReview, WorkspaceError
from tasks.engine.places import place
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.reviewing import Review, collect_review, open_review, review_of, told


def _review(config: BuildConfig, workspace: str) -> Review:
    return review_of(open_run(place(workspace), config, extend=False))


@flow(name="open-review", flow_run_name="{config.name}-{config.edition}", persist_result=False)
@in_states
def open_review_flow(config: BuildConfig, workspace: str = WORKSPACE) -> None:
    """Ask people what a build waits for. What was asked already stays; ends at once, and holds nobody.

    Args:
        config: The build's.
        workspace: The folder where everything lies.
    """
    log = get_run_logger()
    for one in open_review(_review(config, workspace), lambda who, done, total: log.info("%s %d/%d", who, done, total)):
        log.info("%s: %d tasks, %d of them new, at %s", one.annotator, one.tasks, one.added, one.url)


@flow(name="collect-review", flow_run_name="{config.name}-{config.edition}", persist_result=False)
@in_states
def collect_review_flow(config: BuildConfig, workspace: str = WORKSPACE, go_on: bool = True) -> State[Any] | None:
    """Collect what people have answered, and let the build go on when enough is decided.

    Args:
        config: The build's.
        workspace: The folder where everything lies.
        go_on: Whether to build at once when `review.enough` is met and more is decided than was published.

    Returns:
        The run's state: `WaitingForReview` until enough is decided, `WorkspaceInUse` where a build runs already.
    """
    found = collect_review(_review(config, workspace))
    for note in in_short(found.notes):
        get_run_logger().warning("%s", note)
    numbers = told(_review(config, workspace))
    key = f"review-{config.name}"
    create_markdown_artifact(
        numbers_markdown(numbers, config.review.gold_pass), key=key, description="How the review stands"
    )
    if not enough_is_decided(config, numbers):
        raise WaitingForReview(f"people have decided {numbers['decided']} of {numbers['sources']} sources")
    return _go_on(config, workspace) if go_on and go_on_is_due(config, numbers) else None


def _go_on(config: BuildConfig, workspace: str) -> State[Any] | None:
    """Build, unless somebody else did so meanwhile, or does so now: then the next collection looks again."""
    store = Store(place(workspace))
    with one_at_a_time(store, "going-on"):
        if not go_on_is_due(config, told(_review(config, workspace))):
            return None
        try:
            with store.lock():
                pass
        except WorkspaceError as busy:
            return Completed(name=WORKSPACE_IN_USE, message=str(busy))
        built = build_dataset(config, workspace)
        if not isinstance(built, FedbenchError):
            return None
        # It made up for what people rejected, and has new questions.
        open_review(_review(config, workspace), lambda *_: None)
        return ended(built)


def numbers_markdown(numbers: dict[str, Any], gold_pass: float = 0.0) -> str:
    """The statistics as Markdown."""
    rows = ["| annotator | answered | as decided | as the other two | chose A |", "|:--|--:|--:|--:|--:|"]
    for name, one in numbers["annotators"].items():
        shares = (percent(one[column]) for column in ("with_majority", "with_the_others", "position"))
        rows.append(f"| {name} | {one['answered']} of {one['of']} | {' | '.join(shares)} |")
    days = [
        "| day | annotator | answers | tests | median s | under 5 s | as decided | gold |",
        "|:--|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for one in numbers["daily"]["days"]:
        days.append(f"| {one['day'] or '–'} | {one['annotator']} | {' | '.join(daily_cells(one))} |")
    lines = [f"- {line}" for line in lines_of(numbers, gold_pass)]
    return "\n".join([*rows, "", *lines, "", *days]) + "\n"
