"""Scores of a folder of outputs in which all goes wrong that can: nothing is lost, and nothing else is touched."""

from pathlib import Path
from typing import Any

import numpy as np

from schemas.outcomes import FailureKind
from schemas.scoring import ScoreRow, State
from tasks.engine.decode import encode_png
from tasks.engine.images import ImageStore
from tasks.engine.store import Store
from tests.scoring.runs import config, rows_of, score


def test_missing_extra_resized_and_corrupt_outputs(dataset: Path, tmp_path: Path) -> None:
    simple: dict[str, Any] = {"granularities": ["simple"], "noop": {"sources": 0}}
    copies = rows_of(score(tmp_path / "w", config(dataset, None, editors=[_copy()], **simple)))
    assert len(copies) >= 4
    images = ImageStore(Store(tmp_path / "w"))
    folder = tmp_path / "mine"
    kinds = ("missing", "corrupt", "flat", "large")
    for place, row in enumerate(copies):
        file = folder / row.pool / row.source_id / f"{row.target}.png"
        file.parent.mkdir(parents=True)
        pixels = images.get(row.source_image).pixels
        kind = kinds[place] if place < len(kinds) else "good"
        if kind == "corrupt":
            file.write_bytes(encode_png(pixels)[:200])
        elif kind == "flat":
            file.write_bytes(encode_png(np.zeros_like(pixels)))
        elif kind != "missing":
            file.write_bytes(encode_png(pixels.repeat(3, axis=0).repeat(3, axis=1) if kind == "large" else pixels))
    (folder / "fake/99999").mkdir(parents=True)
    (folder / "fake/99999/happy.png").write_bytes(encode_png(np.zeros((8, 8, 3), np.uint8)))
    (folder / "notes.txt").write_text("not an output")

    outputs = {"called": "mine", "adapter": {"name": "outputs", "params": {"root": str(folder)}}}
    results = score(tmp_path / "w", config(dataset, None, editors=[outputs], name="mine", **simple))
    rows = rows_of(results)
    assert [row.triplet for row in rows] == [row.triplet for row in copies]
    missing, corrupt, flat, large, *good = rows
    assert {row.failure for row in (missing, corrupt, flat)} == {FailureKind.BAD_OUTPUT}
    assert [_why(row) for row in (missing, corrupt, flat)] == ["no output", "cannot be read", "one flat colour"]
    assert all((row.scored.state, row.rule, row.scored.score) == (State.FAILED, None, None) for row in rows[:3])
    side = images.get(large.source_image).pixels.shape[0]
    assert (large.raw_width, large.raw_height) == (3 * side, 3 * side)
    assert images.get(large.image).pixels.shape == (side, side, 3)
    assert [row.rule for row in good] == [row.rule for row in copies[4:]]
    assert [one.first_failure for one in results.scores] == [missing.message]
    (whole,) = [one.whole for one in results.scores]
    assert (whole.owed, whole.failed, whole.reasons[str(FailureKind.BAD_OUTPUT)]) == (len(rows), 3, 3)
    assert whole.owed == whole.scored + whole.failed + whole.unscored


def _copy() -> dict[str, Any]:
    return {"called": "copy", "adapter": "copy"}


def _why(row: ScoreRow) -> str:
    known = ("no output", "cannot be read", "one flat colour")
    return next((words for words in known if words in row.message), row.message)
