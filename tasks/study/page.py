"""The page of an agreement: HTML that opens from disk, without network or script, and its numbers as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tasks.engine.store import Store
from tasks.report.html import environment
from tasks.study.ablation import Ablated
from tasks.study.agreement import Agreement, Question

WIDTH: Final = 520  # of the plot's axis from 0 to 1, in its own units
ROW: Final = 22


def write_page(
    name: str,
    store: Store,
    *,
    asked: Sequence[Question],
    found: Sequence[Agreement],
    parts: Mapping[str, Sequence[Ablated]],
    told: Mapping[str, Any],
) -> Path:
    """Write `reports/studies/NAME/` of a workspace: `index.html` and `agreement.json`. It names nobody.

    Args:
        name: Of the study.
        store: The workspace.
        asked: What people said, by question.
        found: The agreements, by question, the best first.
        parts: The ablations, by question.
        told: All numbers, as `--json` prints them.

    Returns:
        The page's path.

    Raises:
        WorkspaceError: The disk cannot be written.
    """
    folder = f"reports/studies/{name}"
    text = (
        environment()
        .get_template("agreement.html.j2")
        .render(name=name, asked=asked, found=found, parts=parts, width=WIDTH, row=ROW)
    )
    store.write_json(f"{folder}/agreement.json", json.loads(json.dumps(told)))
    store.write(f"{folder}/index.html", text.encode())
    return store.path(f"{folder}/index.html")
