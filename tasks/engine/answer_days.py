"""On which day what was answered: read off the answer store, beside whoever writes it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from tasks.engine.answer_file import usable

_SQL: Final = """
SELECT json_extract(request, '$.provider'), json_extract(request, '$.model'), json_extract(request, '$.repeat'),
    json_extract(request, '$.prompt_sha256'), json_extract(request, '$.images'), substr(at, 1, 10)
FROM answers WHERE raw IS NOT NULL AND json_extract(request, '$.role') = ?
"""
_WAITING: Final = """
SELECT DISTINCT json_extract(request, '$.provider'), json_extract(request, '$.model'), json_extract(request, '$.repeat')
FROM batched WHERE json_extract(request, '$.role') = ?
"""


@dataclass(frozen=True, slots=True)
class AnswerDay:
    """A stored answer's question, as `ledger.Request` has it, and the day (UTC) it was answered."""

    provider: str
    model: str
    repeat: int
    prompt_sha256: str
    images: tuple[str, ...]
    day: date


def answer_days(path: Path, role: str) -> Iterator[AnswerDay]:
    """Every answer that was given in a role; none where there is no file.

    Raises:
        WorkspaceError: The file cannot be used.
    """
    if not path.exists():
        return
    with usable(path), closing(sqlite3.connect(path)) as reader:
        for provider, model, repeat, prompt, images, day in reader.execute(_SQL, [role]):
            yield AnswerDay(provider, model, repeat, prompt, tuple(json.loads(images)), date.fromisoformat(day))


def waiting(path: Path, role: str) -> list[tuple[str, str, int]]:
    """Provider, model and repeat of the questions of a role that wait for a batch; none where there is no file.

    Raises:
        WorkspaceError: The file cannot be used.
    """
    if not path.exists():
        return []
    with usable(path), closing(sqlite3.connect(path)) as reader:
        return reader.execute(_WAITING, [role]).fetchall()
