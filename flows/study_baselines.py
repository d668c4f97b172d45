"""What `fedbench study baselines` prints."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from tasks.leaderboard.entrants import opened
from tasks.study.baselines import compared

OTHERWISE: Final = 7


def show_baselines(workspace: Path, name: str, *, as_json: bool) -> int:
    """Compare, and say what is off.

    Returns:
        The exit code: 0 where every number is within its tolerance, else 7.

    Raises:
        ConfigError: The run is none of the baselines'.
    """
    (run,) = opened(workspace.resolve(), [name])
    found = compared(run)
    off = [one for one in found if not one.fits]
    if as_json:
        print_json({"ok": not off, "numbers": [asdict(one) | {"fits": one.fits} for one in found]})
        return OTHERWISE if off else 0
    table = Table("editor", "number", box=None, header_style="bold", pad_edge=False)
    for column in ("ours", "here", "may differ by", ""):
        table.add_column(column, justify="right")
    for one in found:
        here = "–" if one.found is None else f"{one.found:.4f}"
        verdict = Text("ok" if one.fits else "OFF", style="" if one.fits else "bold red")
        table.add_row(Text(one.editor), one.column, f"{one.ours:.4f}", here, f"{one.tolerance:g}", verdict)
    OUT.print(table)
    if off:
        OUT.print(f"{len(off)} of {len(found)} numbers are off: this machine measures otherwise than ours did.")
    else:
        OUT.print(f"All {len(found)} numbers are within their tolerance: this machine measures as ours did.")
    return OTHERWISE if off else 0
