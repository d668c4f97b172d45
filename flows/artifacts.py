"""What a run shows in Prefect's UI beside its tasks: funnel, rates, cost, contact sheet, and the way to its report."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from prefect.artifacts import create_link_artifact, create_markdown_artifact

from flows.places import REPORTS_URL
from tasks.engine.errors import FedbenchError, WorkspaceError
from tasks.engine.places import shown_uri
from tasks.pipeline import Run
from tasks.report.contact import contact_sheet
from tasks.report.funnel import funnel, funnel_markdown
from tasks.report.rates import costs_markdown, rates, rates_markdown
from tasks.results import Result


@contextmanager
def shown(run: Run) -> Iterator[None]:
    """Shows on leaving how far a run has come, be it finished, waiting, stopped or failed."""
    try:
        yield
    except WorkspaceError:
        raise  # what cannot be read cannot be shown
    except FedbenchError:
        _show(run)
        raise
    _show(run)


def _show(run: Run) -> None:
    name, done = run.config.name, run.executor.commits()
    found = rates(run, done)
    rows = funnel_markdown(funnel(run.executor.order, done))
    create_markdown_artifact(rows, key=f"funnel-{name}", description="What became of every row")
    create_markdown_artifact(rates_markdown(found), key=f"rates-{name}", description="Throughput, queue, failures")
    create_markdown_artifact(costs_markdown(found), key=f"costs-{name}", description="Calls to models outside")


def show_result(run: Run, result: Result) -> None:
    """Show what a finished run left: its first triplets, and its report."""
    name = run.config.name
    sheet = contact_sheet(run, run.executor.commits())
    create_markdown_artifact(sheet, key=f"sheet-{name}", description=f"The first of {result.triplets} triplets")
    served = os.environ.get(REPORTS_URL)
    link = f"{served}/{name}/{result.report.name}" if served else shown_uri(result.report)
    create_link_artifact(
        link,
        key=f"report-{name}",
        link_text="Report",
        description="Every source with its candidates, votes and numbers",
    )
