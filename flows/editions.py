"""What the verbs about editions print."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from schemas.outcomes import Status
from tasks.dataset.diff import Changed, Column, Difference, Moved, diff
from tasks.engine.errors import ConfigError
from tasks.engine.places import fetched, in_bucket, place

# Lines of a table for people; JSON has them all.
_SHOWN: Final = 30
_LONG: Final = 40


def data_set_folder(name: str, workspace: Path) -> Path:
    """The folder that an argument means: itself, or NAME/EDITION in the workspace.

    Raises:
        ConfigError: It is neither.
    """
    if in_bucket(name):
        return place(name, everything=True)
    inside = workspace / "datasets" / name
    for folder in (Path(name), inside):
        if (folder / "manifest.json").is_file():
            return fetched(folder)
    if Path(name).is_dir():
        return Path(name)  # a folder without a manifest is told so when it is read
    known = sorted(
        path.parent.relative_to(workspace / "datasets") for path in workspace.glob("datasets/*/*/manifest.json")
    )
    there = ", ".join(path.as_posix() for path in known) or "none"
    raise ConfigError(f"no data set '{name}', neither a folder nor in {workspace}", f"published there: {there}")


def show_difference(a: str, b: str, workspace: Path, *, as_json: bool) -> None:
    """Compare two data sets; tables for people, or JSON."""
    found = diff(data_set_folder(a, workspace), data_set_folder(b, workspace))
    if as_json:
        print_json(_plain(found))
        return
    names = [f"{side.name} {side.edition}" for side in (found.a, found.b)]
    if len(set(names)) == 1:
        names = [a, b]
    _sums(found, names)
    _settings(found, names)
    _funnel(found, names)
    _moves(f"not in {names[1]} any more", found.removed, "what became of it", "replaced by")
    _moves(f"new in {names[1]}", found.added, f"what it was in {names[0]}", "in place of")
    _changes(found.changed)


def _plain(found: Difference) -> dict[str, Any]:
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "kept": found.kept,
        "changed": [asdict(row) for row in found.changed],
        "removed": [asdict(row) for row in found.removed],
        "added": [asdict(row) for row in found.added],
        "settings": [asdict(row) for row in found.settings],
        "funnel": {
            stage: [side.model_dump(mode="json") if side else None for side in sides]
            for stage, sides in found.funnel.items()
        },
    }


def _side(manifest: Any) -> dict[str, Any]:
    return {"name": manifest.name, "edition": manifest.edition, "triplets": manifest.triplets}


def _sums(found: Difference, names: Sequence[str]) -> None:
    removed, added = len(found.removed), len(found.added)
    replaced = sum(bool(row.instead) for row in found.removed)
    OUT.print(Text(f"{names[0]} → {names[1]}", style="bold"), soft_wrap=True)
    OUT.print(
        f"{found.a.triplets} triplets − {removed} removed + {added} added = {found.b.triplets} triplets. "
        f"Of {found.kept} in both, {len(found.changed)} changed"
        + (f"; of {replaced} removed, the source has another ground truth now." if replaced else "."),
        highlight=False,
    )

    if core := found.b.core:
        kept = len(core.triplets) - len(core.lost)
        OUT.print(f"{names[1]} keeps {core.edition} as its core: {kept} of its {len(core.triplets)} triplets survive.")


def _settings(found: Difference, names: Sequence[str]) -> None:
    if not found.settings:
        OUT.print("Config, models, prompts and versions are the same.")
        return
    _table(
        "what was chosen and used",
        ("", *names),
        ((row.where, _short(row.before), _short(row.after)) for row in found.settings),
        len(found.settings),
    )


def _funnel(found: Difference, names: Sequence[str]) -> None:
    rows = []
    for stage, sides in found.funnel.items():
        kept = [f"{side.kept} of {side.owed}" if side else "–" for side in sides]
        whys: list[dict[str, int]] = [
            {**side.reasons, **({Status.WAITING: side.waiting} if side.waiting else {})} if side else {}
            for side in sides
        ]
        moved = {
            why: (whys[0].get(why, 0), whys[1].get(why, 0))
            for why in sorted({*whys[0], *whys[1]})
            if whys[0].get(why, 0) != whys[1].get(why, 0)
        }
        rows.append((stage, *kept, ", ".join(f"{why.replace('_', ' ')} {x} → {y}" for why, (x, y) in moved.items())))
    _table("how many were kept", ("stage", *names, "reasons that differ"), rows, len(rows))


def _moves(title: str, moves: Sequence[Moved], told: str, for_: str) -> None:
    if moves:
        others = [f"; {for_} {', '.join(move.instead)}" if move.instead else "" for move in moves]
        rows = ((move.id, f"{move.fate}{other}") for move, other in zip(moves, others, strict=True))
        _table(f"{len(moves)} {title}", ("triplet", told), rows, len(moves))


def _changes(changes: Sequence[Changed]) -> None:
    if changes:
        rows = ((row.id, "\n".join(_column(column) for column in row.columns)) for row in changes)
        _table(f"{len(changes)} changed", ("triplet", "stage and column: before → after"), rows, len(changes))


def _column(column: Column) -> str:
    before, after = _short(column.before), _short(column.after)
    values = f": {before} → {after}" if before != after else ""
    return f"{column.stage} {column.name}{values}"


def _short(value: Any) -> str:
    """A value on a line: nothing for None, numbers with four digits, long texts cut."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict) and value.keys() == {"name", "params"}:
        return f"{value['name']} ({_short(value['params'])})" if value["params"] else str(value["name"])
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(part)}" for name, part in value.items()) or "–"
    if isinstance(value, list | tuple):
        return ", ".join(map(_short, value)) or "–"
    text = str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> None:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for _, row in zip(range(_SHOWN), rows, strict=False):
        table.add_row(*(Text(cell) for cell in row))
    OUT.print(table)
    if count > _SHOWN:
        OUT.print(f"… and {count - _SHOWN} more; --json has them all.")
