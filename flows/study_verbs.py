"""`fedbench study`: how far metrics agree with people."""

import re
from pathlib import Path
from typing import Annotated

import typer

from flows.verbs import AsJson, Workspace, in_words

app = typer.Typer()
study_app = typer.Typer(no_args_is_help=True, help="How far metrics agree with people.")
app.add_typer(study_app, name="study")


@study_app.command()
@in_words
def agreement(
    pairs: Annotated[Path, typer.Argument(help="A .csv, .jsonl or .parquet file of pairs.")],
    scores: Annotated[
        list[str] | None, typer.Option("--scores", metavar="RUN", help="Also the metrics of this run. Repeatable.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:K=V,...]", help="Measure these on the pictures: lpips,sface,... Repeatable."),
    ] = None,
    lower: Annotated[
        list[str] | None, typer.Option("--lower", metavar="METRIC", help="Lower is better. Repeatable.")
    ] = None,
    near_one: Annotated[
        list[str] | None, typer.Option("--near-one", metavar="METRIC", help="1 is best, as of a ratio. Repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Say how often each metric prefers the output that most people prefer.

    A row of PAIRS is two outputs for one source and instruction: `source`, `a`, `b` (who made them); for each question
    `QUESTION_1`, `QUESTION_2`, `QUESTION_3` (one person each: a, b or same); for each metric `METRIC_a`, `METRIC_b`.
    With `--scores RUN`, and `triplet` and `granularity` in each row, FED-Score, its parts and its ablations are taken
    from a scoring run.

    `--metrics` measures the usual ones on the pictures of the run, or of the columns `source_image`, `a_image`,
    `b_image`, `truth_image` (and `instruction`): clip_i, clip_t, dino, lpips, sface, arcface, psnr, ssim, l1; of whole
    pictures (CLIP-I), faces (CLIP-I_F), against the ground truth (CLIP-I_GT, CLIP-I_F,GT). CLIP and DINO are named:
    `--metrics dino:model=facebook/dinov2-base,revision=COMMIT`. Every number is measured once per workspace.

    A side needs more than half of all who were asked; pairs without that are left out and counted. A metric's tie
    counts ½, a missing number leaves the pair out of that metric alone. Intervals are 95 %, bootstrap over sources.
    """
    from flows.study_console import show_agreement

    # A comma ends a metric, unless a parameter follows.
    chosen = [name for text in metrics or () for name in re.split(r",(?!\w+=)", text) if name.strip()]
    show_agreement(
        workspace,
        pairs,
        scores or (),
        metrics=chosen,
        lower=lower or (),
        near_one=near_one or (),
        seed=seed,
        as_json=json,
    )
