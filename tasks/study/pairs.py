"""The file of a two-alternative study: two outputs for one source, what people chose, and what metrics say of both."""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from tasks.engine.errors import ConfigError

NEEDED: Final = ("source", "a", "b")
_CHOICE = re.compile(r"^(.+)_(\d+)$")
_VALUE = re.compile(r"^(.+)_([ab])$")
_SAID: Final = {"a": "a", "b": "b", "same": "same", "tie": "same", "": ""}
# What of a picture column is shown where: "source_image", "a_image", ...
_SHOWN: Final = ("source", "a", "b", "truth")


@dataclass
class Pair:
    """Two outputs for one source and instruction.

    Attributes:
        source: What a bootstrap draws.
        a, b: Who made them.
        triplet, granularity: Where the scores of runs are looked up; empty where the file does not say.
        choices: By question, each person's word: "a", "b", "same", or "" for no answer.
        values: By metric, the numbers of a and b; None where it has none.
        pictures: Files by what they show: "source", "a", "b", "truth"; as far as the file names them.
        instruction: What both outputs were asked for; empty where the file does not say.
    """

    source: str
    a: str
    b: str
    triplet: str
    granularity: str
    choices: dict[str, list[str]]
    values: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)
    instruction: str = ""


def read_pairs(path: Path) -> tuple[list[Pair], list[str]]:
    """The pairs of a CSV, JSONL or Parquet file, and the names of the columns that say nothing here.

    Columns: `source`, `a`, `b`; for each question `QUESTION_1`, `QUESTION_2`, `QUESTION_3` with a, b or same (empty:
    not answered); for each metric `METRIC_a` and `METRIC_b`; `triplet` and `granularity` for scores of runs;
    `source_image`, `a_image`, `b_image`, `truth_image` (paths, relative to the file) and `instruction` to measure.

    Raises:
        ConfigError: It cannot be read, lacks a column, or holds a word or number that is none.
    """
    rows = list(_rows(path))
    if not rows:
        raise ConfigError(f"{path} holds no pair", f"give it the columns {', '.join(NEEDED)} and QUESTION_1, ...")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lacking = [name for name in NEEDED if name not in columns]
    questions = _grouped(columns, _CHOICE)
    if lacking or not questions:
        what = ", ".join(lacking) or "QUESTION_1, QUESTION_2, ..."
        raise ConfigError(f"{path} lacks the columns {what}", f"it has: {', '.join(columns)}")
    metrics = {name: of for name, of in _grouped(columns, _VALUE).items() if len(of) == 2}
    used = {
        *NEEDED,
        "triplet",
        "granularity",
        "instruction",
        *(f"{shown}_image" for shown in _SHOWN),
        *(name for of in (questions, metrics) for held in of.values() for name in held),
    }
    pairs = [_pair(f"{path}, row {number}", row, questions, metrics, path.parent) for number, row in enumerate(rows, 1)]
    _no_row_twice(path, pairs)
    return pairs, [name for name in columns if name not in used]


def _no_row_twice(path: Path, pairs: Sequence[Pair]) -> None:
    """A row that says the same as another, votes and numbers included, is a slip: its pair would count twice."""
    seen: dict[str, int] = {}
    for number, pair in enumerate(pairs, 1):
        if (first := seen.setdefault(repr(pair), number)) != number:
            raise ConfigError(
                f"{path}, row {number}: the same as row {first}",
                "keep one; pairs that do differ, tell apart by `triplet`",
            )


def _grouped(columns: Sequence[str], pattern: re.Pattern[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in columns:
        match = pattern.match(name)
        if match:
            found.setdefault(match[1], []).append(name)
    return {name: sorted(held) for name, held in found.items()}


def _pair(
    where: str,
    row: Mapping[str, Any],
    questions: Mapping[str, list[str]],
    metrics: Mapping[str, list[str]],
    folder: Path,
) -> Pair:
    told = {name: _text(row.get(name)) for name in (*NEEDED, "triplet", "granularity", "instruction")}
    pictures = {shown: folder / path for shown in _SHOWN if (path := _text(row.get(f"{shown}_image")))}
    if pictures and "source" not in pictures:
        raise ConfigError(f"{where}, column 'source_image': empty", "an output is compared with its source")
    for name in NEEDED:
        if not told[name]:
            raise ConfigError(f"{where}, column '{name}': empty", "each pair names its source and both outputs")
    return Pair(
        **told,
        choices={name: [_choice(where, column, row) for column in held] for name, held in questions.items()},
        values={name: (_number(where, a, row), _number(where, b, row)) for name, (a, b) in metrics.items()},
        pictures=pictures,
    )


def _choice(where: str, column: str, row: Mapping[str, Any]) -> str:
    said = _text(row.get(column)).lower()
    if said not in _SAID:
        raise ConfigError(f"{where}, column '{column}': '{said}' is no choice", "write a, b or same, or leave it empty")
    return _SAID[said]


def _number(where: str, column: str, row: Mapping[str, Any]) -> float | None:
    text = _text(row.get(column))
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{where}, column '{column}': '{text}' is no number", "leave it empty where there is none")
    return value


def _text(cell: object) -> str:
    missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
    return "" if missing else str(cell).strip()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    hint = "write a .csv, .jsonl or .parquet file, in UTF-8"
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file, strict=True)
                _once(reader.fieldnames or ())
                for row in reader:
                    if None in row or None in row.values():
                        raise ValueError("a row has more or fewer cells than the first")
                    yield row
        elif path.suffix == ".jsonl":
            for line in filter(str.strip, path.read_text(encoding="utf-8-sig").splitlines()):
                row = json.loads(line, object_pairs_hook=_object)
                if not isinstance(row, dict):
                    raise ValueError("a line is no JSON object")
                yield row
        elif path.suffix == ".parquet":
            table = pq.read_table(path)
            _once(table.column_names)
            yield from table.to_pylist()
        else:
            raise ConfigError(f"{path}: unknown kind of file", hint)
    except (OSError, ValueError, RecursionError, csv.Error) as error:  # ArrowInvalid is a ValueError
        raise ConfigError(f"cannot read {path}: {str(error).splitlines()[0]}", hint) from None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    _once([name for name, _ in pairs])
    return dict(pairs)


def _once(names: Sequence[str]) -> None:
    """Readers let the last column of a name win: votes would be lost in silence."""
    double = [name for place, name in enumerate(names) if name in names[:place]]
    if double:
        raise ValueError(f"column '{double[0]}' stands there twice")
