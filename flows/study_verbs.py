"""`fedbench study`: how far metrics agree with people."""

import re
from pathlib import Path
from typing import Annotated

import typer

from flows.verbs import AsJson, Workspace, in_words
from tasks.engine.errors import ConfigError

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


Study = Annotated[str, typer.Argument(metavar="STUDY", help="A study's name, as `study pairs` gave it.")]


@study_app.command()
@in_words
def pairs(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Scoring runs on one data set.")],
    name: Annotated[str, typer.Option("--name", help="What the study is called.")],
    number: Annotated[int, typer.Option("--number", min=1, help="Pairs, at most.")] = 200,
    annotators: Annotated[
        list[str] | None, typer.Option("--annotator", help="Who is asked; ann1 to ann3 unless told. Repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the pairs.")] = 0,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Draw pairs of outputs for people to compare, balanced over editors, expressions and sources.

    A pair is two editors' outputs for one triplet and instruction. The same runs and seed draw the same pairs; a larger
    `--number` adds to them. Equal pictures are no pair. Then `fedbench study open STUDY`.
    """
    from flows.study_pairs import show_made

    show_made(workspace, runs, number, name=name, seed=seed, annotators=annotators or (), as_json=json)


@study_app.command("open")
@in_words
def open_(study: Study, workspace: Workspace = Path("workspace"), json: AsJson = False) -> None:
    """Make a Label Studio project per annotator, and the tasks that are not there yet. Run it as often as you like.

    Each sees a photo and two edits, A and B as a coin says, without names: which is better overall, follows the
    request, keeps the person. `fedbench review up --with-annotators 3` starts the server.
    """
    from flows.study_pairs import show_opened

    show_opened(workspace, study, as_json=json)


@study_app.command()
@in_words
def collect(
    study: Study,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.csv", help="Where the pairs go; not there: no file.")
    ] = None,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Fetch people's answers, and write the file of pairs that `fedbench study agreement` reads.

    Answers that were collected stay, whatever becomes of the server. What was not counted is listed, with the reason.
    """
    from flows.study_pairs import show_collected

    if out is not None and out.suffix != ".csv":
        raise ConfigError(f"--out {out}: the file of pairs is CSV", "name it .csv")
    show_collected(workspace, study, out, as_json=json)


@study_app.command()
@in_words
def simulate(
    study: Study,
    noise: Annotated[float, typer.Option(min=0, max=1, help="Share of answers drawn at random.")] = 0.1,
    bias: Annotated[float, typer.Option(min=0, max=1, help="Share of answers that are A, whatever is shown.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Answers per person, at most.")] = None,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Play the annotators, with a known bias and noise, through the real API: for demos and tests, never for data."""
    from flows.study_pairs import show_played
    from tasks.boards.simulate import Behaviour

    show_played(workspace, study, Behaviour(noise, bias, seed, limit), as_json=json)


@study_app.command()
@in_words
def baselines(
    run: Annotated[str, typer.Argument(help="A scoring run of the five baselines on the demo's data set.")],
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """Compare a run of the baselines with the numbers that ship: does this machine measure as ours did?

    docs/scoring.md has the two commands that make the run. The exit code is 7 where a number is off by more than its
    tolerance (.01 of a score or a cosine, .5 of an RMSE, .02 of a ratio), and the table says which.
    """
    from flows.study_baselines import show_baselines

    raise typer.Exit(show_baselines(workspace, run, as_json=json))
