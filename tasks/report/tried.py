"""One photo tried with one editor: the edits, measured as a build would, and drawn side by side."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

import prompts
from schemas.config import GenerateCut, RankMeasure
from schemas.expressions import Expression
from schemas.records import Motion
from schemas.sections import Adapter as Spec
from tasks.editors import EDITORS, Edit, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.fingerprint import seed_of, sha256
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.faces.geometry import face_mask
from tasks.generate import PROMPT, how_moved, problem_of
from tasks.metrics.background import background_rmse, registered_rmse
from tasks.metrics.change import expression_change
from tasks.metrics.identity import cosine
from tasks.metrics.registration import register, resized
from tasks.metrics.unchanged import local_change

CELL: Final = 256  # pixels of a picture's longer side on the sheet
TEXT: Final = 15
LINE: Final = 20
GAP: Final = 16
COLUMNS: Final = 4
INK, PALE, RED = (28, 32, 38), (110, 118, 128), (176, 40, 40)

Pixels = NDArray[np.uint8]
Lines = list[tuple[tuple[int, int, int], str]]


@dataclass(frozen=True)
class Tried:
    """One edit of the photo, at its size. Numbers are None where there is nothing to measure.

    Attributes:
        target: What it shall show.
        pixels: RGB (H, W, 3) uint8; None where the edit failed.
        failed: Why, in words; else empty.
        identity, background_rmse, registered_rmse, change: As a build measures them.
        motion: Of the whole picture.
        note: What a build would hold against it: unchanged, moved, another size.
    """

    target: Expression
    instruction: str
    pixels: Pixels | None
    failed: str
    identity: float | None = None
    background_rmse: float | None = None
    registered_rmse: float | None = None
    change: float | None = None
    motion: Motion | None = None
    note: str = ""


def face_of(picture: Picture) -> Face | None:
    """The largest face of a picture, as builds find it."""
    faces = ANALYZERS.get("mediapipe", {}).analyze(picture)
    return faces[0] if faces else None


@dataclass(frozen=True)
class Editing:
    """Who edits, with which seed (one per target follows from it), through which door to models outside."""

    editor: Spec
    seed: int
    call: Calls


def tried(source: Picture, shows: Expression, targets: Sequence[Expression], how: Editing) -> tuple[list[Tried], float]:
    """Edit a photo to each target, and the seconds that took.

    Args:
        source: The photo.
        shows: What it shows now.
        targets: What it shall show.
        how: Who edits.
    """
    requests = [
        EditRequest(
            source,
            shows,
            target,
            prompts.render(PROMPT, source=shows, target=target),
            seed_of(how.seed, str(target)),
        )
        for target in targets
    ]
    began = time.monotonic()
    adapter = EDITORS.get(how.editor.name, how.editor.params)
    given: list[Any] = []
    if EDITORS.remote(how.editor.name):
        for (result,) in how.call.gather([partial(adapter.edit, [each], how.call) for each in requests]):
            given.append(result)
    else:
        given = list(adapter.edit(requests, how.call))
    seconds = time.monotonic() - began
    return [_measured(source, request, result) for request, result in zip(requests, given, strict=True)], seconds


def _measured(source: Picture, request: EditRequest, result: Any) -> Tried:
    if not isinstance(result, ItemFailed):
        result = Edit.of(result).pixels
    failed = str(result) if isinstance(result, ItemFailed) else problem_of(result)
    if failed:
        return Tried(request.target, request.instruction, None, failed)
    shape, cut = source.pixels.shape, GenerateCut()
    pixels = resized(result, shape)
    motion = register(source.pixels, pixels)
    notes = [how_moved(motion, cut).removeprefix("the whole picture is ")]
    if local_change(source.pixels, pixels) < cut.min_local_change:
        notes.append("the picture is unchanged")
    if result.shape[:2] != shape[:2]:
        notes.append(f"given as {result.shape[1]} × {result.shape[0]}")
    edit, before = Picture(sha256(pixels.tobytes()), pixels), face_of(source)
    after = face_of(edit)
    if before is None or after is None:
        notes.append("no face to compare")
        return Tried(request.target, request.instruction, pixels, "", motion=motion, note=_joined(notes))
    masks = [face_mask(shape, face, RankMeasure().mask_dilation) for face in (before, after)]
    embedder = EMBEDDERS.get("sface", {})
    raw = background_rmse(source.pixels, pixels, masks[0] | masks[1])
    moved_back = registered_rmse(source.pixels, pixels, masks[0], masks[1], motion) if motion else math.nan
    return Tried(
        target=request.target,
        instruction=request.instruction,
        pixels=pixels,
        failed="",
        identity=cosine(embedder.embed(source, before), embedder.embed(edit, after)),
        background_rmse=None if math.isnan(raw) else raw,
        registered_rmse=None if math.isnan(moved_back) else moved_back,
        change=expression_change(before.blendshapes, after.blendshapes),
        motion=motion,
        note=_joined(notes),
    )


def _joined(notes: Sequence[str]) -> str:
    return "; ".join(note for note in notes if note)


def side_by_side(source: Pixels, shows: Expression, edits: Sequence[Tried], title: str) -> Pixels:
    """The photo and its edits in rows of four, numbers under each; RGB (H, W, 3) uint8 on white."""
    from PIL import Image, ImageDraw, ImageFont

    plain, large = ImageFont.load_default(TEXT), ImageFont.load_default(TEXT + 3)
    scale = CELL / max(source.shape[:2])
    size = (max(1, round(source.shape[1] * scale)), max(1, round(source.shape[0] * scale)))
    width = max(size[0], 200)
    cells: list[tuple[str, Pixels | None, Lines, str]] = [(f"source: {shows}", source, [], "")]
    cells += [(f"to {one.target}", one.pixels, _lines(one), one.failed) for one in edits]
    columns = min(COLUMNS, len(cells))
    wrapped = [_folded_lines(lines, plain, width) for _, _, lines, _ in cells]
    height = size[1] + LINE + 8 + LINE * max(map(len, wrapped))
    rows = math.ceil(len(cells) / columns)
    sheet = Image.new("RGB", (GAP + columns * (width + GAP), GAP + 2 * LINE + rows * (height + GAP)), "white")
    pen = ImageDraw.Draw(sheet)
    pen.text((GAP, GAP - 4), title, INK, large)
    for place, (head, pixels, _, failed) in enumerate(cells):
        left = GAP + place % columns * (width + GAP)
        top = GAP + 2 * LINE + place // columns * (height + GAP)
        pen.text((left, top), head, INK, large)
        top += LINE + 6
        if pixels is None:
            pen.rectangle((left, top, left + size[0] - 1, top + size[1] - 1), (244, 244, 245), (210, 212, 216))
            for number, (_, line) in enumerate(_folded_lines([(RED, failed)], plain, size[0] - 20)):
                pen.text((left + 10, top + 10 + number * LINE), line, RED, plain)
        else:
            method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
            sheet.paste(Image.fromarray(np.asarray(cv2.resize(pixels, size, interpolation=method))), (left, top))
        for number, (colour, line) in enumerate(wrapped[place]):
            pen.text((left, top + size[1] + 6 + number * LINE), line, colour, plain)
    return np.asarray(sheet, np.uint8)


def _lines(one: Tried) -> Lines:
    if one.pixels is None:
        return []
    lines: Lines = [
        (INK, f"identity {_number(one.identity, 3)}"),
        (INK, f"background {_number(one.background_rmse, 2)}"),
    ]
    if one.registered_rmse is not None and one.background_rmse != one.registered_rmse:
        lines.append((PALE, f"registered {_number(one.registered_rmse, 2)}"))
    lines.append((INK, f"change {_number(one.change, 2)}"))
    return [*lines, (RED, one.note)] if one.note else lines


def _number(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value:.{places}f}"


def _folded_lines(lines: Lines, font: Any, width: int) -> Lines:
    """The lines, broken between words where they are too wide."""
    folded: Lines = []
    for colour, text in lines:
        line = ""
        for word in text.replace("×", "x").split():  # the font that Pillow carries has no such sign
            if line and font.getlength(f"{line} {word}") > width:
                folded.append((colour, line))
                line = word
            else:
                line = f"{line} {word}".strip()
        folded.append((colour, line))
    return folded
