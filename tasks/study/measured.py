"""Measure the usual metrics on pairs: every number once, kept in the workspace the moment 64 of them are there."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from schemas.records import Record
from schemas.score_config import ScoreMeasure
from tasks.engine.errors import UnreadableImage
from tasks.engine.fingerprint import fingerprint
from tasks.engine.images import Picture
from tasks.engine.store import Store
from tasks.faces import ANALYZERS
from tasks.faces.geometry import Square, context_box, crop, landmark_box
from tasks.metrics.registration import resized
from tasks.study.comparers import COMPARERS, Comparer, Number, numbers
from tasks.study.pairs import Pair
from tasks.study.pictures import Album, Sight, Sights

CHUNK: Final = 64  # outputs whose numbers are written together; so many a kill loses at most
# A comparer's name and parameters.
Chosen = tuple[str, dict[str, Any]]
Tell = Callable[[str, int, int], None]
# Source, output and ground truth of one output; None for what is not there, or shows no face to cut out.
Shown = list[Picture | None]


class Measured(Record):
    """One number of one output.

    Attributes:
        sight: Digest of the pictures and the text that it follows from.
        metric: Area and what it is compared with: "face truth".
        value: None where there is none, and `reason` says why.
    """

    sight: str
    metric: str
    value: float | None
    reason: str


def add_measured(
    pairs: Sequence[Pair], sights: Sights, chosen: Sequence[Chosen], album: Album, store: Store, *, tell: Tell
) -> dict[str, Counter[str]]:
    """Give every pair the numbers of its two outputs; what was measured before runs no model.

    Args:
        pairs: Changed in place.
        sights: What each pair shows.
        chosen: Which metrics.
        album: The pictures.
        store: The workspace.
        tell: Told after every chunk: the metric's name, outputs done, of how many.

    Returns:
        By column, why outputs have no number, counted.

    Raises:
        ConfigError: A model that is needed is missing; told before anything is measured.
    """
    every = list(dict.fromkeys(one for both in sights for one in both if one is not None))
    known = [_known(store, _folder(*one)) for one in chosen]
    due = [[one for one in every if _key(one) not in held] for held in known]
    for (name, params), left in zip(chosen, due, strict=True):
        if left:
            COMPARERS.check(name, params)
    lacking: dict[str, Counter[str]] = {}
    for (name, params), held, left in zip(chosen, known, due, strict=True):
        for start in range(0, len(left), CHUNK):
            part = left[start : start + CHUNK]
            rows = [row for one in part for row in _measure(one, name, params, album)]
            store.write_part(_folder(name, params), Measured, rows)
            _keep(held, rows)
            tell(name, start + len(part), len(left))
        for number in numbers(name, params):
            lacking[number.metric] = _fill(pairs, sights, number, held)
    return lacking


def _fill(
    pairs: Sequence[Pair], sights: Sights, number: Number, held: Mapping[str, Mapping[str, Measured]]
) -> Counter[str]:
    column, reasons = _column(number), Counter[str]()
    seen: set[Sight] = set()
    for pair, both in zip(pairs, sights, strict=True):
        found = [held[_key(one)][column] if one else None for one in both]
        pair.values[number.metric] = (found[0].value if found[0] else None, found[1].value if found[1] else None)
        for one, row in zip(both, found, strict=True):
            if one is None or row is None:
                reasons["no picture"] += 1
            elif row.value is None and one not in seen:
                reasons[row.reason] += 1
            if one:
                seen.add(one)
    return reasons


def _measure(sight: Sight, name: str, params: dict[str, Any], album: Album) -> Iterator[Measured]:
    comparer, every = COMPARERS.get(name, params), numbers(name, params)
    try:
        shown = [album.get(digest) if digest else None for digest in (sight.source, sight.output, sight.truth)]
    except UnreadableImage:
        for number in every:
            yield _row(sight, number, None, "unreadable picture")
        return
    source = shown[0]
    assert source is not None
    whole = [one and _sized(one, source) for one in shown]
    faces: Shown = whole
    if not comparer.aligns:
        square = _square(source)
        faces = [one and square and _cut(one, square) for one in whole]
    for number in every:
        value, reason = _number(comparer, number, whole if number.area == "whole" else faces, sight.instruction)
        yield _row(sight, number, value, reason)


def _number(comparer: Comparer, number: Number, shown: Shown, instruction: str) -> tuple[float | None, str]:
    source, output, truth = shown
    if source is None or output is None:
        return None, "no face in the source"
    if number.against in ("truth", "ratio") and truth is None:
        return None, "no ground truth"
    if number.against == "text" and not instruction.strip():
        return None, "no instruction"
    if number.against == "ratio":
        assert truth is not None
        moved, wanted = comparer.compare(output, source), comparer.compare(truth, source)
        if moved is None or wanted is None or wanted < comparer.least:
            return None, "ground truth equal to its source"
        return moved / wanted, ""
    other = {"source": source, "truth": truth, "text": instruction}[number.against]
    assert other is not None
    value = comparer.compare(output, other)
    return value, "" if value is not None else "no face in one of the two" if comparer.aligns else "too small"


def _sized(picture: Picture, source: Picture) -> Picture:
    """Brought to the source's size, as scores have it."""
    if picture.pixels.shape == source.pixels.shape:
        return picture
    return Picture(f"{picture.digest} {source.pixels.shape}", resized(picture.pixels, source.pixels.shape))


def _square(source: Picture) -> Square | None:
    """REG's box: one for source, output and ground truth."""
    face = next(iter(ANALYZERS.get("mediapipe", {}).analyze(source)), None)
    return context_box(landmark_box(face), ScoreMeasure().box_margin) if face else None


def _cut(picture: Picture, square: Square) -> Picture:
    side = ScoreMeasure().box_side
    return Picture(f"{picture.digest} {tuple(square)} {side}", crop(picture.pixels, square, side))


def _row(sight: Sight, number: Number, value: float | None, reason: str) -> Measured:
    return Measured(sight=_key(sight), metric=_column(number), value=value, reason=reason)


def _column(number: Number) -> str:
    return f"{number.area} {number.against}"


def _key(sight: Sight) -> str:
    return fingerprint([sight.source, sight.output, sight.truth, sight.instruction])


def _folder(name: str, params: dict[str, Any]) -> str:
    """Where a comparer's numbers lie: another model, another version or another box has a folder of its own."""
    measure = ScoreMeasure()
    face = [ANALYZERS.identity("mediapipe", {}), measure.box_margin, measure.box_side]
    return f"study/measured/{fingerprint([COMPARERS.identity(name, params), face])[:32]}"


def _known(store: Store, folder: str) -> dict[str, dict[str, Measured]]:
    held: dict[str, dict[str, Measured]] = {}
    for name in store.names(f"{folder}/part-*.parquet"):
        _keep(held, store.read_part(folder, name.rpartition("/")[2], Measured))
    return held


def _keep(held: dict[str, dict[str, Measured]], rows: Sequence[Measured]) -> None:
    for row in rows:
        held.setdefault(row.sight, {})[row.metric] = row
