"""The two short flows around the people: one asks, one collects and, when enough is decided, lets the build go on."""

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact

from flows.build import build_dataset
from flows.reviews import lines_of, percent
from schemas.config import BuildConfig
from tasks.boards.collecting import in_short
from tasks.pipeline import open_run
from tasks.reviewing import Review, collect_review, open_review, review_of, told


def _review(config: BuildConfig, workspace: str) -> Review:
    return review_of(open_run(Path(workspace).resolve(), config, extend=False))


@flow(name="open-review", flow_run_name="{config.name}-{config.edition}", persist_result=False)
def open_review_flow(config: BuildConfig, workspace: str = "workspace") -> None:
    """Ask people what a build waits for. What was asked already stays; ends at once, and holds nobody.

    Args:
        config: The build's.
        workspace: The folder where everything lies.
    """
    log = get_run_logger()
    for one in open_review(_review(config, workspace), lambda who, done, total: log.info("%s %d/%d", who, done, total)):
        log.info("%s: %d tasks, %d of them new, at %s", one.annotator, one.tasks, one.added, one.url)


@flow(name="collect-review", flow_run_name="{config.name}-{config.edition}", persist_result=False)
def collect_review_flow(config: BuildConfig, workspace: str = "workspace", go_on: bool = True) -> None:
    """Collect what people have answered, and let the build go on when enough is decided.

    Args:
        config: The build's.
        workspace: The folder where everything lies.
        go_on: Whether to build at once when `review.enough` is met and more is decided than was published.
    """
    found = collect_review(_review(config, workspace))
    for note in in_short(found.notes):
        get_run_logger().warning("%s", note)
    numbers = told(_review(config, workspace))
    key = f"review-{config.name}"
    create_markdown_artifact(
        numbers_markdown(numbers, config.review.gold_pass), key=key, description="How the review stands"
    )
    enough = numbers["decided"] >= config.review.enough * numbers["sources"]
    if go_on and enough and numbers["decided"] > numbers["published"]:
        build_dataset(config, workspace)


def numbers_markdown(numbers: dict[str, Any], gold_pass: float = 0.0) -> str:
    """The statistics as Markdown."""
    rows = ["| annotator | answered | as decided | as the other two | chose A |", "|:--|--:|--:|--:|--:|"]
    for name, one in numbers["annotators"].items():
        shares = (percent(one[column]) for column in ("with_majority", "with_the_others", "position"))
        rows.append(f"| {name} | {one['answered']} of {one['of']} | {' | '.join(shares)} |")
    return "\n".join([*rows, "", *(f"- {line}" for line in lines_of(numbers, gold_pass))]) + "\n"
