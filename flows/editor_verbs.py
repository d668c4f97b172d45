"""`fedbench edit`, `fedbench editors` and `fedbench outputs`: try editors, list them, check outputs made elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from flows.verbs import AsJson, RunName, Sets, Workspace, in_words

app = typer.Typer()
editors_app = typer.Typer(no_args_is_help=True, help="The editors: licence, memory, price, and what runs here.")
outputs_app = typer.Typer(no_args_is_help=True, help="Pictures that a model of yours made elsewhere.")
app.add_typer(editors_app, name="editors")
app.add_typer(outputs_app, name="outputs")


@app.command()
@in_words
def edit(
    image: Annotated[Path, typer.Argument(help="A photo with a face.")],
    target: Annotated[
        list[str] | None, typer.Option("--target", help="What it shall show; repeatable. All others if left out.")
    ] = None,
    editor: Annotated[str, typer.Option(metavar="NAME", help="As `fedbench editors list` shows it.")] = "warp",
    shows: Annotated[
        str | None, typer.Option("--shows", help="What it shows now; looked at by the voter `fer` if left out.")
    ] = None,
    sets: Sets = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the edits.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the pictures go.")] = Path("edits"),
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Try an editor on one photo, and draw source and edits side by side, with the numbers a build would measure.

    `--set` changes the editor's own parameters: `--editor warp --set intensity=2`. An editor outside is sent the
    photo; its answers are kept in the workspace, so that asking again costs nothing. Exit 5: no edit came out.
    """
    from flows.editors import Trial, try_editor

    tried = Trial(image, editor, tuple(target or ()), shows, tuple(sets or ()), seed)
    if not try_editor(tried, out, workspace, as_json=json):
        raise typer.Exit(5)


@editors_app.command("list")
@in_words
def list_editors(json: AsJson = False) -> None:
    """List all editors with licence, memory and price as far as known, and whether this machine can run them."""
    from flows.editor_list import show_editors

    show_editors(as_json=json)


@outputs_app.command()
@in_words
def check(
    root: Annotated[Path, typer.Argument(help="The folder of the pictures, or a .jsonl or .parquet table.")],
    data_set: Annotated[
        Path | None, typer.Option("--data-set", metavar="DIR", help="Outputs are owed for the triplets of this one.")
    ] = None,
    pattern: Annotated[
        str, typer.Option(help="Names below the folder, without extension: {pool} {source_id} {source_stem} {target}.")
    ] = "{pool}/{source_id}/{target}",
    workspace: Workspace = Path("workspace"),
    run: RunName = None,
    json: AsJson = False,
) -> None:
    """Match outputs to the edits that are owed, and name what is missing, double, left over, unreadable or misshapen.

    Owed are the triplets of a published data set, or the candidates of a run whose photos are screened
    (`fedbench build --dry-run` does that). Exit 3 if anything but a size is wrong.
    """
    from flows.outputs import candidates, show_matched, triplets

    due = triplets(data_set) if data_set else candidates(workspace, run)
    if not show_matched(root, pattern, due, as_json=json):
        raise typer.Exit(3)
