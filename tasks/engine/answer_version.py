"""Which version of fedbench may write an answer store."""

import sqlite3
from pathlib import Path
from typing import Final

from tasks.engine.errors import WorkspaceError

# Rises with any change of its tables. Files from before it was kept say 0; opening one brings it up to date.
VERSION: Final = 1


def check_version(db: sqlite3.Connection, path: Path) -> None:
    """Mark a store as of this version, unless a newer fedbench wrote it: what that keeps beside would be lost.

    Raises:
        WorkspaceError: It is of a newer version.
    """
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found > VERSION:
        raise WorkspaceError(
            f"a newer fedbench wrote the answer store {path} (version {found}; this one writes {VERSION})",
            "update fedbench",
        )
    if found < VERSION:
        db.execute(f"PRAGMA user_version = {VERSION}")
