"""How a picture comes to an annotator: Label Studio serves one folder of the workspace, to whoever is signed in."""

from typing import Final

from tasks.boards.made import path_of
from tasks.boards.pictures import FOLDER, ROOT
from tasks.boards.studio import Studio
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.store import Store

ADDRESS: Final = f"/data/local-files/?d={FOLDER.removeprefix(ROOT).strip('/')}/"


def add_folder(store: Store, studio: Studio, number: int) -> None:
    """Have the picture folder served with a project; one row that is there serves it for every project."""
    path = str(store.path(FOLDER))
    rows = studio.get("/api/storages/localfiles/", project=number).json()
    if all(row["path"] != path for row in rows):
        value = {"project": number, "path": path, "use_blob_urls": True, "title": "pictures"}
        studio.write("POST", "/api/storages/localfiles/", value)


def serve(store: Store, studio: Studio, number: int, path: str, image: str) -> None:
    """Look at one picture as an annotator would, before tasks are made that show none.

    Raises:
        WorkspaceError: It does not come, although the folder was given to a project (once more, if need be).
    """
    for tried in range(2):
        answer = studio.get(ADDRESS + path, missing=(400, 403, 404, 500))
        if answer.status_code == 200 and sha256(answer.content) == image:
            return
        if not tried:
            add_folder(store, studio, number)
    raise WorkspaceError(
        f"Label Studio does not serve {store.path(f'{FOLDER}/{path}')} (HTTP {answer.status_code}; "
        f"the picture is {path_of(store, image)})",
        "it must run with this workspace: fedbench review up",
    )
