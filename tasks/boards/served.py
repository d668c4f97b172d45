"""How a picture comes to an annotator: Label Studio serves one folder of the workspace, to whoever is signed in. Of a
bucket they come from the store itself, at presigned addresses."""

from tasks.boards.addresses import ADDRESS, Addresses
from tasks.boards.made import path_of
from tasks.boards.pictures import FOLDER
from tasks.boards.studio import Studio
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.places import in_bucket
from tasks.engine.store import Store


def add_folder(store: Store, studio: Studio, number: int) -> None:
    """Have the picture folder served with a project; one row that is there serves it for every project."""
    if in_bucket(store.where):
        return
    path = str(store.path(FOLDER))
    rows = studio.read("/api/storages/localfiles/", project=number)
    if all(row["path"] != path for row in rows):
        value = {"project": number, "path": path, "use_blob_urls": True, "title": "pictures"}
        studio.write("POST", "/api/storages/localfiles/", value)


def serve(addresses: Addresses, studio: Studio, number: int, path: str, image: str) -> None:
    """Look at one picture as an annotator would, before tasks are made that show none.

    Raises:
        WorkspaceError: It does not come, although the folder was given to a project (once more, if need be).
    """
    store = addresses.store
    if addresses.probe(studio.url, path, image):
        return
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
