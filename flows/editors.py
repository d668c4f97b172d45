"""Tries an editor on one photo."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from flows.options import assign
from schemas.expressions import EXPRESSIONS, Expression, others, parse_expression
from schemas.hosted import shipped_editors
from schemas.routes import CallSettings
from schemas.sections import Adapter as Spec
from tasks.editors import EDITORS
from tasks.editors.table import shipped
from tasks.engine.calls import Calls
from tasks.engine.decode import decode, encode_png
from tasks.engine.errors import ConfigError, UnreadableImage, WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.report.tried import Editing, Pixels, Tried, face_of, side_by_side, tried
from tasks.voters import VOTERS


@dataclass(frozen=True)
class Trial:
    """What is asked: of which photo, by whom, to show what; `shows` is None where the photo shall be looked at."""

    image: Path
    editor: str
    targets: tuple[str, ...]
    shows: str | None
    sets: tuple[str, ...]
    seed: int


def try_editor(asked: Trial, out: Path, workspace: Path, *, as_json: bool) -> bool:
    """Edit one photo and draw what came out below `out`; whether anything did."""
    spec = chosen(asked.editor, asked.sets)
    EDITORS.check(spec.name, spec.params)
    wanted = [_expression(target) for target in asked.targets]
    source = _photo(asked.image)
    if EDITORS.adapter_class(spec.name).needs_face and face_of(source) is None:
        raise ConfigError(f"no face is found in {asked.image}", "give a photo whose face is large enough")
    with _door(workspace, outside=EDITORS.remote(spec.name)) as call:
        now = _expression(asked.shows) if asked.shows else _looks(source, call)
        edits, seconds = tried(source, now, wanted or others(now), Editing(spec, asked.seed, call))
    title = ", ".join([f"{asked.image.name} by {asked.editor}", *asked.sets])
    drawn = side_by_side(source.pixels, now, edits, title)
    sheet, files = _written(out, f"{asked.image.stem}-{asked.editor}", drawn, edits)
    if as_json:
        rows = [_row(one, files.get(one.target)) for one in edits]
        print_json({"editor": spec.model_dump(), "shows": now, "seconds": seconds, "sheet": str(sheet), "edits": rows})
    else:
        _print_edits(edits)
        OUT.print(Text(f"{len(files)} of {len(edits)} edits in {seconds:.1f} s; side by side: {sheet}"), soft_wrap=True)
    return bool(files)


def _written(out: Path, stem: str, drawn: Pixels, edits: Sequence[Tried]) -> tuple[Path, dict[Expression, Path]]:
    """Write the sheet and every edit at its size; where they are."""
    stem = stem.replace("/", "-").replace(" ", "-")
    sheet = out / f"{stem}.png"
    files = {one.target: out / f"{stem}-{one.target}.png" for one in edits if one.pixels is not None}
    try:
        out.mkdir(parents=True, exist_ok=True)
        sheet.write_bytes(encode_png(drawn))
        for one in edits:
            if one.pixels is not None:
                files[one.target].write_bytes(encode_png(one.pixels))
    except OSError as error:
        raise WorkspaceError(f"cannot write to {out}: {error.strerror}", "give another --out") from None
    return sheet, files


def chosen(name: str, sets: Sequence[str]) -> Spec:
    """An editor by its name in the registry, among the open ones or the hosted ones; `sets` are its parameters.

    Raises:
        ConfigError: There is no such editor, or it has nothing to try.
    """
    here = {row.name for row in shipped() if row.runs == "here"}
    if name in EDITORS.names():
        params: dict[str, Any] = {}
    elif name in here:
        name, params = "diffusion", {"model": name}
    elif name in shipped_editors():
        name, params = "api", {"model": name}
    else:
        raise ConfigError(f"unknown editor '{name}'", "`fedbench editors list` shows them all")
    if name == "outputs":
        raise ConfigError("the editor 'outputs' only looks up what was made", "see `fedbench outputs check`")
    for option in sets:
        assign(params, option)
    return Spec(name=name, params=params)


def _expression(text: str) -> Expression:
    found = parse_expression(text)
    if found is None:
        raise ConfigError(f"unknown expression '{text}'", f"one of: {', '.join(EXPRESSIONS)}")
    return found


def _photo(image: Path) -> Picture:
    try:
        pixels = decode(image.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read {image}: {error.strerror}", "give a photo's path") from None
    except UnreadableImage as error:
        raise ConfigError(f"cannot read {image}: {error.reason}, {error}", "give a JPEG, PNG or WebP") from None
    pixels.setflags(write=False)
    return Picture(sha256(encode_png(pixels)), pixels)


def _looks(source: Picture, call: Calls) -> Expression:
    answer = VOTERS.get("fer", {"granularity": "fine"}).vote(source, call).answer
    return answer if isinstance(answer, Expression) else Expression.NEUTRAL


@contextmanager
def _door(workspace: Path, *, outside: bool) -> Iterator[Calls]:
    """The door to models outside, in the workspace where one is asked; else shut, and nothing is left of it."""
    with tempfile.TemporaryDirectory() as passing:
        if outside:
            workspace.mkdir(parents=True, exist_ok=True)
        call = Calls((workspace if outside else Path(passing)) / "answers.sqlite", CallSettings(), "edit")
        try:
            yield call
        finally:
            call.close()


def _row(one: Tried, file: Path | None) -> dict[str, Any]:
    values = {field.name: getattr(one, field.name) for field in fields(one) if field.name != "pixels"}
    return values | {"motion": one.motion.model_dump() if one.motion else None, "file": str(file) if file else None}


def _print_edits(edits: Sequence[Tried]) -> None:
    table = Table("to")
    for column in ("identity", "background", "registered", "change"):
        table.add_column(column, justify="right")
    table.add_column("note")
    for one in edits:
        numbers = (one.identity, one.background_rmse, one.registered_rmse, one.change)
        shown = ["–" if value is None else f"{value:.2f}" for value in numbers]
        table.add_row(one.target, *shown, Text(one.failed or one.note, style="red" if one.failed else "yellow"))
    OUT.print(table)
