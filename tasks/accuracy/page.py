"""The page of a trial: HTML that opens from disk, without network, script or picture, and its numbers as JSON."""

import json
from pathlib import Path
from typing import Final

from schemas.paper_accuracy import paper_accuracy
from tasks.accuracy.findings import Findings
from tasks.accuracy.plants import Case
from tasks.engine.store import Store
from tasks.report.html import environment

FOLDER: Final = "accuracy"


def write_page(found: Findings, store: Store) -> Path:
    """Write `accuracy/labelled/` or `accuracy/planted/` of a workspace: `index.html` and `accuracy.json`.

    Returns:
        The page's path.

    Raises:
        WorkspaceError: The disk cannot be written.
    """
    folder = f"{FOLDER}/{'planted' if found.trial.planted else 'labelled'}"
    text = (
        environment()
        .get_template("accuracy.html.j2")
        .render(
            found=found,
            trial=found.trial,
            tried=found.tried,
            config=found.trial.config,
            paper=paper_accuracy(),
            Case=Case,
        )
    )
    store.write(f"{folder}/accuracy.json", json.dumps(found.plain(), indent=1, ensure_ascii=False).encode())
    store.write(f"{folder}/index.html", text.encode())
    return store.path(f"{folder}/index.html")
