"""Scoring runs whose rows are made by hand and written as `fedbench score` writes them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.score_config import ScoreCut, ScoreJudging, ScoreMeasure
from schemas.score_manifest import EditorUsed, JudgeUsed, ScoreManifest
from schemas.scoring import SCORES_VERSION, Granularity, ScoreRow
from tasks.engine.fingerprint import sha256
from tasks.engine.store import arrow_schema
from tasks.metrics.score import with_truths
from tests.scoring.samples import judged, row, rule


def rows(editor: str, scores: Sequence[float | None], *, partial: bool = False, **more: Any) -> list[ScoreRow]:
    """One row per number: alignment is the number (0..1), the rest is perfect; None is a failed row.

    With fidelity and gain 1 the score is the number; partial scores are 1.
    """
    found = []
    for place, score in enumerate(scores):
        parts = None if score is None else rule(identity=1.0)
        answers = () if score is None or partial else judged(10, 10 * score, 10 * score)
        key = {"subject": f"p/{place:04d}", "source_id": f"{place:04d}", "triplet": f"p/{place:04d}:happy@t#0"}
        found.append(row(parts, answers, partial=partial, **{"editor": editor} | key | more))
    return found


def write(folder: Path, name: str, held: Sequence[ScoreRow], *, partial: bool = False, **changes: Any) -> Path:
    """`runs/NAME/scores` of a workspace."""
    place = folder / "runs" / name / "scores"
    place.mkdir(parents=True)
    sink = io.BytesIO()
    ordered = sorted(
        with_truths(held), key=lambda one: (one.editor, one.granularity, one.pool, one.source_id, one.target)
    )
    pq.write_table(pa.Table.from_pylist([one.model_dump() for one in ordered], schema=arrow_schema(ScoreRow)), sink)
    (place / "scores.parquet").write_bytes(sink.getvalue())
    judge = JudgeUsed(
        judge="J", family="f", identity={"kind": "judge", "name": "J", "params": {}}, conflicts=(), of_data_set=False
    )
    values: dict[str, Any] = {
        "scores_version": SCORES_VERSION,
        "name": name,
        "score": "partial score" if partial else "FED-Score",
        "dataset": "d",
        "edition": "v1",
        "rows_sha256": "0" * 64,
        "triplets": len({one.triplet for one in held}),
        "seed": 0,
        "granularities": (Granularity.SIMPLE,),
        "settings": {
            "cut": ScoreCut().model_dump(mode="json"),
            "measure": ScoreMeasure().model_dump(mode="json"),
            "judging": ScoreJudging(orders="given").model_dump(mode="json"),
            "limit": None,
        },
        "identities": (),
        "editors": tuple(
            EditorUsed(
                editor=editor, family="", identity={"name": "e", "version": 1, "params": {}}, conflicts=(), truths=()
            )
            for editor in sorted({one.editor for one in held})
        ),
        "judges": () if partial else (judge,),
        "rows": len(held),
        "scores_sha256": sha256(sink.getvalue()),
    }
    manifest = ScoreManifest(**values | changes)
    (place / "manifest.json").write_text(manifest.model_dump_json())
    return folder
