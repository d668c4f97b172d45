"""Whose pictures were shown to models outside without being rows of a run: a withdrawal finds them here.

One small file per chunk of sources, written before anybody is asked. It holds keys, hints and digests, no picture.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from schemas.records import KeyField, Record
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store

FOLDER: Final = "accuracy/shown"


class Showing(Record):
    """A source of which pictures were shown.

    Attributes:
        clip, identity: The pool's own hints, empty where it has none.
        pixels: The mark of its decoded pixels (`tombstones.pixels_mark`).
        images: Digests of its picture and of the edits of it.
    """

    key: KeyField
    clip: str = ""
    identity: str = ""
    pixels: str = ""
    images: tuple[str, ...]


def note(store: Store, shown: Sequence[Showing]) -> None:
    """Write down what is about to be shown; the same again is the same file.

    Raises:
        WorkspaceError: The disk cannot be written.
    """
    if not shown:
        return
    rows = [one.model_dump(mode="json") for one in sorted(shown, key=lambda one: one.key)]
    store.write_json(f"{FOLDER}/{fingerprint(rows)[:32]}.json", rows)


def noted(store: Store) -> Iterator[Showing]:
    """All that was written down; a source stands there once for every chunk it was in.

    Raises:
        WorkspaceError: A file is damaged.
    """
    for _, shown in _files(store):
        yield from shown


def forget(store: Store, keys: Collection[str]) -> None:
    """Strike sources out, by key as reports show it."""
    for name, shown in _files(store):
        left = [one for one in shown if str(one.key) not in keys]
        if len(left) < len(shown):
            if left:
                note(store, left)
            store.remove(name)


def _files(store: Store) -> Iterator[tuple[str, list[Showing]]]:
    for path in sorted(store.root.glob(f"{FOLDER}/*.json")):
        name = f"{FOLDER}/{path.name}"
        yield name, store.read_as(name, list[Showing]) or []
