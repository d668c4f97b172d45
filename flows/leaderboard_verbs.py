"""`fedbench leaderboard`: scoring runs, ranked."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.verbs import AsJson, Workspace, in_words

app = typer.Typer()


@app.command()
@in_words
def leaderboard(
    runs: Annotated[list[str], typer.Argument(help="Runs of the workspace, or folders of scores.")],
    rank_by: Annotated[
        Literal["all", "scored"], typer.Option(help="all: failed outputs are 0; scored: they are left out.")
    ] = "all",
    published: Annotated[bool, typer.Option("--published", help="Show the paper's 18 editors beside.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Rank the editors of scoring runs, and say what each rank is worth.

    `fedbench score` writes a run's scores; this reads them, runs no model and asks nothing. Editors are ranked together
    only where data set, edition, measurement, judges and cut are the same; other runs stand on a board of their own,
    and it says what differs. A partial score never stands beside a FED-Score; simple and dense never mix.

    Each line has its n, a 95 % interval (bootstrap over people), where it might also rank, whether it is better than
    the next, and what difference so many sources would show. Below: the ranks under other BG normalisers, the other
    background, the other gain, each judge alone, and each order of the pictures. * marks relatives of who made the
    ground truths or judges; † who was judged on other days than the newest, without a look at the judge's drift
    (`fedbench score ... --drift now`).

    Page, JSON, Parquet and Markdown lie in reports/leaderboards/ of the workspace.
    """
    from flows.leaderboard_console import rank_and_show

    rank_and_show(workspace, runs, rank_by=rank_by, published=published, seed=seed, as_json=json)
