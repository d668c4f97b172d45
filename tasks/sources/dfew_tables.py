"""DFEW's label files: five folds of CSVs, and the spreadsheet of ten people's votes. Joined by clip name only."""

import csv
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from schemas.expressions import Expression
from tasks.sources.trees import Doubts, plain

# DFEW's own codes; every set has others.
CODES: Final[dict[int, Expression]] = {
    1: Expression.HAPPY,
    2: Expression.SAD,
    3: Expression.NEUTRAL,
    4: Expression.ANGER,
    5: Expression.SURPRISE,
    6: Expression.DISGUST,
    7: Expression.FEAR,
}
_COLUMNS: Final = ("happy", "sad", "neutral", "angry", "surprise", "disgust", "fear")
# The published workbook has 16,373 rows of 10 columns in about 1 MB; whoever saved it anew may have added some.
_MAX_BYTES: Final = 64 * 2**20
_MAX_MEMBERS: Final = 1000
_MAX_ROWS: Final = 100_000
_MAX_COLUMNS: Final = 64
_SPLIT_FOLDER: Final = re.compile(r"(train|test)singlelabell?ed")
_SET_FILE: Final = re.compile(r"set([1-5])")
_CLIP: Final = re.compile(r"0*(\d{1,5})(?:\.0)?(?:\.mp4)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Votes:
    """One row of the spreadsheet.

    Attributes:
        label: Its single label; None where the people did not agree (0).
        shares: Of each expression among all votes, 0..1.
    """

    label: Expression | None
    shares: Mapping[Expression, float]


@dataclass(slots=True)
class Tables:
    """What the label files say.

    Attributes:
        folds: Fold 1..5 → "train" or "test" → clip → label.
        votes: Clip → votes.
    """

    folds: dict[int, dict[str, dict[str, Expression]]] = field(default_factory=dict)
    votes: dict[str, Votes] = field(default_factory=dict)


def clip_name(text: str) -> str:
    """ "1", "00001", "1.0" and "00001.mp4" are clip "00001"; "" for what is no clip's name."""
    match = _CLIP.fullmatch(text.strip())
    return match[1].zfill(5) if match else ""


def read_tables(root: Path, files: list[Path], doubts: Doubts) -> Tables:
    """The label files among `files`; what is wrong with them goes to `doubts`."""
    tables = Tables()
    for file in files:
        split, fold = _SPLIT_FOLDER.fullmatch(plain(file.parent.name)), _SET_FILE.fullmatch(plain(file.stem))
        if file.suffix.lower() == ".csv" and split and fold:
            place = tables.folds.setdefault(int(fold[1]), {})
            if split[1] in place:
                doubts.add("second copies of a fold's file, not used", str(file.relative_to(root)))
            else:
                place[split[1]] = _read_csv(file, doubts)
        elif file.suffix.lower() == ".xlsx" and plain(file.stem) == "annotation":
            if tables.votes:
                doubts.add("second copies of annotation.xlsx, not used", str(file.relative_to(root)))
            else:
                tables.votes = _read_votes(file, doubts)
    return tables


def _read_csv(file: Path, doubts: Doubts) -> dict[str, Expression]:
    """video_name,label with label 1..7; both integers as a rule."""
    where = f"{file.parent.name}/{file.name}"
    labels: dict[str, Expression] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            columns = {plain(name or ""): name for name in reader.fieldnames or ()}
            if not {"videoname", "label"} <= columns.keys():
                doubts.add("fold files without the columns video_name and label", where)
                return {}
            for cells in reader:
                clip = clip_name(cells[columns["videoname"]] or "")
                label = CODES.get(_integer(cells[columns["label"]]))
                if not clip or label is None:
                    doubts.add("rows of fold files that name no clip or label", f"{where}:{reader.line_num}")
                elif labels.get(clip, label) is not label:
                    doubts.add("clips with two labels in one fold file (the first counts)", f"{where}: {clip}")
                else:
                    labels[clip] = label
    except (OSError, ValueError, csv.Error) as error:  # wrong UTF-8 is a ValueError
        doubts.add("fold files that cannot be read", f"{where}: {error}")
    return labels


def _read_votes(file: Path, doubts: Doubts) -> dict[str, Votes]:
    try:
        return dict(_votes(_cells(file), doubts))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        SyntaxError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        IndexError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        # A cut or foreign workbook; SyntaxError is what XML parsers raise.
        doubts.add("annotation.xlsx cannot be read", (str(error).splitlines() or [type(error).__name__])[0])
        return {}


def _cells(file: Path) -> Iterator[tuple[Any, ...]]:
    """Rows of the first sheet as values; never more than a workbook of DFEW can hold.

    Raises:
        ValueError: It is no such workbook: too large, or with a member that lies outside of it.
    """
    import openpyxl  # type: ignore[import-untyped]

    # A workbook is a zip. Its members are never unpacked to disk, and of none is more read than its entry says.
    with zipfile.ZipFile(file) as members:
        entries = members.infolist()
    if len(entries) > _MAX_MEMBERS or sum(entry.file_size for entry in entries) > _MAX_BYTES:
        raise ValueError(f"unpacked it is larger than {_MAX_BYTES >> 20} MB, which no annotation of DFEW is")
    for entry in entries:
        parts = entry.filename.replace("\\", "/").split("/")
        if ".." in parts or not parts[0] or ":" in parts[0]:
            raise ValueError(f"its member '{entry.filename}' lies outside of it, so it is no workbook")
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # the size a writer noted down is sometimes wrong, and then rows are missing
        yield from sheet.iter_rows(values_only=True, max_row=_MAX_ROWS, max_col=_MAX_COLUMNS)
    finally:
        book.close()


def _votes(rows: Iterator[tuple[Any, ...]], doubts: Doubts) -> Iterator[tuple[str, Votes]]:
    """Columns by their names: order, 1happy ... 7fear, clip name, annotation. `order` is no clip's name."""
    header = [plain(str(cell or "")).lstrip("0123456789") for cell in next(rows, ())]
    places = {name: header.index(name) for name in (*_COLUMNS, "annotation") if name in header}
    clip_at = next((header.index(name) for name in ("clipname", "videoname", "clip") if name in header), None)
    if len(places) < len(_COLUMNS) + 1 or clip_at is None:
        raise ValueError(f"the first row must name 1happy ... 7fear, clip name and annotation, not {header}")
    seen: set[str] = set()
    for number, row in enumerate(rows, 2):
        if not any(cell is not None for cell in row):
            continue
        cells = (*row, *[None] * len(header))
        clip = clip_name(str(cells[clip_at]))
        code = _integer(cells[places["annotation"]])
        counts = [max(_integer(cells[places[name]]), 0) for name in _COLUMNS]
        if not clip or clip in seen or (code != 0 and code not in CODES) or not sum(counts):
            doubts.add("rows of annotation.xlsx without a new clip, a label or votes", f"row {number}")
            continue
        seen.add(clip)
        shares = {CODES[place]: count / sum(counts) for place, count in enumerate(counts, 1)}
        label = CODES.get(code)
        if label and shares[label] < max(shares.values()):
            doubts.add("clips whose label did not win the votes", clip)
        yield clip, Votes(label, shares)


def _integer(cell: Any) -> int:
    """A cell's whole number ("3", 3, 3.0), or -1."""
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return -1
    return int(value) if value == int(value) else -1
