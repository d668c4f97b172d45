"""A board: the editors of comparable runs under one instruction, ranked, with what every rank is worth."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from schemas.expressions import EXPRESSIONS
from schemas.score_manifest import ScoreManifest
from schemas.scoring import Granularity
from tasks.leaderboard.boards import Group, groups
from tasks.leaderboard.bootstrap import (
    LEAST,
    Difference,
    Floats,
    draws,
    interval,
    kendall,
    paired,
    rank_ranges,
    ranks,
    resampled,
)
from tasks.leaderboard.days import Judged, judged
from tasks.leaderboard.entrants import Cell, Entrant, ScoredRun, entrants
from tasks.metrics.score_summary import Mean

RankBy = Literal["all", "scored"]
# A terminal would obey them, and a run may be somebody else's.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Ranked:
    """One line of a board.

    Attributes:
        rank: From 1; None without a score. `range` is where 95 % of the resamples rank it.
        label: Its name, with its run where another has the same.
        entrant: All else.
        score: What it is ranked by.
        low, high: The 95 % interval of it; None with too few sources.
        next: Its score minus the next rank's, over the rows that both have; None for the last.
        by_target, by_source: The score by expression, failures as 0, each with its n.
    """

    rank: int | None
    range: tuple[int, int] | None
    label: str
    entrant: Entrant
    score: Mean
    low: float | None
    high: float | None
    next: Difference | None
    by_target: dict[str, Mean]
    by_source: dict[str, Mean]


@dataclass(frozen=True)
class Stability:
    """The ranks under another way to make a score of the same measurements.

    Attributes:
        variant: Which.
        tau: Kendall's tau-b against the board's own order; None where it says nothing.
        ranks: In the board's order.
        scores: The same.
    """

    variant: str
    tau: float | None
    ranks: list[int | None]
    scores: list[float | None]


@dataclass(frozen=True)
class Board:
    """What may be ranked together.

    Attributes:
        manifest: Of one of the runs: data set, cut, judges are the same in all.
        granularity: Which instruction.
        apart: Why it is not ranked with the board above; empty where the instruction alone differs.
        rank_by: all: failures are 0; scored: they are left out.
        seed, subjects: Of the bootstrap, and how many people it draws from.
        rows: By rank.
        stability: By variant.
        judged: When its editors were judged.
    """

    manifest: ScoreManifest
    granularity: Granularity
    apart: str
    rank_by: RankBy
    seed: int
    subjects: int
    rows: list[Ranked]
    stability: list[Stability]
    judged: Judged

    @property
    def title(self) -> str:
        manifest = self.manifest
        return f"{manifest.score} on {manifest.dataset} {manifest.edition}, {self.granularity} instructions"


def boards(runs: Sequence[ScoredRun], *, rank_by: RankBy = "all", seed: int = 0) -> list[Board]:
    """All boards that runs make: one for each way of scoring and each instruction.

    Args:
        runs: As `opened` gives them.
        rank_by: Whether failures count as 0 in what ranks (ours: they do, else refusing would pay).
        seed: Of the bootstrap.
    """
    found = []
    for group in groups(runs):
        held = [one for run in group.runs for one in entrants(run)]
        for granularity in sorted({one.granularity for one in held}):
            of = [one for one in held if one.granularity is granularity]
            found.append(_board(group, granularity, of, rank_by, seed))
    return found


def _board(group: Group, granularity: Granularity, held: Sequence[Entrant], rank_by: RankBy, seed: int) -> Board:
    failed = rank_by == "all"
    taken = {id(one): one.taken(failed=failed) for one in held}
    scores = {id(one): Mean.of(taken[id(one)].values()) for one in held}
    called = [one.used.editor for one in held]
    labels = {
        id(one): _CONTROL.sub("\ufffd", name if called.count(name) == 1 else f"{name} ({one.run})")
        for one, name in zip(held, called, strict=True)
    }

    def order(one: Entrant) -> tuple[float, str]:
        value = scores[id(one)].value
        return (1.0 if value is None else -value), labels[id(one)]

    ordered = sorted(held, key=order)
    people = {
        name: place for place, name in enumerate(sorted({name for one in held for name in one.subjects.values()}))
    }
    drawn = draws(len(people), seed)
    columns = [by_person(taken[id(one)], one.subjects, people) for one in ordered]
    means = np.column_stack([resampled(drawn, *column) for column in columns])
    ranges, places = rank_ranges(means), ranks([scores[id(one)].value for one in ordered])
    rows = []
    for place, one in enumerate(ordered):
        after = ordered[place + 1] if place + 1 < len(ordered) else None
        mine = taken[id(one)]
        band = interval(means[:, place]) if np.count_nonzero(columns[place][1]) >= LEAST else None
        rows.append(
            Ranked(
                rank=places[place],
                range=ranges[place] if len(people) >= LEAST else None,
                label=labels[id(one)],
                entrant=one,
                score=scores[id(one)],
                low=band[0] if band else None,
                high=band[1] if band else None,
                next=against(mine, taken[id(after)], one.subjects, people, drawn) if after else None,
                by_target=_by(mine, {cell: cell[2] for cell in mine}),
                by_source=_by(mine, one.expressions),
            )
        )
    stable = list(_stability(ordered, [row.score.value for row in rows], failed=failed))
    days = judged(group.runs, granularity)
    return Board(group.runs[0].manifest, granularity, group.apart, rank_by, seed, len(people), rows, stable, days)


def by_person(
    values: Mapping[Cell, float], subjects: Mapping[Cell, str], people: Mapping[str, int]
) -> tuple[Floats, Floats]:
    """Per person, the sum of the values and their number: two float64 (people,)."""
    sums, counts = np.zeros(len(people)), np.zeros(len(people))
    for cell in sorted(values):
        place = people[subjects[cell]]
        sums[place] += values[cell]
        counts[place] += 1
    return sums, counts


def against(
    one: Mapping[Cell, float],
    other: Mapping[Cell, float],
    subjects: Mapping[Cell, str],
    people: Mapping[str, int],
    drawn: Floats,
) -> Difference:
    """One editor's values minus another's, paired by row and drawn by person.

    Args:
        one, other: As `Entrant.taken` gives them.
        subjects: Whose row each is; `people`: their places in a draw.
        drawn: As `bootstrap.draws` gives it, for all people.
    """
    shared = {cell: value - other[cell] for cell, value in one.items() if cell in other}
    return paired(drawn, *by_person(shared, subjects, people))


def _by(values: Mapping[Cell, float], shown: Mapping[Cell, str]) -> dict[str, Mean]:
    return {
        str(name): Mean.of(value for cell, value in values.items() if shown[cell] == name)
        for name in EXPRESSIONS
        if any(shown[cell] == name for cell in values)
    }


def _stability(ordered: Sequence[Entrant], own: list[float | None], *, failed: bool) -> list[Stability]:
    """Only variants that every editor of the board has."""
    first = ordered[0].others if ordered else {}
    names = [name for name in first if all(name in one.others for one in ordered)]
    told = []
    for name in names:
        scores = []
        for one in ordered:
            cells = {cell: value for cell, value in one.others[name].items() if failed or cell not in one.failed}
            scores.append(Mean.of(cells.values()).value)
        told.append(Stability(name, kendall(own, scores), ranks(scores), scores))
    return told


def protocol(one: Entrant) -> str:
    """An editor's inference protocol in a line: adapter, version, all that decides its outputs, seed."""
    identity = one.used.identity
    told = ", ".join(f"{name}={value}" for name, value in _leaves("", identity.get("params") or {}))
    return f"{identity.get('name')} v{identity.get('version')}{f' ({told})' if told else ''}, seed {one.seed}"


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Parameters by dotted path: call.guidance_scale, loras.0.scale; a list or dict without anything says nothing."""
    if isinstance(value, Mapping):
        for name, held in sorted(value.items()):
            yield from _leaves(f"{path}.{name}" if path else str(name), held)
    elif isinstance(value, list | tuple):
        for place, held in enumerate(value):
            yield from _leaves(f"{path}.{place}", held)
    else:
        yield path, value
