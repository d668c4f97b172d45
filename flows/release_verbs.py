"""The verbs that pass a finished data set on: publish, hydrate, export."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.options import load_config
from flows.verbs import AsJson, ConfigFile, Preset, RunName, Sets, Workspace, in_words

app = typer.Typer()

# As `tasks.dataset.export` has them, which nobody who asks for help should wait for.
Shape = Literal["diffusers", "jsonl", "webdataset", "preference"]
Out = Annotated[Path, typer.Option("--out", help="Folder to write; what fedbench wrote there before is replaced.")]


@app.command()
@in_words
def publish(
    release: Annotated[
        Literal["full", "index"],
        typer.Option(help="index: everything but pictures. full: with them, where every licence allows it."),
    ],
    workspace: Workspace = Path("workspace"),
    run: RunName = None,
    pack: Annotated[bool, typer.Option("--pack", help="Also write the gated pack of edited pictures.")] = False,
    rejected: Annotated[
        bool, typer.Option(help="Whether pictures of rejected edits are in the release and in the pack.")
    ] = True,
    acknowledge: Annotated[
        list[str] | None,
        typer.Option(metavar="POOL", help="You may pass this pool's pictures on, whatever its licence says."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for `full`, `index` and `pack`; else in the workspace.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Make a release of a finished run's data set; nothing is computed anew.

    The data set in the workspace stays as it is: it is your local copy.
    """
    from flows.releases import publish_and_show

    publish_and_show(
        workspace,
        run,
        release,
        pack=pack,
        rejected=rejected,
        acknowledge=acknowledge or (),
        out=out,
        as_json=json,
    )


@app.command()
@in_words
def hydrate(
    index: Annotated[Path, typer.Argument(help="An index release.")],
    pack: Annotated[Path, typer.Option("--pack", help="The pack that belongs to it.")],
    out: Out,
    preset: Preset = None,
    config: ConfigFile = None,
    sets: Sets = None,
    json: AsJson = False,
) -> None:
    """Rebuild the full data set from an index, its pack and your own copy of the sources, every hash checked.

    Of the config only `pools` counts. If anything is missing or different, it is listed by key, nothing is written,
    and the exit code is 3.
    """
    from flows.releases import hydrate_and_show

    if not hydrate_and_show(index, pack, load_config(preset, config, sets or ()), out, as_json=json):
        raise typer.Exit(3)


@app.command()
@in_words
def export(
    folder: Annotated[Path, typer.Argument(help="A data set with its pictures.")],
    shape: Annotated[Shape, typer.Option("--for", help="What will read it.")],
    out: Out,
    prompt: Annotated[
        Literal["simple", "dense"], typer.Option(help="Which instruction becomes the prompt.")
    ] = "simple",
    json: AsJson = False,
) -> None:
    """Write the triplets as training scripts read them.

    diffusers: Parquet with input_image, edit_prompt, edited_image. jsonl: metadata.jsonl and pictures (imagefolder).
    webdataset: tar shards. preference: the ground truth as chosen, the finalist that review did not choose as rejected.
    """
    from flows.releases import export_and_show

    export_and_show(folder, shape, out, prompt, as_json=json)
