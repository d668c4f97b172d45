"""FED-Score: what a cut makes of one output's measurements. Pure: no model, no picture."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from schemas.score_config import ScoreCut
from schemas.scoring import (
    DIMENSIONS,
    MODEL,
    JudgeScore,
    Part,
    PartStatus,
    RuleParts,
    Scored,
    ScoreRow,
    State,
    Unchanged,
)
from tasks.metrics.background import NORMALISERS
from tasks.metrics.gain import ratio, s_reg

SCALE: Final = 10.0  # of PQ, SC and GTA

Parts = Mapping[Part, float | None]
Value = tuple[float | None, PartStatus]


def combined(parts: Parts, removed: Collection[Part] = ()) -> float | None:
    """The product over the dimensions of the mean of their parts, 0..1; None where a part that stays has no value.

    FED-Bench: mean(ID, BG, PQ) · mean(SC, GTA) · REG. A dimension that `removed` leaves empty drops out (our reading
    of the paper's ablations); with all removed there is nothing to score.

    Args:
        parts: All six, each 0..1 or None.
        removed: As `ABLATIONS` has them.
    """
    means = [dimension(parts, name, removed) for name, of in DIMENSIONS.items() if set(of) - set(removed)]
    known = [mean for mean in means if mean is not None]
    return math.prod(known) if means and len(known) == len(means) else None


def dimension(parts: Parts, name: str, removed: Collection[Part] = ()) -> float | None:
    """The mean of a dimension's parts that stay, 0..1; None where none stays, or one of them has no value."""
    kept = [parts[part] for part in DIMENSIONS[name] if part not in removed]
    known = [value for value in kept if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(kept) else None


def scored(
    rule: RuleParts, judged: Sequence[JudgeScore], cut: ScoreCut, *, partial: bool, noop: Unchanged | None = None
) -> Scored:
    """What a cut makes of the measurements of one output.

    Args:
        rule: What was measured without a judge.
        judged: The judges' answers.
        cut: Normaliser, gain, tolerances.
        partial: Whether the run asks no judge: the score is then the partial one, of the rule parts.
        noop: The source as the editor re-encodes it; no part of the score.
    """
    found: dict[Part, Value] = {
        Part.ID: (_floored(rule.identity, rule.identity_status), rule.identity_status),
        Part.BG: background(rule, cut),
        Part.REG: gain(rule, cut),
        **{part: panel(judged, part, cut, partial=partial) for part in (Part.PQ, Part.SC, Part.GTA)},
    }
    values = {part: found[part][0] for part in Part}
    removed = MODEL if partial else frozenset[Part]()
    state, reason = _state(found, removed)
    return Scored(
        state=state,
        reason=reason,
        statuses=tuple(f"{part} {found[part][1]}" for part in Part),
        lpips_ratio=_ratio(rule.lpips_output, rule.lpips_truth, cut.min_lpips),
        au_ratio=_ratio(rule.au_output, rule.au_truth, cut.min_au),
        noop_ratio=_noop(noop, rule, cut),
        **{str(part): values[part] for part in Part},
        **{f"{part}_spread": spread(judged, part) for part in (Part.PQ, Part.SC, Part.GTA)},
        **{name: dimension(values, name, removed) for name in DIMENSIONS},
        score=combined(values, removed) if state is State.SCORED else None,
    )


def failed(reason: str) -> Scored:
    """What a row is scored as whose editor made no output."""
    empty: dict[str, Any] = dict.fromkeys(Scored.model_fields)
    return Scored(**empty | {"state": State.FAILED, "reason": reason, "statuses": ()})


def rescored(rows: Sequence[ScoreRow], cut: ScoreCut, *, partial: bool) -> list[ScoreRow]:
    """Rows under another cut; nothing is measured or asked.

    Args:
        rows: Of one editor under one instruction, so that the ground truths of one source and target come together.
        cut: Normaliser, gain, tolerances.
        partial: As in `scored`.
    """
    return with_truths(
        [
            row
            if row.rule is None
            else row.model_copy(update={"scored": scored(row.rule, row.judged, cut, partial=partial, noop=row.noop)})
            for row in rows
        ]
    )


def with_truths(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """The rows with the best and the mean score over the ground truths that a source has for one target.

    A failed output is 0, an unscored one is left out (ours; FED-Bench has one ground truth a source).
    """
    sets: dict[tuple[str, ...], list[float | None]] = {}
    for row in rows:
        sets.setdefault(_set(row), []).append(0.0 if row.scored.state is State.FAILED else row.scored.score)
    told = {}
    for key, scores in sets.items():
        known = [score for score in scores if score is not None]
        best, mean = (max(known), math.fsum(known) / len(known)) if known else (None, None)
        told[key] = {"truths": len(scores), "truth_best": best, "truth_mean": mean}
    return [row.model_copy(update=told[_set(row)]) for row in rows]


def _set(row: ScoreRow) -> tuple[str, ...]:
    return row.editor, row.granularity, row.pool, row.source_id, row.target


def background(rule: RuleParts, cut: ScoreCut) -> Value:
    """BG, 0..1: the chosen normaliser of the chosen RMSE; the raw one where no motion could be told and undone.

    Else who repaints the whole picture would not be scored on it (ours, as ranking has it).
    """
    if rule.background_status is not PartStatus.OK:
        return None, rule.background_status
    own = rule.background_own_rmse, rule.registered_own_rmse
    raw, registered = own if cut.own_face else (rule.background_rmse, rule.registered_rmse)
    chosen = registered if cut.background == "registered" and registered is not None else raw
    if chosen is None:
        return None, PartStatus.NO_BACKGROUND
    return NORMALISERS[cut.normaliser](chosen), PartStatus.OK


def gain(rule: RuleParts, cut: ScoreCut) -> Value:
    """REG, 0..1: `s_reg` of the chosen ratio."""
    lpips = cut.gain == "lpips"
    output, truth, least = (
        (rule.lpips_output, rule.lpips_truth, cut.min_lpips) if lpips else (rule.au_output, rule.au_truth, cut.min_au)
    )
    if truth is None:
        # Both need the source's face; blendshapes also the ground truth's.
        absent = rule.identity_status is PartStatus.NO_REFERENCE or not lpips
        return None, PartStatus.NO_REFERENCE if absent else PartStatus.NOT_MEASURED
    r = ratio(output or 0.0, truth, least)
    if r is None:
        return None, PartStatus.DEGENERATE
    if output is None:
        return None, PartStatus.NO_FACE
    return s_reg(r, cut.sigma), PartStatus.OK


def panel(judged: Sequence[JudgeScore], part: Part, cut: ScoreCut, *, partial: bool) -> Value:
    """A judged part, 0..1: the mean of the judges that answered, over 10; each counts once, however often asked."""
    if partial:
        return None, PartStatus.NOT_MEASURED
    values = by_judge(judged, part)
    if len(values) < cut.min_judges:
        return None, PartStatus.ABSTAINED
    return math.fsum(values) / len(values) / SCALE, PartStatus.OK


def spread(judged: Sequence[JudgeScore], part: Part) -> float | None:
    """Sample standard deviation over the judges that answered, on their 0..10; None with fewer than two."""
    values = by_judge(judged, part)
    return statistics.stdev(values) if len(values) > 1 else None


def by_judge(judged: Sequence[JudgeScore], part: Part) -> list[float]:
    """The mean of each judge that answered, 0..10: over both orders of the pictures and all repeats."""
    held: dict[str, list[float]] = {}
    for one in judged:
        if one.part is part and one.value is not None:
            held.setdefault(one.judge, []).append(one.value)
    return [math.fsum(values) / len(values) for values in held.values()]


def _noop(noop: Unchanged | None, rule: RuleParts, cut: ScoreCut) -> float | None:
    if noop is None:
        return None
    if cut.gain == "lpips":
        return _ratio(noop.lpips, rule.lpips_truth, cut.min_lpips)
    return _ratio(noop.au, rule.au_truth, cut.min_au)


def _ratio(output: float | None, truth: float | None, least: float) -> float | None:
    return None if output is None or truth is None else ratio(output, truth, least)


def _floored(identity: float | None, status: PartStatus) -> float | None:
    """ID = max(0, cosine); 0 where the output shows no face (FED-Bench is silent: leaving it out would reward that)."""
    if status is PartStatus.NO_FACE:
        return 0.0
    return None if identity is None else max(0.0, identity)


def _state(found: Mapping[Part, Value], removed: Collection[Part]) -> tuple[State, str]:
    missing = [(part, status) for part, (value, status) in found.items() if value is None and part not in removed]
    if not missing:
        return State.SCORED, ""
    # What no editor could help decides: where the triplet cannot be measured, nobody failed at it.
    part, status = min(missing, key=lambda one: one[1] is PartStatus.NO_FACE)
    state = State.FAILED if status is PartStatus.NO_FACE else State.UNSCORED
    return state, f"{part}: {status}"
