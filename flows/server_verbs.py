"""`fedbench server`: a Prefect server with workers, and what it is given."""

from pathlib import Path
from typing import Annotated

import typer

from flows.verbs import AsJson, Workspace, in_words

app = typer.Typer(no_args_is_help=True, help="Scheduled and parameterized runs: a Prefect server, workers, alerts.")
Gpus = Annotated[int, typer.Option(min=1, help="Runs at once in the pool `gpu`: one per GPU.")]


@app.command()
@in_words
def up(
    workspace: Workspace = Path("workspace"),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 is 4200, or if taken a free one.")
    ] = 0,
    home: Annotated[
        Path | None, typer.Option(help="Folder of database, logs and lock; if left out `prefect` in the workspace.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Runs at once in the pool `cpu`.")] = 2,
    gpus: Gpus = 1,
    json: AsJson = False,
) -> None:
    """Start a Prefect server and a worker per pool on this machine, with everything deployed; Ctrl-C ends all of it.

    Work pools `cpu` and `gpu`, the deployments of prefect.yaml, the automations: what is there already stays. What
    ends by itself is started again; nothing outlives this command. The database is SQLite, or what
    PREFECT_API_DATABASE_CONNECTION_URL names. Runs that failed, crashed, were stopped or wait for review are told here
    in a line. A second `up` on the same folder only says where the first one is.
    """
    from flows.serving_up import serve

    serve(workspace, home, port, workers, gpus, as_json=json)


@app.command()
@in_words
def deploy(gpus: Gpus = 1, json: AsJson = False) -> None:
    """Give the server at PREFECT_API_URL work pools, deployments and automations, as far as it lacks them."""
    from flows.console import OUT, print_json
    from flows.deploying import set_up
    from flows.server import must_answer

    must_answer()
    deployments = set_up(gpus)
    if json:
        print_json({"deployments": deployments})
    else:
        OUT.out("\n".join(deployments), highlight=False)


@app.command()
@in_words
def automations(json: AsJson = False) -> None:
    """Have the server at PREFECT_API_URL mark lost runs as crashed, and tell you what failed, stopped or waits.

    With FEDBENCH_ALERT_WEBHOOK set, an address that takes a POST of `{"text": ...}` as Slack's do, it is called;
    without, alerts only show in the UI's event feed. Do it again after you changed the address.
    """
    from flows.automations import set_up_automations
    from flows.console import OUT, print_json
    from flows.server import must_answer

    must_answer()
    names = set_up_automations()
    if json:
        print_json({"automations": names})
    else:
        OUT.out("\n".join(names), highlight=False)
