"""What differs between two data sets, and why: usually two editions of one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from schemas.published import Manifest, StageCount, TripletRow
from schemas.records import Key, Vote
from tasks.dataset.fates import Fate, fates
from tasks.dataset.read import data_set, typed_rows
from tasks.dataset.rules import key_of
from tasks.engine.errors import ConfigError

# Which stage a triplet's column comes from. What is not named here follows from columns that are.
STAGE_OF: Final[dict[str, str]] = {
    "source_expression": "screen",
    "label_source": "screen",
    "subject": "screen",
    "clip": "screen",
    "movie": "screen",
    "source_split": "screen",
    "traits": "screen",
    "licence": "screen",
    "source_file_sha256": "screen",
    "source_pixel_sha256": "screen",
    "source_sha256": "screen",
    "editor": "generate",
    "attempt": "generate",
    "instruction": "generate",
    "seed": "generate",
    "ground_truth_sha256": "generate",
    "votes": "verify",
    "verdict": "verify",
    "change": "verify",
    "identity": "rank",
    "raw_width": "generate",
    "raw_height": "generate",
    "editor_model": "generate",
    "watermark": "generate",
    "motion": "generate",
    "moved": "generate",
    "background_rmse": "rank",
    "registered_rmse": "rank",
    "score": "rank",
    "rank": "rank",
    "caption": "caption",
    "review": "review",
    "dense_instruction": "instruct",
    "back_check": "instruct",
}


@dataclass(frozen=True)
class Column:
    """A column in which a triplet differs, and the stage it comes from; values as in JSON, votes in words."""

    name: str
    stage: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Changed:
    """A triplet of both sides: the same edit, or the same source and target by another editor or attempt."""

    id: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Moved:
    """A triplet that only one side holds.

    Attributes:
        id: Readable key.
        fate: What became of it on the other side.
        instead: Triplets of the same source that only the other side holds.
    """

    id: str
    fate: Fate
    instead: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """Something that the manifests say differently; None where one of them does not say it."""

    where: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Difference:
    """From data set A to B. `len(a) - len(removed) + len(added) == len(b)`, in triplets.

    Attributes:
        a, b: Manifests.
        kept: Triplets of both sides, the changed ones included.
        changed, removed, added: In order of key.
        settings: Config, models, prompts and versions in which the manifests differ.
        funnel: By stage: the counts of either side, None where it has no such stage.
    """

    a: Manifest
    b: Manifest
    kept: int
    changed: tuple[Changed, ...]
    removed: tuple[Moved, ...]
    added: tuple[Moved, ...]
    settings: tuple[Setting, ...]
    funnel: dict[str, tuple[StageCount | None, StageCount | None]]


def diff(a: Path, b: Path) -> Difference:
    """Compare two data sets (full, index or hydrated) row by row; no picture is read.

    Triplets are matched by all columns of their identity first, the others by source and target.

    Raises:
        ConfigError: A folder is no data set of this schema version, or its rows are not those of its manifest.
    """
    sides = [(folder, data_set(folder)) for folder in (a, b)]
    before, after = (_triplets(*side) for side in sides)
    pairs = _matched(before, after)
    gone = sorted(before.keys() - pairs.keys())
    new = sorted(after.keys() - set(pairs.values()))
    changed = []
    for key, other in sorted(pairs.items()):
        if columns := tuple(_columns(before[key], after[other])):
            changed.append(Changed(after[other].id, columns))
    return Difference(
        a=sides[0][1],
        b=sides[1][1],
        kept=len(pairs),
        changed=tuple(changed),
        removed=_moved(gone, new, *sides[1]),
        added=_moved(new, gone, *sides[0]),
        settings=tuple(settings(sides[0][1], sides[1][1])),
        funnel=_funnel(sides[0][1], sides[1][1]),
    )


def _triplets(folder: Path, manifest: Manifest) -> dict[Key, TripletRow]:
    columns = [name for name in TripletRow.model_fields if name not in ("source", "ground_truth")]
    rows = list(typed_rows(folder, manifest, "data", columns))
    found = {key_of(row): row for row in rows}
    if not len(rows) == len(found) == manifest.triplets:
        raise ConfigError(
            f"{folder}: its rows are not those of its manifest", "run `fedbench verify` on it, and build it anew"
        )
    return found


def _matched(before: Mapping[Key, TripletRow], after: Mapping[Key, TripletRow]) -> dict[Key, Key]:
    """Key in A → key in B of the triplets that both hold; of several of one source and target the first in order."""
    pairs = {key: key for key in before if key in after}
    free: dict[tuple[str, ...], list[Key]] = {}
    for key in sorted(after.keys() - pairs.keys(), reverse=True):
        free.setdefault(key[:3], []).append(key)
    for key in sorted(before.keys() - pairs.keys()):
        if others := free.get(key[:3]):
            pairs[key] = others.pop()
    return pairs


def _columns(before: TripletRow, after: TripletRow) -> Iterator[Column]:
    if before.row_sha256 == after.row_sha256:
        return
    for name, stage in STAGE_OF.items():
        one, other = getattr(before, name), getattr(after, name)
        if one == other:
            continue
        if name == "votes":
            one, other = _said(one), _said(other)
            differing = sorted(voter for voter in {*one, *other} if one.get(voter) != other.get(voter))
            one, other = ({voter: side.get(voter) for voter in differing} for side in (one, other))
        elif name == "review":
            one, other = one.model_dump(), other.model_dump()
        yield Column(name, stage, one, other)


def _said(votes: tuple[Vote, ...]) -> dict[str, str]:
    """Each voter's answer in words, with its confidence."""
    words = {}
    for vote in votes:
        answer = str(vote.expression or vote.polarity or f"abstained: {vote.abstained}")
        sure = "" if vote.confidence is None else f" {vote.confidence:.3f}"
        words[f"{vote.voter} ({vote.granularity}) {vote.repeat}"] = answer + sure
    return words


def _moved(keys: list[Key], others: list[Key], folder: Path, manifest: Manifest) -> tuple[Moved, ...]:
    """Triplets that the data set in `folder` does not hold, with their fates there."""
    known = fates(folder, manifest, keys)
    instead: dict[Key, list[str]] = {}
    for key in others:
        instead.setdefault(key.source(), []).append(str(key))
    return tuple(Moved(str(key), known[key], tuple(instead.get(key.source(), ()))) for key in keys)


def settings(a: Manifest, b: Manifest) -> Iterator[Setting]:
    """Everything that decides and that the manifests say differently, in order of its name."""
    before, after = dict(flat(_deciding(a))), dict(flat(_deciding(b)))
    for where in sorted({*before, *after}):
        if before.get(where) != after.get(where):
            yield Setting(where, before.get(where), after.get(where))


def _deciding(manifest: Manifest) -> dict[str, Any]:
    values = manifest.model_dump(mode="json", include={"config", "prompts", "excluded", "fedbench", "pyarrow"})
    if manifest.core:
        counts = {"triplets": len(manifest.core.triplets), "lost": len(manifest.core.lost)}
        values["core"] = {"edition": manifest.core.edition, "digest": manifest.core.digest, **counts}
    values["models"] = {
        f"{stage} {place}" if place > 1 else stage: {"version": of.version} | _named(of.uses)
        for stage, answers in manifest.stages.items()
        for place, of in enumerate(reversed(answers), 1)
    }
    return values


def _named(uses: Sequence[Any]) -> dict[str, Any]:
    """Adapters by kind and name, the second of one name as "name 2"; a prompt's hash as the prompt of its stage."""
    named: dict[str, Any] = {}
    seen = Counter[str]()
    for identity in uses:
        name = f"{identity['kind']} {identity['name']}" if isinstance(identity, dict) else "prompt"
        seen[name] += 1
        named[f"{name} {seen[name]}" if seen[name] > 1 else name] = identity
    return named


def flat(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested mappings by their path; lists are leaves."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from flat(part, f"{where}.{name}" if where else str(name))
    else:
        yield where, value


def _funnel(a: Manifest, b: Manifest) -> dict[str, tuple[StageCount | None, StageCount | None]]:
    before, after = ({row.stage: row for row in side.funnel} for side in (a, b))
    return {stage: (before.get(stage), after.get(stage)) for stage in {**before, **after}}
