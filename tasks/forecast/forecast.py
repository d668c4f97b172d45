"""What a build would take and give: it looks as `fedbench status` does, asks nobody and runs no model."""

import math
from collections import Counter
from collections.abc import Sequence

from schemas.config import BuildConfig
from schemas.forecasts import AskForecast, Basis, Forecast, Number, PilotFound, SourceCount, StageForecast
from schemas.records import Source
from tasks.engine.ledger import Spent
from tasks.forecast.asks import Ask, asks, declared_seconds, device, price
from tasks.forecast.measured import picture_bytes, seconds_per_row
from tasks.forecast.rows import Flow, Rows
from tasks.pilot import LAST, forecast_file, pilot_file, settings_of
from tasks.pipeline import Run

_UNKNOWN = Number(value=None, basis="unknown")


def forecast(run: Run) -> Forecast:
    """What a build of this run would take and give; saved under the run, for the pilot to compare with.

    Args:
        run: As `open_run` gives it, `extend=False` for a mere look.
    """
    said = _forecast(run)
    run.store.write_json(forecast_file(run.config), said.model_dump(mode="json"))
    return said


def _forecast(run: Run) -> Forecast:
    config, rows = run.config, Rows(run)
    total, cut = len(rows.sources), config.publish.cut
    screening = rows.screening()
    everything = rows.candidates(screening.kept, screening.basis, total)
    per_source = everything[LAST].kept / screening.kept if screening.kept else 0.0
    needed, used, sources_needed = _prefix(config, total, screening.kept, per_source)
    photos = screening.kept * used / max(1, total)
    flows = {"screen": screening, **rows.candidates(photos, screening.basis, used)}
    triplets = flows[LAST].kept if cut.target is None else min(flows[LAST].kept, cut.target)
    compared = rows.compared(photos, flows["review"].owed)
    spent = run.executor.context.call.spent()
    edits = rows.edits_due(photos, used)
    lines = [_ask(rows, ask, flows[ask.stage], compared, edits, spent) for ask in asks(config)]
    stages = tuple(_stage(rows, name, flow) for name, flow in flows.items())
    one = _dollars_per_source(run, lines, photos)
    dollars, known, unpriced = _dollars(lines, one, flows["generate"], photos)
    hours = _hours(stages)
    seen = rows.resting_on(LAST)
    return Forecast(
        name=config.name,
        edition=config.edition,
        settings=settings_of(run.executor),
        listed=_listed(run.listed),
        sources=total,
        stages=stages,
        asks=tuple(lines),
        dollars=dollars,
        known_dollars=known,
        unpriced=unpriced,
        spent=sum(total.cost for total in run.executor.context.call.totals()),
        dollars_per_source=one,
        hours=hours,
        wall_hours=None if hours is None else sum(hours.values()) / config.workers,
        gigabytes=_gigabytes(rows, flows["generate"].owed, triplets),
        annotator_hours=_annotator_hours(config, next(line for line in lines if line.role == "review")),
        target=cut.target,
        needed=needed,
        triplets=round(triplets),
        triplets_per_source=Number(
            value=per_source,
            basis="measured" if all(flow.rate.basis == "measured" for flow in everything.values()) else "assumed",
            rows=len(seen.sources("generate")) if seen else 0,
        ),
        reachable=None if needed is None else everything[LAST].kept >= needed,
        sources_needed=sources_needed,
    )


def _stage(rows: Rows, name: str, flow: Flow) -> StageForecast:
    stage = rows.executor.stages[name]
    seconds = seconds_per_row(rows.executor, name) or declared_seconds(stage)
    return StageForecast(
        stage=name,
        owed=round(flow.owed),
        kept=round(flow.kept),
        done=rows.own.balances[name].decided,
        due=round(flow.due),
        basis=flow.basis,
        rate=flow.rate,
        refused=flow.refused,
        rests_on=flow.rests_on,
        seconds=seconds,
        hours=None if seconds.value is None else flow.due * seconds.value / 3600,
        device=device(stage),
    )


def _ask(  # noqa: PLR0917 - each is a number of another kind
    rows: Rows, ask: Ask, flow: Flow, compared: float, edits: dict[str, float], spent: Sequence[Spent]
) -> AskForecast:
    """One adapter's line; a board is asked once for each of the `compared` sources, an editor for its own `edits`."""
    answers, due = flow.to_measure, flow.due
    if ask.role == "label" and not rows.config.screen.measure.check_labels:
        share = sum(source.label is None for source in rows.sources) / max(1, len(rows.sources))
        answers, due = answers * share, due * share
    if ask.role == "edit":
        each = rows.edits_per_source()
        answers, due = answers * each.get(ask.name, 0.0) / sum(each.values()), edits.get(ask.name, 0.0)
    if ask.role == "review":
        answers, due = compared, compared * (due / answers if answers else 0.0)
    return AskForecast(
        stage=ask.stage,
        role=ask.role,
        adapter=ask.name,
        model=ask.model,
        answers=round(answers),
        due=round(due),
        basis="given" if ask.role == "label" else flow.basis,
        outside=ask.adapter.sends_outside(ask.params),
        price=price(ask, spent),
    )


def _gigabytes(rows: Rows, edits: float, triplets: float) -> Number:
    """Pictures in the store, and once more in the data set, which has all edits and the sources of its triplets."""
    sizes = []
    for stage in ("screen", "generate"):
        found = next((one for one in (rows.own, *rows.others) if one.balances[stage].kept), None)
        digests = [row.image for row in found.outputs(stage)] if found else []
        assumed = Number(value=rows.config.forecast.picture_mb * 1e6, basis="assumed")
        sizes.append(picture_bytes(rows.run, digests) or assumed)
    source, edit = sizes
    total = (len(rows.sources) + triplets) * (source.value or 0.0) + 2 * edits * (edit.value or 0.0)
    basis: Basis = "measured" if all(size.basis == "measured" for size in sizes) else "assumed"
    return Number(value=total / 1e9, basis=basis, rows=sum(size.rows for size in sizes))


def _prefix(config: BuildConfig, total: int, photos: float, per_source: float) -> tuple[int | None, int, int | None]:
    """Triplets needed, sources that go through all stages, and sources needed for the target.

    A build takes whole shards, `4 × workers` at once, and stops behind those that suffice.
    """
    target = config.publish.cut.target
    if target is None:
        return None, total, None
    needed = math.ceil(target * config.publish.cut.margin)
    triplets = photos * per_source
    if not triplets:
        return needed, total, None
    sources = math.ceil(needed * total / triplets)
    wave = config.shard_size * 4 * config.workers
    return needed, min(total, math.ceil(sources / wave) * wave), sources


def _dollars_per_source(run: Run, lines: Sequence[AskForecast], photos: float) -> Number:
    """Of the stages behind screening: what the pilot's sources cost, else answers at their prices."""
    pilot = run.store.read_as(pilot_file(run.config), PilotFound)
    if pilot and pilot.settings == settings_of(run.executor) and pilot.dollars_per_source is not None:
        return Number(value=pilot.dollars_per_source, basis="measured", rows=pilot.sources)
    behind = [line for line in lines if line.role != "label" and line.answers]
    if any(line.price.value is None for line in behind):
        return _UNKNOWN
    total = sum(line.answers * (line.price.value or 0.0) for line in behind)
    basis: Basis = "given" if all(line.price.basis == "given" for line in behind) else "assumed"
    return Number(value=total / photos if photos else 0.0, basis=basis)


def _dollars(
    lines: Sequence[AskForecast], one: Number, edits: Flow, photos: float
) -> tuple[Number, float, tuple[str, ...]]:
    """Dollars yet to be spent, the part that is known, and whose price is not."""
    due = [line for line in lines if line.due]
    labels = [line for line in due if line.role == "label"]
    if one.basis == "measured" and all(line.price.value is not None for line in labels):
        open_share = edits.due / edits.owed if edits.owed else 0.0
        total = sum(line.due * (line.price.value or 0.0) for line in labels) + (one.value or 0.0) * photos * open_share
        return Number(value=total, basis="measured", rows=one.rows), total, ()
    known = sum(line.due * line.price.value for line in due if line.price.value is not None)
    unpriced = sorted({f"{line.role}: {line.model or line.adapter}" for line in due if line.price.value is None})
    if unpriced:
        return _UNKNOWN, known, tuple(unpriced)
    free = all(line.price.basis == "given" for line in due)
    return Number(value=known, basis="given" if free else "assumed"), known, ()


def _hours(stages: Sequence[StageForecast]) -> dict[str, float] | None:
    hours: dict[str, float] = {}
    for stage in stages:
        if stage.due and stage.hours is None:
            return None
        hours[stage.device] = hours.get(stage.device, 0.0) + (stage.hours or 0.0)
    return dict(sorted(hours.items()))


def _annotator_hours(config: BuildConfig, review: AskForecast) -> Number:
    """People's time for the comparisons that are due; the `auto` board has nobody."""
    if config.review.measure.board.name == "auto":
        return Number(value=0.0, basis="given")
    compared = review.due * config.review.cut.sample
    hours = compared * config.forecast.annotators * config.forecast.annotator_seconds / 3600
    return Number(value=hours, basis="assumed")


def _listed(sources: Sequence[Source]) -> tuple[SourceCount, ...]:
    counts = Counter((source.key.pool, str(source.label or "")) for source in sources)
    return tuple(SourceCount(pool=pool, label=label, sources=n) for (pool, label), n in sorted(counts.items()))
