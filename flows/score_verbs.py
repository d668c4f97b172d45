"""`fedbench score`: editors on a published data set."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flows.verbs import AsJson, Verbose, Workspace, in_words
from tasks.engine.errors import ConfigError

app = typer.Typer()
Editors = Annotated[
    list[str] | None,
    typer.Option("--editor", metavar="NAME[:K=V,...]", help="An editor; CALLED=NAME:... names it. Repeatable."),
]
JudgeNames = Annotated[
    list[str] | None,
    typer.Option("--judge", metavar="MODEL", help="A model that ships, such as Gemini-2.5-Pro, or YAML. Repeatable."),
]

ScoreSets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one value: --set cut.sigma=0.4")
]


@app.command()
@in_words
def score(
    dataset: Annotated[Path, typer.Argument(help="A published data set, with its pictures.")],
    editor: Editors = None,
    judge: JudgeNames = None,
    no_judge: Annotated[bool, typer.Option("--no-judge", help="Rule parts only: a partial score.")] = False,
    granularity: Annotated[Literal["both", "simple", "dense"], typer.Option(help="Which instructions.")] = "both",
    gain: Annotated[
        Literal["lpips", "au"] | None, typer.Option(help="REG by LPIPS (needs `make torch`), or by blendshapes.")
    ] = None,
    normaliser: Annotated[str | None, typer.Option(help="Of BG: exp20, exp10, linear255, linear50.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seeds every edit.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many sources, by a fixed shuffle.")] = None,
    budget: Annotated[float | None, typer.Option(min=0, help="Dollars for this run.")] = None,
    drift: Annotated[
        Literal["auto", "now", "never"] | None,
        typer.Option(help="Judge 50 stored outputs again: where answers of other days stand beside new ones, or now."),
    ] = None,
    run: Annotated[str | None, typer.Option("--run", help="Name of the run; made of data set and editors.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="A YAML file, as docs/scoring.md has it.")] = None,
    sets: ScoreSets = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and price it; measure and ask nothing.")] = False,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Score editors: FED-Score and its parts, for simple and dense instructions.

    Every editor edits every source of the data set. Each output is measured against its source and its ground truth
    (identity, background, expression gain) and judged by models outside (quality, consistency, likeness). The score is
    fidelity × alignment × gain per output, then the mean.

    `fedbench score DATA --editor copy --editor lazy=warp:intensity=0.3 --judge Gemini-2.5-Pro` scores two;
    `--editor outputs:root=DIR/{granularity}` scores pictures that you made elsewhere. With `--no-judge` no key is
    needed: the result is a partial score, of the rule parts alone.

    Judges see two pictures in both orders, unless --set judging.orders=given. Where old answers stand beside new ones,
    50 of the old outputs are judged again, and it is printed how far a judge has drifted; no stored answer is replaced.

    The price is told first. What was measured or answered is kept in the workspace: a second run does what is
    missing, and another `--normaliser` or `--set cut.sigma=1` runs no model and asks nothing.
    The rows lie in runs/NAME/scores/scores.parquet, for `fedbench leaderboard`.
    """
    from flows.score_console import score_and_show
    from flows.score_options import score_config

    if no_judge and judge:
        raise ConfigError("--no-judge and --judge contradict each other", "give one of them")
    options: dict[str, Any] = {
        "name": run,
        "seed": seed,
        "limit": limit,
        "calls.budget": budget,
        "cut.normaliser": normaliser,
        "cut.gain": gain,
        "drift.when": drift,
    }
    given = {name: value for name, value in options.items() if value is not None}
    told = [f"granularities=[{granularity}]"] if granularity != "both" else []
    told += ["measure.distance=null"] if gain == "au" else []
    told += ["judges=[]"] if no_judge else []
    chosen = score_config(
        dataset,
        editors=editor or (),
        judges=judge or (),
        options=given,
        file=config,
        sets=[*told, *(sets or ())],
    )
    if not chosen.judges and not no_judge:
        raise ConfigError(
            "nothing says who judges", "give --judge MODEL, or --no-judge for a partial score of the rule parts"
        )
    score_and_show(workspace, chosen, dry_run=dry_run, as_json=json)
