"""The verbs about editions of a data set: diff, withdraw."""

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


@app.command()
@in_words
def withdraw(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="As reports show them: pool/source_id, or a candidate.")
    ] = None,
    person: Annotated[
        bool, typer.Option("--person", help="Also the person's other sources: same clip, identity, subject or face.")
    ] = False,
    dataset: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A data set, release or pack outside the workspace to clean as well."),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Clean each --dataset of what this newer release has withdrawn; no workspace."
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Kept with the tombstone; published nowhere.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Take sources, or a person, out of a workspace and of everything published from it, for good.

    Rows, pictures, identity vectors, votes, edits and answers go; a tombstone stays, so that no build admits them
    again. Other rows stay as they are. A withdrawal that was stopped is finished by the next one, which needs no key.
    """
    from flows.withdrawals import clean_and_show, withdraw_and_show

    folders = dataset or ()
    if like is not None:
        clean_and_show(like, keys or (), folders, dry_run=dry_run, as_json=json)
    else:
        withdraw_and_show(workspace, keys or (), folders, person=person, reason=reason, dry_run=dry_run, as_json=json)
