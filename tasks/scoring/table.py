"""The scores on disk: `scores.parquet` and `manifest.json` of a run, written whole and read back."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from schemas.judging import JUDGING, JudgingRecord
from schemas.score_config import NOT_IN_SCORES, ScoreConfig
from schemas.score_manifest import ScoreManifest
from schemas.scoring import SCORES_VERSION, ScoreRow
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import sha256
from tasks.engine.store import arrow_schema, disk
from tasks.scoring.checks import editors_used, judges_used
from tasks.scoring.parts import used
from tasks.scoring.run import Scoring, rows

TABLE, MANIFEST = "scores.parquet", "manifest.json"
_HINT = "run `fedbench score` again: nothing is measured or asked twice"


def write_scores(run: Scoring, manifest: ScoreManifest) -> Iterator[list[ScoreRow]]:
    """Write the table, entry by entry, then the manifest that makes it count; yields each entry's rows on the way.

    Both depend on the data set, the config and the stored answers alone: no clock, no path, no order of work.
    """
    folder, aside = run.folder, run.store.path("tmp") / f"scores-{run.config.name}"
    with disk(aside):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
    count = 0
    with pq.ParquetWriter(aside / TABLE, arrow_schema(ScoreRow), compression="zstd") as writer:
        for entry in range(len(run.entries)):
            held = rows(run, entry)
            count += len(held)
            writer.write_table(pa.Table.from_pylist([row.model_dump() for row in held], schema=arrow_schema(ScoreRow)))
            yield held
    data = (aside / TABLE).read_bytes()
    manifest = manifest.model_copy(update={"rows": count, "scores_sha256": sha256(data)})
    relative = folder.relative_to(run.store.root).as_posix()
    # The manifest has the table's hash, so that a kill between the two is seen.
    run.store.write(f"{relative}/{TABLE}", data)
    run.store.write_json(f"{relative}/{MANIFEST}", manifest.model_dump(mode="json"))
    shutil.rmtree(aside, ignore_errors=True)


def manifest_of(run: Scoring) -> ScoreManifest:
    """What a run is, before its rows are counted."""
    config, data_set = run.config, run.benchmark.manifest
    return ScoreManifest(
        scores_version=SCORES_VERSION,
        name=config.name,
        score=config.score,
        dataset=data_set.name,
        edition=data_set.edition,
        rows_sha256=data_set.rows_sha256,
        triplets=run.benchmark.triplets,
        seed=config.seed,
        granularities=tuple(sorted(config.granularities)),
        settings=_settings(config),
        identities=tuple(used(config.measure)),
        editors=editors_used(config, run.benchmark),
        judges=judges_used(config, run.benchmark),
        rows=0,
        scores_sha256="",
    )


def _settings(config: ScoreConfig) -> dict[str, Any]:
    """What changes rows, and is not said elsewhere in the manifest: the editors' and judges' identities are."""
    told = {*NOT_IN_SCORES, "editors", "judges", "name", "seed", "granularities"}
    return config.model_dump(mode="json", exclude=told)


def read_manifest(folder: Path) -> ScoreManifest:
    """What a run's scores are.

    Args:
        folder: `runs/NAME/scores`.

    Raises:
        ConfigError: There are none, or they are of another version.
    """
    path = folder / MANIFEST
    try:
        manifest = ScoreManifest.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"{folder} holds no scores", "run `fedbench score` first") from None
    except (OSError, ValidationError) as error:
        raise ConfigError(f"cannot read {path}: {str(error).splitlines()[0]}", _HINT) from None
    if manifest.scores_version != SCORES_VERSION:
        raise ConfigError(
            f"{folder} has scores of version {manifest.scores_version}, this fedbench reads {SCORES_VERSION}", _HINT
        )
    return manifest


def read_judging(folder: Path) -> JudgingRecord | None:
    """When a run's judges answered; None where it does not say.

    Raises:
        ConfigError: It says so in a form that cannot be read.
    """
    path = folder / JUDGING
    try:
        return JudgingRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(f"cannot read {path}: {str(error).splitlines()[0]}", _HINT) from None
