"""`fedbench prompts`: every text that steers a model, as the model gets it."""

import json as json_text
from typing import Annotated

import typer

import prompts
from flows.verbs import AsJson, in_words
from schemas.answers import FORMS
from tasks.engine.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="Every text that steers a model: version, hash, wording.")


@app.command("list")
@in_words
def list_prompts(json: AsJson = False) -> None:
    """List the prompts with version and hash. A changed wording is a changed hash, and is asked anew."""
    from rich.table import Table

    from flows.console import OUT, print_json

    rows = [
        {"name": name, "version": prompts.version_of(name), "sha256": prompts.sha256_of(name)}
        for name in prompts.names()
    ]
    if json:
        print_json(rows)
        return
    table = Table("prompt", "version", "sha256", "answer")
    for row in rows:
        name = str(row["name"])
        form = ", ".join(FORMS[name].model_fields) if name in FORMS else "–"
        table.add_row(name, str(row["version"]), str(row["sha256"])[:12], form)
    OUT.print(table)


@app.command()
@in_words
def show(
    name: Annotated[str, typer.Argument(help="As `fedbench prompts list` shows it.")], json: AsJson = False
) -> None:
    """Print what a model gets: the text with example values, and the JSON schema its answer is held to.

    Pictures go before the text, in the order it speaks of them. Where a provider takes no schema, the text alone asks.
    """
    from flows.console import print_json

    if name not in prompts.names():
        raise ConfigError(f"unknown prompt '{name}'", f"choose one of: {', '.join(prompts.names())}")
    text, schema = prompts.example(name), FORMS[name].model_json_schema() if name in FORMS else None
    if json:
        values = prompts.EXAMPLES.get(name, {})
        print_json(
            {
                "name": name,
                "version": prompts.version_of(name),
                "sha256": prompts.sha256_of(name),
                "values": values,
                "text": text,
                "schema": schema,
            }
        )
        return
    typer.secho(f"{name}  version {prompts.version_of(name)}  sha256 {prompts.sha256_of(name)}", dim=True)
    typer.echo(f"\n{text}\n")
    if schema:
        typer.secho("schema of the answer", dim=True)
        typer.echo(json_text.dumps(schema, indent=1))
