"""`fedbench rates`: how a run goes."""

from pathlib import Path

import typer

from flows.verbs import AsJson, RunName, Workspace, in_words

app = typer.Typer()


@app.command()
@in_words
def rates(workspace: Workspace = Path("workspace"), run: RunName = None, json: AsJson = False) -> None:
    """Show how a run goes, stage by stage: shards done and in the queue, seconds a row, rows an hour, failures; spend.

    Works beside a build, and of one that is done. Seconds are one worker's, in all runs of the workspace that measured
    the same; rows an hour those of all workers. Failures are told by kind, spend where the price is known.
    """
    from dataclasses import asdict

    from rich.markdown import Markdown

    from flows.console import OUT, opened, print_json
    from tasks.report.rates import costs_markdown, rates_markdown
    from tasks.report.rates import rates as found_of

    opened_run = opened(workspace, run)
    found = found_of(opened_run, opened_run.executor.commits())
    if json:
        spent = {"dollars": found.dollars, "budget": found.budget}
        told = {"stages": [asdict(one) for one in found.stages], "calls": [one.plain() for one in found.calls]}
        print_json({"run": opened_run.config.name} | told | spent)
        return
    OUT.print(Markdown(rates_markdown(found)))
    OUT.print(Markdown(costs_markdown(found)))
