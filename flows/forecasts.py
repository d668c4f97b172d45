"""What `fedbench forecast`, `build --dry-run` and the pilot print."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from flows.console import ERR, OUT, opened, print_json, progress_bar
from schemas.config import BuildConfig
from schemas.forecasts import Compared, Forecast, Number, PilotFound
from tasks.engine.errors import PilotStopped
from tasks.engine.store import Store
from tasks.forecast.dry_run import Screened, needing_labels, outside_labellers, screen_only
from tasks.forecast.forecast import forecast
from tasks.pilot import pilot_file
from tasks.pipeline import open_run
from tasks.report.funnel import UNITS, because

# How a number's basis is marked.
_STARS: Final = {"given": "", "measured": "", "assumed": "*", "unknown": ""}


def show_forecast(
    workspace: Path, config: BuildConfig | None, run: str | None, sets: Sequence[str], *, as_json: bool
) -> None:
    """Say what a build would take and give, of a config or of a run of the workspace; save it for the pilot."""
    opened_run = opened(workspace, run, sets) if config is None else open_run(workspace.resolve(), config, extend=False)
    said = forecast(opened_run)
    if as_json:
        print_json(said.model_dump(mode="json"))
    else:
        _print_forecast(said)


def show_dry_run(workspace: Path, config: BuildConfig, *, as_json: bool) -> None:
    """Screen, print what survives, and forecast the rest from it."""
    workspace = workspace.resolve()
    with Store(workspace).lock():
        run = open_run(workspace, config)
        if names := outside_labellers(run):
            ERR.print(
                f"The label panel ({', '.join(names)}) asks an outside service; a dry run does not: of "
                f"{len(needing_labels(run))} photos it would look at, those without a stored answer stay undecided."
            )
        with progress_bar() as bar:
            rows = screen_only(run, bar)
        said = forecast(run)
    if as_json:
        print_json({"screening": [vars(row) for row in rows], "forecast": said.model_dump(mode="json")})
        return
    OUT.print(_screened_table(rows))
    _print_forecast(said)


def _screened_table(rows: Sequence[Screened]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title="Screening", title_justify="left")
    for name in ("pool", "shows", "photos", "kept", "not asked"):
        table.add_column(name, justify="left" if name in ("pool", "shows") else "right", no_wrap=True)
    table.add_column("why not", style="dim", overflow="fold")
    for row in rows:
        failed = f"failed: {because(row.failed)}" if row.failed else ""
        why = "; ".join(filter(None, (because(dict(row.rejected.most_common())), failed)))
        undecided = str(row.unasked or "–")
        table.add_row(Text(row.pool), row.expression or "no label", str(row.owed), str(row.kept), undecided, why)
    total = [str(sum(getattr(row, name) for row in rows)) for name in ("owed", "kept", "unasked")]
    table.add_row("all", "", *total, "", style="bold")
    return table


def _print_forecast(said: Forecast) -> None:
    OUT.print(_stages_table(said))
    OUT.print(_asks_table(said))
    pools = {pool: sum(one.sources for one in said.listed if one.pool == pool) for pool in _pools(said)}
    for pool, count in pools.items():
        labels = ", ".join(f"{one.label or 'no label'} {one.sources}" for one in said.listed if one.pool == pool)
        OUT.print(Text(f"{'sources':<11}{pool}: {count:,} ({labels})"), soft_wrap=True)
    if said.sources != sum(pools.values()):
        OUT.print(f"{'':<11}{said.sources:,} of them are used")
    for name, words in _totals(said):
        OUT.print(Text(f"{name:<11}{words}"), soft_wrap=True)
    OUT.print(Text("* assumed, or rests on an assumption; all else is given or measured", style="dim"))


def _pools(said: Forecast) -> list[str]:
    return list(dict.fromkeys(one.pool for one in said.listed))


def _stages_table(said: Forecast) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    for name in ("owed", "kept", "due", "survival", "s a row", "hours"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("rests on", style="dim", overflow="fold")
    for stage in said.stages:
        guess = _STARS[stage.basis]
        table.add_row(
            stage.stage,
            f"{stage.owed:,} {UNITS.get(stage.stage, 'rows')}",
            f"{stage.kept:,}{guess}",
            f"{stage.due:,}",
            _number(stage.rate, "{:.1%}"),
            _number(stage.seconds, "{:.2g}"),
            "unknown" if stage.hours is None else f"{stage.hours:.2g}",
            f"{stage.rate.rows:,} of {stage.rests_on}" if stage.rests_on else "assumed",
        )
    return table


def _asks_table(said: Forecast) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("role", no_wrap=True)
    table.add_column("asked", overflow="fold")
    for name in ("answers", "due", "dollars each", "dollars due"):
        table.add_column(name, justify="right", no_wrap=True)
    for ask in said.asks:
        due = "unknown" if ask.price.value is None and ask.due else f"{ask.due * (ask.price.value or 0):,.2f}"
        counts = (f"{ask.answers:,}{_STARS[ask.basis]}", f"{ask.due:,}")
        table.add_row(ask.role, Text(f"{ask.adapter} {ask.model}".strip()), *counts, _number(ask.price, "{:.4g}"), due)
    return table


def _number(number: Number, form: str) -> str:
    return "unknown" if number.value is None else form.format(number.value) + _STARS[number.basis]


def _totals(said: Forecast) -> list[tuple[str, str]]:
    spent = f"; {said.spent:,.2f} are spent" if said.spent else ""
    if said.dollars.value is None:
        dollars = f"unknown: no price for {', '.join(said.unpriced)}; the rest comes to {said.known_dollars:,.2f}"
    else:
        dollars = f"{_number(said.dollars, '{:,.2f}')} to be spent"
    silent = ", ".join(stage.stage for stage in said.stages if stage.due and stage.hours is None)
    hours = f"unknown: {silent} was never measured here, and an adapter of it does not say how long it takes"
    if said.hours is not None and said.wall_hours is not None:
        parts = " + ".join(f"{value:.2g} {name}" for name, value in said.hours.items())
        hours = f"{parts}; {said.wall_hours:.2g} on all workers at once"
    words = [
        ("dollars", dollars + spent),
        ("hours", hours),
        ("disk", f"{_number(said.gigabytes, '{:.2f} GB')}, the pictures in the workspace and in the data set"),
        ("people", f"{_number(said.annotator_hours, '{:.1f} hours')}"),
        ("triplets", f"{said.triplets:,} ({_number(said.triplets_per_source, '{:.2f} per admitted source')})"),
    ]
    if said.target is not None:
        words.append(("target", _reachable(said)))
    return words


def _reachable(said: Forecast) -> str:
    wanted = f"{said.target:,} (needs {said.needed:,} with the margin)"
    if said.reachable:
        return f"{wanted}: within reach, with {said.sources_needed:,} of {said.sources:,} sources"
    if said.sources_needed is None:
        return f"{wanted}: out of reach, no source would give a triplet"
    return f"{wanted}: out of reach; it would take {said.sources_needed:,} sources, and {said.sources:,} are used"


def show_pilot(found: PilotFound) -> None:
    """The pilot's numbers beside the expected ones, on stderr: the result of a build goes to stdout."""
    title = f"Pilot: {found.sources} sources, compared with "
    title += f"the {found.against}" if found.against else "nothing: no forecast was saved, no edition is there"
    title += f", within {found.band:.0%}" if found.against else ""
    if found.stale:
        title += " (made under other settings)"
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column("number", no_wrap=True)
    for name in ("expected", "pilot", "n", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for one in found.compared:
        table.add_row(
            one.what,
            *pilot_words(one),
            "beyond the band" if one.beyond else "",
            style="red" if one.beyond else "",
        )
    ERR.print(table)


def pilot_words(one: Compared) -> tuple[str, str, str, str]:
    """Expected, measured, n and interval of a compared number, for people."""
    form = "{:,.4f}" if one.unit == "dollars" else "{:.3f}"
    expected = "–" if one.expected is None else form.format(one.expected) + _STARS.get(one.basis, "")
    measured = "unknown" if one.measured is None else form.format(one.measured)
    interval = f"{one.low:.3f} to {one.high:.3f}" if one.low is not None and one.high is not None else ""
    return expected, measured, f"{one.rows:,}", interval


@contextmanager
def showing_pilot(workspace: Path, config: BuildConfig) -> Iterator[None]:
    """Show what the pilot of a build finds, whether the build goes on or is stopped by it."""
    from flows.runner import on_pilot

    on_pilot.set(show_pilot)
    try:
        yield
    except PilotStopped:
        found = Store(workspace).read_as(pilot_file(config), PilotFound)
        assert found, "it was saved before it stopped the build"
        show_pilot(found)
        raise
