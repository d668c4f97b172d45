"""`fedbench review`: people decide between the finalists, in Label Studio."""

from pathlib import Path
from typing import Annotated

import typer

from flows.verbs import AsJson, Workspace, in_words

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
    json: AsJson = False,
) -> None:
    """Start Label Studio on this machine, for this workspace; Ctrl-C stops it, and nothing is lost.

    The first time it is installed into `.venv-studio` (minutes, 1 GB). Passwords of new accounts are shown once.
    The admin is FEDBENCH_STUDIO_ADMIN with FEDBENCH_STUDIO_PASSWORD, where they are set.
    """
    from flows import studio
    from flows.console import ERR, OUT, print_json
    from tasks.engine.store import Store

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
            shown = f"password {password}   (shown once)" if password else "password as you have set it"
            OUT.out(f"{name:<8} {email}   {shown}", highlight=False)
        OUT.out(f"{url}   fedbench review open makes the projects", highlight=False)
    if not accounts_only:
        import sys

        sys.stdout.flush()
        studio.serve(store, python, port)
