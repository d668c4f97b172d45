"""What runs hold, one editor under one instruction at a time, condensed: memory does not grow with a run's columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from schemas.judging import JudgingRecord
from schemas.score_config import ScoreCut
from schemas.score_manifest import EditorUsed, ScoreManifest
from schemas.scoring import PARTIAL_SCORE, Granularity, ScoreRow, State
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import sha256
from tasks.leaderboard.bootstrap import Floats
from tasks.leaderboard.gallery import Sample, gallery
from tasks.leaderboard.variants import BEST_TRUTH, MEAN_TRUTH, variants
from tasks.metrics.score_summary import Mean, Summary, summary
from tasks.metrics.steadiness import Steadiness, steadiness
from tasks.scoring.relatives import relatives, without
from tasks.scoring.table import MANIFEST, TABLE, read_judging, read_manifest

# A row: pool, source, target, who made the ground truth, and which.
Cell = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class ScoredRun:
    """A run's manifest, where it lies, and when its judges answered; None where that is not recorded."""

    folder: Path
    manifest: ScoreManifest
    judging: JudgingRecord | None = None

    @property
    def partial(self) -> bool:
        return self.manifest.score == PARTIAL_SCORE


@dataclass
class Entrant:
    """One editor under one instruction.

    Attributes:
        run: Name of its run; `seed` that every edit was seeded from.
        used: The editor and its protocol.
        granularity: Which instruction it got.
        whole: The means, each with its n.
        subjects: By cell: whom a bootstrap draws.
        values: By cell: the score; 0 where the editor failed, None where nobody did and nothing can be said.
        failed: The cells that it failed at.
        expressions: By cell: what the source shows.
        others: By variant, the same as `values`; only what differs from them needs a model nowhere.
        kin: The mean without its relatives, failures as 0; None where it has none.
        judges: How far each judge can be believed on its outputs.
        ratios: r of every row that has one, float64.
        samples: Best, typical and worst rows, for pictures.
    """

    run: str
    seed: int
    used: EditorUsed
    granularity: Granularity
    whole: Summary
    subjects: dict[Cell, str] = field(default_factory=dict)
    values: dict[Cell, float | None] = field(default_factory=dict)
    failed: set[Cell] = field(default_factory=set)
    expressions: dict[Cell, str] = field(default_factory=dict)
    others: dict[str, dict[Cell, float | None]] = field(default_factory=dict)
    kin: Mean | None = None
    judges: list[Steadiness] = field(default_factory=list)
    ratios: Floats = field(default_factory=lambda: np.empty(0))
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def taken(self, *, failed: bool) -> dict[Cell, float]:
        """The values that count: with the failed ones as 0, or without them."""
        return {
            cell: value
            for cell, value in self.values.items()
            if value is not None and (failed or cell not in self.failed)
        }


def opened(workspace: Path, names: Sequence[str]) -> list[ScoredRun]:
    """The runs, by name in the workspace or by the folder of their scores.

    Raises:
        ConfigError: One holds no scores, is of another version, or two are the same or have the same name.
    """
    found: list[ScoredRun] = []
    for name in names:
        places = [workspace / "runs" / name / "scores", Path(name), Path(name) / "scores"]
        folder = next((place for place in places if _is_file(place / MANIFEST)), None)
        if folder is None:
            known = sorted(path.parent.parent.name for path in workspace.glob(f"runs/*/scores/{MANIFEST}"))
            held = f"scored here: {', '.join(known)}" if known else "run `fedbench score` first"
            raise ConfigError(f"no run '{name}' with scores", held)
        if any(one.folder.resolve() == folder.resolve() for one in found):
            raise ConfigError(f"run '{name}' is named twice", "name each run once")
        run = ScoredRun(folder, read_manifest(folder), read_judging(folder))
        if any(one.manifest.name == run.manifest.name for one in found):
            raise ConfigError(f"two runs are called '{run.manifest.name}'", "score one again with another --run")
        found.append(run)
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no disk takes
        return False


def entrants(run: ScoredRun) -> Iterator[Entrant]:
    """A run's editors and instructions, in the order of its table.

    Raises:
        ConfigError: The table is not the one that its manifest names, or cannot be read.
    """
    used = {one.editor: one for one in run.manifest.editors}
    for (editor, granularity), rows in groupby(score_rows(run), key=lambda row: (row.editor, row.granularity)):
        yield _entrant(run, used[editor], granularity, list(rows))


def _entrant(run: ScoredRun, used: EditorUsed, granularity: Granularity, rows: Sequence[ScoreRow]) -> Entrant:
    manifest, partial = run.manifest, run.partial
    cut = ScoreCut.model_validate(manifest.settings["cut"])
    cells = [_cell(row) for row in rows]
    ratios = [one for row in rows if (one := getattr(row.scored, f"{cut.gain}_ratio")) is not None]
    found = Entrant(
        run=manifest.name,
        seed=manifest.seed,
        used=used,
        granularity=granularity,
        whole=summary(rows, cut, partial=partial),
        subjects={cell: row.subject for cell, row in zip(cells, rows, strict=True)},
        values={cell: _value(row.scored) for cell, row in zip(cells, rows, strict=True)},
        failed={cell for cell, row in zip(cells, rows, strict=True) if row.scored.state is State.FAILED},
        expressions={cell: str(row.source_expression) for cell, row in zip(cells, rows, strict=True)},
        ratios=np.array(sorted(ratios), np.float64),
        samples=gallery(rows),
    )
    for variant in variants(manifest):
        scores = [variant.score(row, partial=partial) for row in rows]
        found.others[variant.name] = {cell: _value(one) for cell, one in zip(cells, scores, strict=True)}
    sets = {(row.pool, row.source_id, row.target): (cell, row) for cell, row in zip(cells, rows, strict=True)}
    if len(sets) < len(rows):
        found.others[BEST_TRUTH] = {cell: row.truth_best for cell, row in sets.values()}
        found.others[MEAN_TRUTH] = {cell: row.truth_mean for cell, row in sets.values()}
    found.kin = without(rows, relatives(manifest, used), cut, partial=partial)
    found.judges = steadiness(row.judged for row in rows if row.judged)
    return found


def _cell(row: ScoreRow) -> Cell:
    return row.pool, row.source_id, str(row.target), row.truth_editor, row.truth_attempt


def _value(scored: Any) -> float | None:
    return 0.0 if scored.state is State.FAILED else scored.score


def score_rows(run: ScoredRun) -> Iterator[ScoreRow]:
    """A run's rows, in the order of its table.

    Raises:
        ConfigError: The table is not the one that its manifest names, or cannot be read.
    """
    path = run.folder / TABLE
    hint = "run `fedbench score` again: nothing is measured or asked twice"
    try:
        data = path.read_bytes()
        if sha256(data) != run.manifest.scores_sha256:
            raise ConfigError(f"{path} is not the table that its manifest names", hint)
        for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(1024):
            for row in batch.to_pylist():
                yield ScoreRow.model_validate(row)
    except (OSError, pa.ArrowException, ValidationError) as error:
        raise ConfigError(f"cannot read {path}: {str(error).splitlines()[0]}", hint) from None
