"""Says which outputs of a user's own model match the edits that are owed."""

from dataclasses import asdict
from pathlib import Path
from typing import Final, cast

from rich.text import Text

from flows.console import OUT, opened, print_json
from schemas.records import Key, Photo
from tasks.dataset.read import data_set as read_data_set
from tasks.dataset.read import plain_rows, tables
from tasks.editors.outputs_check import Size, match
from tasks.engine.errors import ConfigError
from tasks.engine.recut import recut
from tasks.engine.stage import Kept
from tasks.generate import owed

# By field of `Matched`, in words.
_FAULTS: Final = {
    "missing": "missing",
    "doubled": "several for one edit",
    "unreadable": "cannot be read",
    "extra": "belong to no owed edit",
    "shared": "the same picture for several edits",
    "other_shape": "another shape than the source: they are stretched",
}


def show_matched(root: Path, pattern: str, due: dict[Key, Size | None], *, as_json: bool) -> bool:
    """What matches and what does not; whether all does."""
    found = match(str(root), pattern, due)
    if as_json:
        print_json(asdict(found) | {"clean": found.clean})
        return found.clean
    OUT.print(f"{found.matched:,} of {found.owed:,} owed edits have an output.")
    for field, words in _FAULTS.items():
        names = getattr(found, field)
        if names:
            OUT.print(Text(f"{len(names):>6}  {words}", style="yellow"))
            for name in names[:10]:
                OUT.print(Text(f"        {name}", style="dim"), soft_wrap=True)
    if found.other_size:
        OUT.print(f"{found.other_size:,} have another size than their source, and are resized.")
    OUT.print("Every edit has its own output." if found.clean else "Not all is as it should be.")
    return found.clean


def triplets(folder: Path) -> dict[Key, Size | None]:
    """The triplets of a data set, with their sources' (height, width) where it has the pictures."""
    manifest = read_data_set(folder)
    columns = ["pool", "source_id", "target", *(["source"] if "source" in manifest.pictures else [])]
    due: dict[Key, Size | None] = {}
    for row in plain_rows(folder, tables(manifest.files, "data"), columns):
        header = row["source"]["bytes"][16:24] if "source" in row else b""  # a PNG says its size there
        size = (int.from_bytes(header[4:]), int.from_bytes(header[:4])) if header else None
        due[Key(row["pool"], row["source_id"], row["target"])] = size
    return due


def candidates(workspace: Path, run: str | None) -> dict[Key, Size | None]:
    """What a run owes of the photos that are screened, built or not.

    Outputs stand for one editor: for the run's `outputs` editors where it has some, else for any of them.
    """
    made = opened(workspace, run)
    measure = made.config.generate.measure
    looked_up = {name for name, spec in measure.editors.items() if spec.name == "outputs"} or set(measure.editors)
    due: dict[Key, Size | None] = {}
    for decided in recut(made.executor):
        for outcome in decided.outcomes["screen"].values():
            if isinstance(outcome, Kept):
                photo = cast(Photo, outcome.output)
                for key in owed(measure, photo.key, photo.expression):
                    if key.editor in looked_up:
                        due[key._replace(editor="")] = (photo.height, photo.width)
    if not due:
        raise ConfigError(f"run '{made.config.name}' has screened no photo", "run `fedbench build --dry-run` first")
    return due
