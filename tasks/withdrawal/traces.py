"""What a withdrawal removes beside rows: remembered edits, pictures, outside answers, reports, crash reports."""

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from tasks.engine.blobs import Blobs
from tasks.engine.ledger import Ledger
from tasks.engine.store import Store, disk
from tasks.withdrawal.parts import planned, read_table

ANSWERS = "answers.sqlite"


def edit_notes(store: Store) -> Iterator[tuple[Path, str, str]]:
    """(file, digest of the edit, digest of what was edited) of every remembered edit; a torn one has empty digests."""
    for path in sorted(store.root.glob("edits/*/*")):
        words = (store.read(str(path.relative_to(store.root))) or b"").decode(errors="replace").split()
        yield path, *((words[0], words[3]) if len(words) >= 4 else (words[0] if words else "", ""))


def remove_pictures(store: Store, gone: Collection[str], used: Collection[str]) -> None:
    """Delete the edits of these pictures, then every picture that no row and no remembered edit names.

    That is more than was asked for: also what a killed run left, of which nobody can tell whom it shows. Nothing is
    paid for again, because a paid edit is remembered.

    Args:
        store: The workspace.
        gone: sha256 of what goes.
        used: sha256 of what rows that stay name.
    """
    named = set(used)
    for path, edit, source in edit_notes(store):
        if source in gone or edit in gone or not edit:
            store.remove(str(path.relative_to(store.root)))
        else:
            named.add(edit)
    for path in sorted(store.root.glob("images/*/*.png")):
        if path.stem not in named:
            store.remove(str(path.relative_to(store.root)))


def forget_answers(store: Store, gone: Collection[str]) -> list[str]:
    """Delete outside answers about these pictures, and every blob that no answer names.

    Also those that a killed run left: nobody can tell whom they show. A kill in between leaves blobs to the next time.

    Returns:
        The providers that saw the pictures, one per answer.
    """
    ledger = Ledger(store.path(ANSWERS), "")
    try:
        providers, named = ledger.forget(gone), ledger.blobs()
    finally:
        ledger.close()
    blobs = Blobs(store.root)
    for digest in list(blobs.digests()):
        if digest not in named:
            blobs.remove(digest)
    return providers


def remove_reports(store: Store, keys: Collection[str]) -> None:
    """Delete the reports of runs that planned one of these sources, and the crash reports if they name one.

    All leaderboards go, too: they show outputs of any data set, and are made again in seconds.
    """
    runs = sorted({run for run, source in planned(store) if str(source.key) in keys})
    for run in [*runs, *(["leaderboards"] if keys else [])]:
        folder = store.path(f"reports/{run}")
        with disk(folder):
            if folder.exists():
                shutil.rmtree(folder)
    crashes = store.read("crashes.log")
    if crashes and any(key.encode() in crashes for key in keys):
        store.remove("crashes.log")


def remove_scores(store: Store, keys: Collection[str]) -> None:
    """Delete the tables of scores that name one of these sources; what was measured of the others stays stored."""
    for table in sorted(store.root.glob("runs/*/scores/scores.parquet")):
        rows = read_table(table, ["pool", "source_id"]).to_pylist()
        if any(f"{row['pool']}/{row['source_id']}" in keys for row in rows):
            with disk(table.parent):
                shutil.rmtree(table.parent)
