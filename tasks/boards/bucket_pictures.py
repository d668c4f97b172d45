"""The pictures that annotators see, where the workspace is a bucket: copies under names that tell nothing.

They lie beside everything else in the bucket, but in no listing that a run takes (`mirror.ASIDE`), for there are three
per task: they are found, put and deleted here alone.
"""

from collections.abc import Mapping

from tasks.engine.errors import WorkspaceError
from tasks.engine.mirror import Mirror, at_once


def copy_pictures(mirror: Mirror, folder: str, wanted: Mapping[str, tuple[str, ...]]) -> None:
    """Copy pictures within the bucket; one that is there costs a thousandth of a listing.

    Args:
        mirror: The bucket.
        folder: Where to.
        wanted: By name below the folder, the places where the picture may lie.

    Raises:
        WorkspaceError: A picture is gone, the store failed, or another run holds the workspace.
    """
    there = mirror.bucket.listing(folder)
    due = [(f"{folder}/{name}", places) for name, places in wanted.items() if f"{folder}/{name}" not in there]
    if due:
        mirror.settle()
        mirror.check()
    at_once(lambda one: _copy(mirror, *one), due)


def put_files(mirror: Mirror, folder: str, files: Mapping[str, bytes]) -> None:
    """Put files that are not there, by name below the folder."""
    there = mirror.bucket.listing(folder)
    for name, data in files.items():
        if f"{folder}/{name}" not in there:
            mirror.check()
            mirror.bucket.put(f"{folder}/{name}", data)


def delete_folders(mirror: Mirror, folder: str, inner: list[str]) -> None:
    """Delete folders within a folder; where one is not there, everything in it.

    Their names follow from a secret of the machine that opened the review. Whoever deletes on another one finds none of
    them, and may leave no picture of a person who withdrew; the next opening puts the others back.
    """
    found = {name: list(mirror.bucket.listing(f"{folder}/{name}")) for name in inner}
    names = [name for each in found.values() for name in each]
    if not all(found.values()):
        names = list(mirror.bucket.listing(folder))
    if names:
        mirror.check()
    at_once(lambda name: mirror.bucket.delete([name]), names)


def _copy(mirror: Mirror, name: str, places: tuple[str, ...]) -> None:
    if not any(mirror.bucket.copy(place, name) for place in places):
        raise WorkspaceError(f"{mirror.bucket.url}/{places[0]} is gone", "build again: it is made anew")
