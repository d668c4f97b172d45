"""What `fedbench study pairs`, `open`, `collect` and `simulate` do and print."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from flows.console import ERR, OUT, print_json
from schemas.reviewing import ReviewCut
from schemas.studies import StudyPair
from tasks.boards.collecting import in_short
from tasks.boards.simulate import Behaviour
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.leaderboard.entrants import opened
from tasks.study.studies import (
    collect_study,
    make,
    open_study,
    pairs_file,
    play_study,
    read_study,
    write_pairs_file,
)


def show_made(
    workspace: Path,
    runs: Sequence[str],
    number: int,
    *,
    name: str,
    seed: int,
    annotators: Sequence[str],
    as_json: bool,
) -> None:
    """Draw the pairs, and say how they are spread."""
    workspace = workspace.resolve()
    store = Store(workspace)
    asked = tuple(annotators) or ReviewCut().annotators
    with store.lock():
        try:
            made = make(store, opened(workspace, runs), number, name=name, seed=seed, annotators=asked)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ConfigError(f"{where}: {first['msg']}", "names are of a-z, 0-9, dots and dashes") from None
    spread = _spread(made.pairs)
    if as_json:
        told = {"study": made.study.model_dump(mode="json"), "pairs": len(made.pairs), "equal": made.equal}
        print_json(told | {"spread": spread})
        return
    fewer = f" (of {made.wanted} that were asked for: there are no more)" if len(made.pairs) < made.wanted else ""
    OUT.print(Text(f"{name}: {len(made.pairs)} pairs of outputs on {made.study.dataset} {made.study.edition}{fewer}"))
    for what, counts in spread.items():
        OUT.print(Text(f"{what:<13} {', '.join(f'{key} {count}' for key, count in counts.items())}"), soft_wrap=True)
    if made.equal:
        OUT.print(f"left out      {made.equal} pairs of equal pictures")
    OUT.print(Text(f"next          fedbench study open {name}"))


def _spread(pairs: Sequence[StudyPair]) -> dict[str, dict[str, int]]:
    counted: dict[str, Counter[str]] = {
        "editors": Counter(editor for pair in pairs for editor in (pair.a, pair.b)),
        "targets": Counter(str(pair.target) for pair in pairs),
        "instructions": Counter(str(pair.granularity) for pair in pairs),
    }
    told = {what: dict(sorted(counts.items())) for what, counts in counted.items()}
    per_source = Counter(Counter(pair.subject for pair in pairs).values())
    return told | {"a source": {f"{count} pairs:": of for count, of in sorted(per_source.items())}}


def show_opened(workspace: Path, name: str, *, as_json: bool) -> None:
    """Open the study, and say where it is."""
    store = Store(workspace.resolve())
    projects = open_study(
        store, read_study(store, name), lambda who, done, total: ERR.print(Text(f"{who}: {done} of {total} tasks"))
    )
    if as_json:
        print_json([asdict(project) for project in projects])
        return
    table = Table("annotator", box=None, header_style="bold", pad_edge=False)
    for column in ("tasks", "new"):
        table.add_column(column, justify="right")
    table.add_column("where", no_wrap=True)
    for one in projects:
        table.add_row(Text(one.annotator), f"{one.tasks}", f"{one.added}", Text(one.url))
    OUT.print(table)


def show_collected(workspace: Path, name: str, out: Path | None, *, as_json: bool) -> None:
    """Collect, write the file of pairs, and say how far people are."""
    store = Store(workspace.resolve())
    study = read_study(store, name)
    found = collect_study(store, study)
    if out is not None:
        write_pairs_file(pairs_file(store, study), out)
    if as_json:
        told: dict[str, Any] = asdict(found)
        print_json(told | {"file": str(out) if out else None})
        return
    OUT.print(f"{found.fresh} answers are new.")
    for note in in_short(found.notes):
        OUT.print(Text(f"· {note}"), soft_wrap=True)
    for who, count in found.answered.items():
        OUT.print(Text(f"{who:<13} {count} of {found.pairs} pairs"))
    if found.played:
        OUT.print(f"simulated     {found.played} answers are played: nothing here says anything of people")
    if out is None:
        OUT.print(Text(f"next          fedbench study collect {name} --out pairs.csv"))
    else:
        scores = " ".join(f"--scores {run}" for run in study.runs)
        OUT.print(Text(f"pairs         {out}"), soft_wrap=True)
        OUT.print(Text(f"next          fedbench study agreement {out} {scores}"), soft_wrap=True)


def show_played(workspace: Path, name: str, how: Behaviour, *, as_json: bool) -> None:
    """Let played annotators answer."""
    store = Store(workspace.resolve())
    given = play_study(store, read_study(store, name), how)
    if as_json:
        print_json(given)
    else:
        OUT.print(Text(f"played: {', '.join(f'{who} {count} answers' for who, count in given.items())}"))
