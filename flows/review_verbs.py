"""`fedbench review`: people decide between the finalists, in Label Studio."""

from pathlib import Path
from typing import Annotated

import typer

from flows.verbs import AsJson, RunName, Sets, Workspace, in_words

app = typer.Typer(no_args_is_help=True, help="People decide between the finalists, in Label Studio.")


@app.command()
@in_words
def up(
    workspace: Workspace = Path("workspace"),
    annotators: Annotated[
        int, typer.Option("--with-annotators", min=0, max=99, help="Also make the accounts ann1, ann2, …")
    ] = 0,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 8090,
    accounts_only: Annotated[bool, typer.Option("--accounts-only", help="Make the accounts and stop.")] = False,
    workers: Annotated[
        int, typer.Option(min=0, max=64, help="Processes of gunicorn, for teams on PostgreSQL; 0: a small server.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Start Label Studio on this machine, for this workspace; Ctrl-C stops it, and nothing is lost.

    The first time it is installed into `.venv-studio` (minutes, 1 GB). Passwords of new accounts are shown once.
    The admin is FEDBENCH_STUDIO_ADMIN with FEDBENCH_STUDIO_PASSWORD, where they are set.
    """
    from flows import studio
    from flows.console import ERR, OUT, print_json
    from tasks.engine.errors import ConfigError
    from tasks.engine.places import in_bucket, shown
    from tasks.engine.store import Store

    if in_bucket(shown(workspace)):
        hint = "start it for a folder of its own, and set FEDBENCH_STUDIO_URL: docs/object-store.md"
        raise ConfigError(f"Label Studio cannot keep its data in {shown(workspace)}", hint)
    if not accounts_only:
        studio.check_port(port)
    store = Store(workspace.resolve())
    if not json:
        ERR.print("installing, if it is not yet; the first start takes about a minute more", style="dim")
    python = studio.install()
    url = f"http://127.0.0.1:{port}"
    fresh = studio.make_accounts(store, python, url, annotators)
    if json:
        print_json(
            {"url": url, "accounts": {name: {"email": one[0], "password": one[1]} for name, one in fresh.items()}}
        )
    else:
        for name, (email, password) in fresh.items():
            told = f"password {password}   (shown once)" if password else "password as you have set it"
            OUT.out(f"{name:<8} {email}   {told}", highlight=False)
        OUT.out(f"{url}   fedbench review open makes the projects", highlight=False)
    if not accounts_only:
        import sys

        sys.stdout.flush()
        studio.serve(store, python, port, workers)


@app.command("open")
@in_words
def open_(
    workspace: Workspace = Path("workspace"), run: RunName = None, sets: Sets = None, json: AsJson = False
) -> None:
    """Make a project per annotator, and the tasks that are not there yet. Run it as often as you like.

    Asks about every source that waits. `--set review.cut.adjudicators='[ann4]'` also asks a fourth person where
    three disagree (give the build the same).
    """
    from flows.reviews import show_opened

    show_opened(workspace, run, sets or (), as_json=json)


@app.command()
@in_words
def collect(
    workspace: Workspace = Path("workspace"), run: RunName = None, sets: Sets = None, json: AsJson = False
) -> None:
    """Fetch people's answers into the workspace, and show how far they are and how well they agree.

    Then build again: it goes on where enough is decided. What was not counted is listed, with the reason.
    """
    from flows.reviews import show_collected

    show_collected(workspace, run, sets or (), as_json=json)


@app.command()
@in_words
def listen(
    workspace: Workspace = Path("workspace"),
    run: RunName = None,
    sets: Sets = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    every: Annotated[float, typer.Option(min=1, help="Seconds after which it looks unasked.")] = 300,
    quiet: Annotated[float, typer.Option(min=0.1, help="Seconds without an answer before it looks.")] = 5,
    json: AsJson = False,
) -> None:
    """Collect whenever somebody has answered, and let the build go on when enough is decided; Ctrl-C stops it.

    Label Studio's webhook wakes it, which is set up and taken down here. It tells nothing and may be lost, so answers
    are also looked for unasked. Where a Prefect server is set, its deployment `collect-review` does the work.
    """
    from flows.listening import listen

    listen(workspace, run, sets or (), port=port, every=every, quiet=quiet, as_json=json)


@app.command()
@in_words
def status(
    workspace: Workspace = Path("workspace"),
    run: RunName = None,
    sets: Sets = None,
    daily: Annotated[bool, typer.Option("--daily", help="By day and person, and when all will be done.")] = False,
    json: AsJson = False,
) -> None:
    """Show the same from what was collected last; asks no server. With `--set`: under another rule."""
    from flows.reviews import show_standing

    show_standing(workspace, run, sets or (), daily=daily, as_json=json)


@app.command()
@in_words
def simulate(
    workspace: Workspace = Path("workspace"),
    run: RunName = None,
    noise: Annotated[float, typer.Option(min=0, max=1, help="Share of answers drawn at random.")] = 0.1,
    bias: Annotated[float, typer.Option(min=0, max=1, help="Share of answers that are A, whatever is shown.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Answers per person, at most.")] = None,
    json: AsJson = False,
) -> None:
    """Play the annotators, with a known bias and noise, through the real API: for demos and tests, never for data."""
    from flows.reviews import show_played
    from tasks.boards.simulate import Behaviour

    show_played(workspace, run, Behaviour(noise, bias, seed, limit), as_json=json)
