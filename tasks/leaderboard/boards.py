"""Which runs may stand on one board. What differs is told in words; nothing is ranked across it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.scoring import FED_SCORE
from tasks.engine.fingerprint import canonical
from tasks.leaderboard.entrants import ScoredRun

_MOST = 4  # differences that are spelt out


@dataclass(frozen=True)
class Group:
    """Runs that were scored alike.

    Attributes:
        runs: By name.
        apart: Why it stands apart from the first group; empty for the first.
    """

    runs: tuple[ScoredRun, ...]
    apart: str


def groups(runs: Sequence[ScoredRun]) -> list[Group]:
    """The runs by the conditions they were scored under: the largest group of full scores first, partial ones last."""
    alike: dict[bytes, list[ScoredRun]] = {}
    for run in runs:
        alike.setdefault(canonical(conditions(run)), []).append(run)

    def order(held: list[ScoredRun]) -> tuple[bool, int, str]:
        return held[0].manifest.score != FED_SCORE, -len(held), min(run.manifest.name for run in held)

    ordered = sorted(alike.values(), key=order)
    first = conditions(ordered[0][0])
    return [
        Group(
            tuple(sorted(held, key=lambda run: (run.manifest.name, str(run.folder)))),
            "; ".join(differences(first, conditions(held[0]))) if place else "",
        )
        for place, held in enumerate(ordered)
    ]


def conditions(run: ScoredRun) -> dict[str, Any]:
    """What must be equal for scores to be compared: what was scored, how it was measured, who judged, the cut.

    An editor's own protocol (steps, size, seed) is no condition: it is part of its row.
    """
    manifest = run.manifest
    return {
        "score": manifest.score,
        "data set": f"{manifest.dataset} {manifest.edition}",
        "rows of the data set": manifest.rows_sha256[:12],
        "triplets": manifest.triplets,
        "cut": manifest.settings["cut"],
        "measure": manifest.settings["measure"],
        **({"judging": manifest.settings["judging"]} if manifest.judges else {}),
        "models that measured": sorted(manifest.identities, key=canonical),
        "judges": sorted((judge.identity for judge in manifest.judges), key=canonical),
    }


def differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """In words, what of two runs' `conditions` differs; no more than a few are spelt out."""
    mine, theirs = dict(_flat("", first)), dict(_flat("", other))
    # What one of them lacks altogether, how judges were asked, follows from what differs.
    names = [name for name in mine if name in theirs and mine[name] != theirs[name]]
    told = [f"{name}: {_short(theirs.get(name))} here, {_short(mine.get(name))} above" for name in names[:_MOST]]
    return told + ([f"and {len(names) - _MOST} more differences"] if len(names) > _MOST else [])


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Leaves by dotted path; what judges or models are is one leaf, for a part of it says little."""
    if isinstance(value, Mapping) and path in {"", "cut", "measure", "judging"}:
        for name, held in value.items():
            yield from _flat(f"{path}.{name}" if path else name, held)
    else:
        yield path, value


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one.get("params", {}).get("name") or one.get("name")) for one in value) or "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
