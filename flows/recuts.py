"""What `fedbench recut` prints: who would move under other thresholds."""

import re
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from flows.console import OUT, opened, print_json
from tasks.engine.errors import ConfigError
from tasks.engine.recut import compare
from tasks.pipeline import narrowed


def show_recut(workspace: Path, name: str | None, sets: Sequence[str], *, as_json: bool) -> None:
    """Compare a run with itself under other thresholds, and print the moves."""
    for option in sets:
        if not re.match(r"\w+\.cut[.=]", option):
            raise ConfigError(f"--set {option} is not a threshold", "give stage.cut.name=value; use build for others")
    if not sets:
        raise ConfigError("nothing to recut", "give at least one --set stage.cut.name=value")
    old, new = opened(workspace, name), opened(workspace, name, sets)
    narrowed(old, old.executor.commits())
    del new.executor.shards[len(old.executor.shards) :]
    found = compare(old.executor, new.executor)
    if as_json:
        print_json(
            {
                "triplets_before": found.triplets_before,
                "triplets_after": found.triplets_after,
                "moved": [{"key": str(move.key), "before": move.before, "after": move.after} for move in found.moves],
                "unmeasured": {stage: [str(key) for key in keys] for stage, keys in found.unmeasured.items()},
            }
        )
        return
    table = Table(title=f"{len(found.moves)} rows move", title_justify="left")
    for column in ("row", "before", "after"):
        table.add_column(column, overflow="fold")
    for move in found.moves:
        table.add_row(Text(str(move.key)), move.before, move.after)
    OUT.print(table)
    OUT.print(f"Triplets: {found.triplets_before} before, {found.triplets_after} after.")
    for stage, keys in found.unmeasured.items():
        if keys:
            OUT.print(f"{len(keys)} rows would enter '{stage}' and wait there for a model: run `fedbench build`.")
