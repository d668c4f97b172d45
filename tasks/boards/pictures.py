"""The pictures that annotators see: the stored ones below one folder (links, copies in a bucket), under names that tell
nothing."""

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import prompts
from schemas.reviews import Question
from tasks.boards.blind import files_of, folder_of
from tasks.boards.bucket_pictures import copy_pictures, delete_folders, put_files
from tasks.boards.made import forget_made, names_of, path_of
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.places import mirror_at
from tasks.engine.store import Store, disk

# Label Studio serves nothing outside `ROOT`, and wants what it serves below a folder in it.
ROOT: Final = "review/images"
FOLDER: Final = f"{ROOT}/shown"
# Of the pairs that are hard to tell apart.
FACES: Final = ("fear", "surprise", "anger", "disgust")


def show(store: Store, key: bytes, tasks: Iterable[tuple[Question, str]]) -> None:
    """Put the pictures of tasks (question, annotator) into the folder; what lies there already costs a look.

    Raises:
        WorkspaceError: A picture is gone, the disk failed, or somebody put a link into the folder.
    """
    if mirror := mirror_at(store.root):
        wanted = {n: names_of(i) for question, who in tasks for n, i in files_of(key, question, who).values()}
        copy_pictures(mirror, FOLDER, wanted)
        return
    folder = store.path(FOLDER)
    there = _there(folder)
    for question, annotator in tasks:
        for name, image in files_of(key, question, annotator).values():
            if name not in there:
                _place(path_of(store, image), folder / name)


def guide_files() -> dict[str, tuple[str, bytes]]:
    """The drawn faces of the guide: by expression, path below the image folder (named by its digest) and SVG."""
    drawn = {face: prompts.render("review_face", expression=face).encode() for face in FACES}
    return {face: (f"guide/{face}-{sha256(data)[:16]}.svg", data) for face, data in drawn.items()}


def show_guide(store: Store) -> None:
    """Put the faces of the guide into the folder: Label Studio strikes pictures that lie in its text."""
    if mirror := mirror_at(store.root):
        put_files(mirror, FOLDER, dict(guide_files().values()))
        return
    for name, data in guide_files().values():
        path = store.path(f"{FOLDER}/{name}")
        with disk(path):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                aside = path.with_suffix(".tmp")
                aside.write_bytes(data)
                aside.replace(path)


def _there(folder: Path) -> set[str]:
    """What lies in the folder, as paths below it: one look at each of its folders, not at each file."""
    found = set()
    with disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for inner in os.scandir(folder):
            inside = [] if inner.is_symlink() else list(os.scandir(inner))
            for entry in (inner, *inside):
                if entry.is_symlink():
                    raise WorkspaceError(f"{entry.path} is a link", "delete it: it may lead out of the folder")
            found |= {f"{inner.name}/{entry.name}" for entry in inside}
    return found


def _place(stored: Path, path: Path) -> None:
    with disk(stored):
        path.parent.mkdir(exist_ok=True)
        try:
            os.link(stored, path)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                raise
            aside = path.with_suffix(".tmp")
            shutil.copyfile(stored, aside)
            aside.replace(path)


def hide(store: Store, key: bytes, questions: Iterable[Question]) -> None:
    """Take the pictures of questions away again, and delete those that were made for them."""
    gone = list(questions)
    if mirror := mirror_at(store.root):
        delete_folders(mirror, FOLDER, [folder_of(key, question) for question in gone])
    for question in gone:
        folder = store.path(f"{FOLDER}/{folder_of(key, question)}")
        with disk(folder):
            if folder.exists():
                shutil.rmtree(folder)
        for one in question.finalists if question.extra else ():
            forget_made(store, one.image)
