"""The verbs about editions of a data set: diff."""

from pathlib import Path
from typing import Annotated

import typer

from flows.verbs import AsJson, Workspace, in_words

app = typer.Typer()

_SIDE = "a data set's folder, or NAME/EDITION in the workspace."


@app.command()
@in_words
def diff(
    a: Annotated[str, typer.Argument(help=f"The earlier one: {_SIDE}")],
    b: Annotated[str, typer.Argument(help=f"The later one: {_SIDE}")],
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """List the triplets that data set B adds, drops and changes against A, and why.

    A dropped triplet comes with its fate in B, an added one with its fate in A, a changed one with the columns that
    differ; beside them what the two configs, models and prompts differ in, and both funnels. The exit code is 0
    whatever the difference.
    """
    from flows.editions import show_difference

    show_difference(a, b, workspace, as_json=json)
