"""What the verbs share: their options, and errors in one line."""

import logging
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from flows import logs, quiet
from flows.options import presets
from tasks.engine import places
from tasks.engine.errors import ConfigError, FedbenchError
from tasks.report.plain import plain

Workspace = Annotated[
    Path,
    typer.Option(
        "--workspace", "-w", envvar="FEDBENCH_WORKSPACE", help="Where everything lies: a folder, or s3://BUCKET/FOLDER."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also show Prefect's log.")]
RunName = Annotated[str | None, typer.Option("--run", help="Which run of the workspace; needless with only one.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one value: --set rank.cut.top_k=3")
]
Preset = Annotated[str | None, typer.Option(help=f"Start from one of: {', '.join(presets())}.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A YAML file, laid over the preset.")]


# Data sets that are only read. Everything else but the workspace is written, or is somebody's own.
_READ: Final = ("a", "b", "folder", "index", "pack", "like", "data_set", "dataset")


def _placed(name: str, value: Any) -> Any:
    """An argument, with the folder of copies in a bucket's place.

    Raises:
        ConfigError: It says where to write, or what to read that is no data set, and is a bucket.
    """
    if not isinstance(value, str | Path) or not places.in_bucket(value):
        return value
    if name == "workspace":
        return places.place(value)
    if name in _READ:
        return type(value)(places.place(value, everything=True))
    raise ConfigError(f"{value}: only --workspace and data sets to read may lie in a bucket", "give a local folder")


def in_words(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb whose errors become one line on stderr and an exit code, never a traceback."""

    @wraps(verb)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            quiet.settle(verbose=kwargs.get("verbose", False))
            with places.settled():
                verb(*args, **{name: _placed(name, value) for name, value in kwargs.items()})
        except FedbenchError as error:
            if logs.as_lines():
                logging.getLogger("fedbench").error("%s", error)
                raise typer.Exit(error.exit_code) from None
            typer.secho(f"fedbench: {plain(' '.join(error.message.split()))}", err=True, fg="red")
            if error.hint:
                typer.echo(f"  {plain(' '.join(error.hint.split()))}", err=True)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            typer.echo("fedbench: stopped; run the same command again to go on", err=True)
            raise typer.Exit(130) from None

    return wrapped
