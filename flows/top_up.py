"""What `fedbench top-up` prints: the cells that are short, and the change of the config that gives them candidates."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from flows.console import OUT, opened, print_json
from schemas.config import TopUp
from schemas.sections import Adapter
from tasks.dataset.shortfall import Shortfall, shortfall
from tasks.engine.errors import ConfigError


def show_top_up(
    workspace: Path, name: str | None, editor: str | None, called: str, attempts: int, *, as_json: bool
) -> None:
    """Show what every cell lacks, and what topping up the short ones takes; nothing is changed."""
    run = opened(workspace, name)
    found = shortfall(run, None if editor is None else _adapter(editor), called, attempts)
    option = f"generate.measure.top_up={_flow([_plain(entry) for entry in found.top_up])}"
    saved = workspace / "runs" / run.config.name / "config.json"
    command = f"fedbench build -w {shlex.quote(str(workspace))} --config {shlex.quote(str(saved))} --set "
    command = command + shlex.quote(option) if found.top_up else ""
    if as_json:
        cells = [asdict(cell) | {"short": cell.short} for cell in found.cells]
        print_json(
            {
                "run": run.config.name,
                "target": found.target,
                "cells": cells,
                "short": sum(cell.short for cell in found.cells),
                "new_edits": found.new_edits,
                "votes": found.votes,
                "top_up": [_plain(entry) for entry in found.top_up],
                "command": command,
                "notes": _notes(found, run.config.rank.cut.top_k),
            }
        )
        return
    OUT.print(_table(found))
    for note in _notes(found, run.config.rank.cut.top_k):
        OUT.print(Text(note))
    if command:
        OUT.print(
            f"Topping the short cells up owes {found.new_edits} new edits and at most {found.votes} votes; "
            "what is there is not made again. In the config:"
        )
        lines = [
            "generate:",
            "  measure:",
            "    top_up:",
            *(f"      - {_flow(_plain(entry))}" for entry in found.top_up),
        ]
        OUT.print(Text("\n".join(lines)), soft_wrap=True)
        OUT.print(Text(f"or      {command}"), soft_wrap=True)


def _adapter(words: str) -> Adapter:
    """An editor as `--editor` gives it: its name, or YAML with its parameters."""
    try:
        value = yaml.safe_load(words)
        return Adapter.model_validate({"name": value} if isinstance(value, str) else value)
    except (yaml.YAMLError, ValidationError):
        raise ConfigError(
            f"--editor {words} names no editor", "give a name, or '{name: NAME, params: {KEY: VALUE}}'"
        ) from None


def _plain(entry: TopUp) -> dict[str, Any]:
    """An entry as one would write it."""
    values = entry.model_dump(mode="json", exclude_defaults=True)
    if entry.editor is not None and not entry.editor.params:
        values["editor"] = entry.editor.name
    return values


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6).strip()


def _table(found: Shortfall) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("source → target", no_wrap=True)
    for head in ("even", "natural", "has", "short", "sources", "open", "yield", "new"):
        table.add_column(head, justify="right", no_wrap=True)
    for cell in found.cells:
        table.add_row(
            f"{cell.source} → {cell.target}",
            str(cell.wanted),
            str(cell.natural),
            str(cell.has),
            Text(str(cell.short), style="yellow") if cell.short else "–",
            str(cell.sources),
            str(cell.open),
            f"{cell.truths} of {cell.edits}" if cell.edits else "–",
            str(cell.new_edits or "–"),
        )
    table.add_section()
    total = [sum(getattr(cell, field) for cell in found.cells) for field in ("wanted", "natural", "has", "short")]
    table.add_row("all", *map(str, total), "", "", "", str(found.new_edits or "–"), style="bold")
    return table


def _notes(found: Shortfall, top_k: int) -> list[str]:
    """What the numbers do not say by themselves."""
    short = [cell for cell in found.cells if cell.short]
    over = "the target" if found.target else "all triplets, as there is no target,"
    notes = [f"Even: {over} over all cells, rounded down. Natural: triplets before selection; has: after it."]
    if not short:
        return [*notes, "No cell is short."]
    notes.append(
        "Sources: photos of that expression that passed screening; open: without a triplet in the cell. "
        "Yield: triplets of the candidates that this editor made there. New: edits that a top-up owes. "
        f"More candidates guarantee nothing: of all candidates of a source the best {top_k} go to review."
    )
    if beyond := sum(min(cell.short, cell.beyond) for cell in short):
        notes.append(f"{beyond} are there, beyond the sources that the target needed: a higher publish.cut.margin.")
    if bare := [cell for cell in short if not cell.sources]:
        names = ", ".join(dict.fromkeys(str(cell.source) for cell in bare))
        notes.append(f"No source shows {names}: only more photos fill those {len(bare)} cells.")
    if found.same_again:
        notes.append(
            "The editor knows no seed, so another attempt would be the same picture: name a second one with --editor, "
            "or the same with other parameters: --editor '{name: NAME, params: {KEY: VALUE}}' --called OTHER"
        )
    return notes
