"""`fedbench panel`: how right voters and panels are where the truth is known."""

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from flows.options import load_config
from flows.verbs import AsJson, ConfigFile, Preset, RunName, Sets, Workspace, in_words

app = typer.Typer(no_args_is_help=True, help="Panels of voters: how right they are where the truth is known.")
Pools = Annotated[
    list[str] | None,
    typer.Option("--pool", metavar="KIND=ROOT", help="Labelled photos: rafdb=PATH, folder=PATH, samples. Repeatable."),
]


@app.command()
@in_words
def accuracy(
    workspace: Workspace = Path("workspace"),
    pool: Pools = None,
    panel: Annotated[str | None, typer.Option(metavar="NAME", help="A panel that ships, such as current.")] = None,
    planted: Annotated[
        bool, typer.Option("--planted", help="Also edit the photos, and put the edits before the verdict.")
    ] = False,
    editor: Annotated[str | None, typer.Option(metavar="NAME", help="Who makes planted edits.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Labelled photos, at most; a fixed shuffle says which.")] = 200,
    budget: Annotated[float | None, typer.Option(min=0, help="Dollars, over all runs of this verb here.")] = None,
    preset: Preset = None,
    config: ConfigFile = None,
    sets: Sets = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and price it; ask nobody.")] = False,
    json: AsJson = False,
) -> None:
    """Show a panel pictures of known truth: how often voters, and panels of every size among them, are right.

    The panel is `verify.measure.panel` of the config (`--set`), the pools its `pools`; `--pool` and `--panel` replace
    them. Photos of restricted pools go to models outside only with `--set acknowledge_external_api=true`.

    `--planted` hands in edits as a build would, some of them wrong on purpose: unchanged sources, other targets, other
    people; then precision and recall of the verdict are told, under both majority rules, without and with the floor on
    identity that ranking has.

    The price is told first. What a model outside has answered is kept in the workspace, so a second run asks nothing;
    photos are not kept. Results also lie in the workspace, as a page and as JSON, with the paper's figures beside ours.
    """
    from flows.accuracy import try_panel

    told = [_pools(pool)] if pool else []
    told += [f"verify.measure.panel={panel}"] if panel else []
    told += [f"generate.measure.editor={editor}"] if editor else []
    told += [f"calls.budget={budget}"] if budget is not None else []
    chosen = load_config(preset, config, [*told, *(sets or ())])
    try_panel(workspace, chosen, limit=limit, planted=planted, dry_run=dry_run, as_json=json)


@app.command()
@in_words
def calibration(workspace: Workspace = Path("workspace"), run: RunName = None, json: AsJson = False) -> None:
    """Tell of a build's panel: who agrees with the majority and with people, who abstains, and which way they lean.

    Leanings are by target and source expression, and by gender, race and age where pools say them: how much oftener
    or seldomer a voter names a polarity than it was asked for. With the pass rate under both majority rules. It reads
    the workspace; no model runs.
    """
    from flows.calibration import show_calibration

    show_calibration(workspace, run, as_json=json)


def _pools(named: list[str]) -> str:
    """The option that names pools: KIND=ROOT, or KIND alone where it has no root."""
    pools = []
    for one in named:
        kind, _, root = one.partition("=")
        pools.append({"name": kind, "params": {"root": root} if root else {}})
    return f"pools={json_text.dumps(pools)}"
