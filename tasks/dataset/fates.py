"""Why a triplet is not in a data set, as the data set itself tells."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from schemas.config import BuildConfig
from schemas.outcomes import Status
from schemas.published import Manifest
from schemas.records import Key
from tasks.dataset.read import config_of, plain_rows, tables

NOT_LISTED: Final = "not_listed"
NOT_OWED: Final = "not_owed"


@dataclass(frozen=True)
class Fate:
    """Where a row ended.

    Attributes:
        stage: The stage that let it go; empty where none ever saw it.
        reason: A `Reason` or `FailureKind`, "waiting", or one of the two above.
        evidence: The numbers in words.
    """

    stage: str
    reason: str
    evidence: str

    def __str__(self) -> str:
        told = f"{self.stage}: {self.reason.replace('_', ' ')}" if self.stage else self.reason.replace("_", " ")
        return f"{told} ({self.evidence})" if self.evidence else told


def fates(folder: Path, manifest: Manifest, wanted: Collection[Key]) -> dict[Key, Fate]:
    """What became of candidates that a data set does not hold as triplets, by key.

    Args:
        folder: The data set; no picture is read.
        manifest: Its manifest.
        wanted: Keys of candidates.

    Raises:
        ConfigError: A file cannot be read, or the manifest holds no config.
    """
    config = config_of(folder, manifest)
    sources, ends = {key.source() for key in wanted}, {}
    there: set[Key] = set()
    for key, row in _rejected(folder, manifest) if wanted else ():
        if key.source() in sources:
            there.add(key.source())
            ends[key] = _end(row)
    for key in triplet_keys(folder, manifest) if wanted else ():
        there.add(key.source())
    return {
        key: ends.get(key) or ends.get(key.source()) or unseen(config, listed=key.source() in there) for key in wanted
    }


def triplet_keys(folder: Path, manifest: Manifest) -> list[Key]:
    """The keys of a data set's triplets, in its order.

    Raises:
        ConfigError: A file cannot be read.
    """
    rows = plain_rows(folder, tables(manifest.files, "data"), Key._fields)
    return [Key(**row) for row in rows]


def _rejected(folder: Path, manifest: Manifest) -> Iterator[tuple[Key, dict[str, Any]]]:
    columns = [*Key._fields, "stage", "status", "reason", "evidence"]
    for row in plain_rows(folder, tables(manifest.files, "rejected"), columns):
        yield Key(*(row[name] for name in Key._fields)), row


def _end(row: dict[str, Any]) -> Fate:
    if row["status"] == Status.KEPT:
        return Fate("generate", NOT_OWED, "its source passed screening, and no edit of it was asked for")
    return Fate(row["stage"], row["reason"] or row["status"], row["evidence"])


def unseen(config: BuildConfig, *, listed: bool) -> Fate:
    """The fate of a candidate that a build of that config never owed, whose source it has (`listed`) or not."""
    if not listed:
        target = config.publish.cut.target
        met = f", or the target of {target} was met before it" if target else ""
        return Fate("", NOT_LISTED, f"no pool lists its source, or it lies beyond the limit{met}")
    measure = config.generate.measure
    asked = f"editor {', '.join(measure.editors)}, {measure.attempts} per target"
    targets = ", ".join(measure.targets) or "every other expression"
    return Fate("", NOT_OWED, f"of its source other edits were asked for: {asked}, {targets}")
