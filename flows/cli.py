"""The `fedbench` command. Nothing heavy is imported before a verb runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from flows import (
    call_verbs,
    edition_verbs,
    editor_verbs,
    leaderboard_verbs,
    panel_verbs,
    prompt_verbs,
    rate_verbs,
    release_verbs,
    review_verbs,
    score_verbs,
    server_verbs,
    study_verbs,
)
from flows.logs import log_options
from flows.options import load_config
from flows.verbs import AsJson, ConfigFile, Preset, RunName, Sets, Verbose, Workspace, in_words
from tasks.engine.errors import ConfigError

app = typer.Typer(
    name="fedbench",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Builds triplets (source photo, instruction, ground-truth edit) for facial-expression editing.\n\n"
    "Start with `fedbench demo`: a small real data set from photos inside installed packages, with no key, no GPU "
    "and no download. Then `fedbench build --preset folder --set pools.0.params.root=PHOTOS`.\n\n"
    "Exit codes: 0 done, 2 config, 3 contract (a bug, or a check that found something), 4 stopped (budget, quota), "
    "5 too many failures, 6 waiting for review, 7 environment.",
)
models_app = typer.Typer(no_args_is_help=True, help="The model files: what is here, where it comes from, its licence.")
app.add_typer(models_app, name="models")
pools_app = typer.Typer(no_args_is_help=True, help="Your own copies of published photo sets.")
app.add_typer(pools_app, name="pools")
app.add_typer(panel_verbs.app, name="panel")
app.add_typer(prompt_verbs.app, name="prompts")
app.add_typer(review_verbs.app, name="review")
app.add_typer(server_verbs.app, name="server")
app.add_typer(rate_verbs.app)
app.add_typer(release_verbs.app)
app.add_typer(edition_verbs.app)
app.add_typer(call_verbs.app)
app.add_typer(score_verbs.app)
app.add_typer(leaderboard_verbs.app)
app.add_typer(study_verbs.app)
app.add_typer(editor_verbs.app)


app.callback()(log_options)


@app.command()
@in_words
def demo(
    workspace: Workspace = Path("workspace"),
    sets: Sets = None,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Build a small real data set from the sample photos, in about a minute.

    Run it twice: the second time there is nothing left to do.
    """
    from flows.console import build_and_show

    build_and_show(workspace, load_config("demo", None, sets or ()), as_json=json)


@app.command()
@in_words
def build(
    workspace: Workspace = Path("workspace"),
    preset: Preset = None,
    config: ConfigFile = None,
    sets: Sets = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Show the whole config and stop.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only screen; then say what the rest would take and give.")
    ] = False,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Build a data set, or bring it up to date: what is done already is not done again.

    The config is the preset, then the file, then each `--set`. A change under `cut` measures nothing again.
    """
    from flows.console import build_and_show, show_config

    if preset is None and config is None:
        raise ConfigError("nothing says what to build", "give --preset or --config (or both)")
    chosen = load_config(preset, config, sets or ())
    if print_config:
        show_config(chosen, as_json=json)
    elif dry_run:
        from flows.forecasts import show_dry_run

        show_dry_run(workspace, chosen, as_json=json)
    else:
        build_and_show(workspace, chosen, as_json=json)


@app.command()
@in_words
def forecast(
    workspace: Workspace = Path("workspace"),
    run: RunName = None,
    preset: Preset = None,
    config: ConfigFile = None,
    sets: Sets = None,
    json: AsJson = False,
) -> None:
    """Say what a build would take and give: rows, calls, dollars, hours, disk, people; whether a target is in reach.

    Of a config (`--preset`, `--config`) or of a run of the workspace. It rests on what was measured there, and else on
    assumptions (`forecast` in the config), and says which. It is saved: a build's pilot is compared with it.
    """
    from flows.forecasts import show_forecast

    chosen = load_config(preset, config, sets or ()) if preset or config else None
    if chosen and run:
        raise ConfigError("two things say what to forecast", "give --run, or --preset and --config")
    show_forecast(workspace, chosen, run, sets or (), as_json=json)


@app.command()
@in_words
def status(
    workspace: Workspace = Path("workspace"), run: RunName = None, sets: Sets = None, json: AsJson = False
) -> None:
    """Show what is done and what is due, stage by stage, and what was asked outside, without doing any of it.

    With `--set`: what a build with that change would reuse.
    """
    from flows.statuses import show_status

    show_status(workspace, run, sets or (), as_json=json)


@app.command()
@in_words
def explain(
    key: Annotated[str, typer.Argument(help="As the report shows it, e.g. samples/astronaut:sad@warp#0.")],
    workspace: Workspace = Path("workspace"),
    run: RunName = None,
    json: AsJson = False,
) -> None:
    """Tell one row's life: source, candidates, votes, numbers, review, instructions, prompts."""
    from flows.console import show_life

    show_life(workspace, run, key, as_json=json)


@app.command()
@in_words
def recut(
    workspace: Workspace = Path("workspace"), run: RunName = None, sets: Sets = None, json: AsJson = False
) -> None:
    """Decide a finished run again under other thresholds and say who moves. No model, no call, nothing written.

    `fedbench build` with the same `--set` makes it so.
    """
    from flows.recuts import show_recut

    show_recut(workspace, run, sets or (), as_json=json)


@app.command("top-up")
@in_words
def top_up(
    workspace: Workspace = Path("workspace"),
    editor: Annotated[
        str | None, typer.Option(metavar="NAME", help="A second editor, or YAML: '{name: N, params: {K: V}}'.")
    ] = None,
    called: Annotated[str, typer.Option(metavar="NAME", help="What rows call it; its own name if left out.")] = "",
    attempts: Annotated[int, typer.Option(min=1, max=10, help="Candidates per source and short cell.")] = 1,
    run: RunName = None,
    json: AsJson = False,
) -> None:
    """Show which cells of source × target expression are short of an even share, and how to give them candidates.

    Prints the lines for the config, and what they would cost; changes nothing itself.
    """
    from flows.top_up import show_top_up

    show_top_up(workspace, run, editor, called, attempts, as_json=json)


@app.command()
@in_words
def verify(folder: Annotated[Path, typer.Argument(help="A published data set.")], json: AsJson = False) -> None:
    """Check a data set, a release or a pack by recomputing hashes, votes, verdicts, ranks and counts from its rows."""
    from flows.console import show_faults

    if not show_faults(folder, as_json=json):
        raise typer.Exit(3)


@app.command()
@in_words
def leakage(
    a: Annotated[str, typer.Argument(help="What must stay unseen, such as the benchmark.")],
    b: Annotated[str, typer.Argument(help="What may lose sources, such as the training set.")],
    identity: Annotated[str, typer.Option(help="Identity model.")] = "sface",
    threshold: Annotated[float | None, typer.Option(help="Cosine from which it is one person.")] = None,
    workspace: Workspace = Path("workspace"),
    json: AsJson = False,
) -> None:
    """List the sources of B that share a clip, a picture or a person with A.

    Each is a workspace (PATH or PATH#run), a data set, or a folder of images. Exit 0: all was checked, nothing leaks;
    3: something leaks; 7: nothing seen, but something could not be checked (no picture, no face, another model).
    """
    from flows.leakage import show_leaks

    code = show_leaks(a, b, identity=identity, threshold=threshold, workspace=workspace, as_json=json)
    if code:
        raise typer.Exit(code)


@app.command()
@in_words
def doctor(workspace: Workspace = Path("workspace"), json: AsJson = False) -> None:
    """Say what is installed, reachable and missing here, and what each absence costs."""
    from flows.doctor import show_health

    if not show_health(workspace, as_json=json):
        raise typer.Exit(7)


@models_app.command("list")
@in_words
def models_list(json: AsJson = False) -> None:
    """List the model files with state, size, licence, origin, and what was tuned against them."""
    from flows.console import show_models

    show_models(as_json=json)


@models_app.command("pull")
@in_words
def models_pull(
    name: Annotated[str, typer.Argument(help="As `fedbench models list` shows it.")], json: AsJson = False
) -> None:
    """Fetch or convert one model file; its sha256 is checked whatever the origin."""
    from flows.console import show_pulled

    show_pulled(name, as_json=json)


@models_app.command("check")
@in_words
def models_check(json: AsJson = False) -> None:
    """Hash every model file that is here; exit 7 if one is not what it should be."""
    from flows.console import show_models

    if not show_models(as_json=json):
        raise typer.Exit(7)


@pools_app.command("inspect")
@in_words
def pools_inspect(
    kind: Annotated[str, typer.Argument(help="sfew, dfew or rafdb.")],
    root: Annotated[Path, typer.Argument(help="The folder your copy lies in.")],
    decode: Annotated[bool, typer.Option("--decode", help="Decode every picture, not only its header.")] = False,
    json: AsJson = False,
) -> None:
    """Count what a copy holds beside what was published, and list what is missing, broken, double or shared."""
    from flows.pools import show_inspection

    show_inspection(kind, root, decode_all=decode, as_json=json)


def main() -> None:
    """Entry point of the `fedbench` command."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="fedbench")


if __name__ == "__main__":
    main()
