"""The pictures that annotators see: links to the stored ones below one folder, under names that tell nothing."""

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from schemas.reviews import Question
from tasks.boards.blind import file_of
from tasks.engine.errors import WorkspaceError
from tasks.engine.images import ImageStore
from tasks.engine.store import Store, disk

# Label Studio serves nothing outside `ROOT`, and wants what it serves below a folder in it.
ROOT: Final = "review/images"
FOLDER: Final = f"{ROOT}/shown"


def shown_in(question: Question) -> set[str]:
    """Digests of a question's pictures."""
    return {question.finalists[0].source_image, *(one.image for one in question.finalists)}


def show(store: Store, key: bytes, questions: Iterable[Question]) -> None:
    """Put the pictures of questions into the folder; what lies there already costs a look.

    Raises:
        WorkspaceError: A picture is gone, the disk failed, or somebody put a link into the folder.
    """
    folder = store.path(FOLDER)
    there = _there(folder)
    for question in questions:
        for image in shown_in(question):
            name = file_of(key, question, image)
            if name not in there:
                _place(store.path(ImageStore.path(image)), folder / name)


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
    """Take the pictures of questions away again."""
    for question in questions:
        for image in shown_in(question):
            store.remove(f"{FOLDER}/{file_of(key, question, image)}")
