"""What `fedbench leakage` prints."""

from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from flows.options import load_config
from schemas.screening import ScreenMeasure
from schemas.sections import Adapter
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.faces import EMBEDDERS
from tasks.leakage.compare import Comparison, compare
from tasks.leakage.eye import Eye
from tasks.leakage.sides import portraits

LEAKS: Final = 3
NOT_CHECKED: Final = 7


def show_leaks(a: str, b: str, *, identity: str, threshold: float | None, workspace: Path, as_json: bool) -> int:
    """Compare two sides and say what leaks from A into B.

    Args:
        a, b: Workspace runs, data sets or folders of images.
        identity: The identity model.
        threshold: Cosine from which two faces are one person; None for the config's default.
        workspace: Portraits of pictures are remembered here, if it is a workspace already.
        as_json: Print one JSON document.

    Returns:
        The exit code: 0 if everything was checked and nothing leaks, else one of the two above.

    Raises:
        ConfigError: A path, the model or the threshold is wrong.
    """
    sets = [] if threshold is None else [f"screen.cut.leak_identity={threshold}"]
    cut = load_config(sets=sets).screen.cut
    EMBEDDERS.parse(identity, {})
    eye = Eye(ScreenMeasure().faces, Adapter(name=identity))
    memory = Store(workspace) if (workspace / "runs").is_dir() else None
    sides = []
    for name, path in (("A", a), ("B", b)):
        try:
            sides.append(portraits(path, eye, memory=memory))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", error.hint) from None
    found = compare(sides[0], sides[1], cut)
    if as_json:
        print_json(
            {
                "ok": not found.leaks and not found.unchecked,
                "sources": {"a": len(sides[0]), "b": len(sides[1])},
                "identity_model": eye.model,
                "threshold": cut.leak_identity,
                "leaks": [asdict(leak) | {"a": str(leak.a), "b": str(leak.b)} for leak in found.leaks],
                "must_go": [str(key) for key in found.must_go],
                "not_checked": found.unchecked,
            }
        )
    else:
        _print(found, len(sides[0]), len(sides[1]))
    return LEAKS if found.leaks else NOT_CHECKED if found.unchecked else 0


def _print(found: Comparison, of_a: int, of_b: int) -> None:
    if found.leaks:
        table = Table(title=f"{len(found.must_go)} of {of_b} sources of B leak", title_justify="left")
        for column in ("source of B", "why", "evidence", "and more of A"):
            table.add_column(column, overflow="fold")
        for leak in found.leaks:
            table.add_row(Text(str(leak.b)), leak.reason, Text(leak.evidence), str(leak.others or ""))
        OUT.print(table)
    for line in found.unchecked:
        OUT.print(Text(line, style="yellow"), soft_wrap=True)
    if not found.leaks:
        checked = "every rule was checked" if not found.unchecked else "but not everything was checked"
        OUT.print(f"No source of B ({of_b}) is known to share anything with A ({of_a}); {checked}.")
