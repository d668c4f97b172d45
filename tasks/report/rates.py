"""How a run goes: per stage how fast, how much is left, how much fails; what models outside answered and cost.

All of it is read from the workspace's commits and its ledger; nothing here enters a published data set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.engine.account import Account, accounts, dollars_of
from tasks.engine.rows import Commit
from tasks.pipeline import Run
from tasks.report.funnel import because, funnel, words


@dataclass(frozen=True)
class StageRate:
    """One stage.

    Attributes:
        stage, unit: Its name, and what its rows are ("edits").
        done, queue: Shards that have it, and shards that have yet to; those behind the target count as well.
        owed: Rows decided so far.
        measured: Rows that models measured for them, in whichever run of the workspace.
        seconds: Wall seconds of one worker per measured row; None where nothing was measured.
        per_hour: Rows that all workers of the config measure in an hour at that speed; None likewise.
        failed, rejected: Shares of the decided rows, 0..1; 0 where there are none.
        why: Failures by kind, in words.
    """

    stage: str
    unit: str
    done: int
    queue: int
    owed: int
    measured: int
    seconds: float | None
    per_hour: float | None
    failed: float
    rejected: float
    why: str


@dataclass(frozen=True)
class Rates:
    """A run's stages, its calls, the dollars of known price (None where none has one), and its budget (None: no)."""

    stages: tuple[StageRate, ...]
    calls: tuple[Account, ...]
    dollars: float | None
    budget: float | None


def rates(run: Run, done: Sequence[dict[str, Commit]]) -> Rates:
    """How a run goes, by the commits of its shards."""
    stages = []
    for row in funnel(run.executor.order, done):
        rows, seconds = run.executor.throughput(row.stage)
        each = seconds / rows if rows else None
        stages.append(
            StageRate(
                stage=row.stage,
                unit=row.unit,
                done=row.shards_done,
                queue=row.shards - row.shards_done,
                owed=row.owed,
                measured=rows,
                seconds=each,
                per_hour=3600 * run.config.workers / each if each else None,
                failed=row.failures / row.owed if row.owed else 0.0,
                rejected=row.rejections / row.owed if row.owed else 0.0,
                why=because(row.failed),
            )
        )
    held = accounts(run.store.path("answers.sqlite"), run.config.name)
    return Rates(tuple(stages), tuple(held), dollars_of(held) if held else 0.0, run.config.calls.budget)


def rates_markdown(found: Rates) -> str:
    """The stages as a Markdown table, for a Prefect artifact."""
    lines = [
        "| stage | shards done | queue | rows | s a row | rows an hour | failed | rejected |",
        "|:--|--:|--:|--:|--:|--:|:--|--:|",
    ]
    for one in found.stages:
        slow = one.seconds is not None and one.seconds >= 0.0005  # the rest is none of the models' time
        speed = (f"{one.seconds:.3f}", f"{one.per_hour:,.0f}") if slow else ("–", "–")
        lines.append(
            f"| {one.stage} | {one.done} | {one.queue} | {one.owed:,} {one.unit} | {speed[0]} | {speed[1]} "
            f"| {one.failed:.1%}{f' ({one.why})' if one.why else ''} | {one.rejected:.1%} |"
        )
    return "\n".join(lines) + "\n"


def costs_markdown(found: Rates) -> str:
    """What models outside answered and cost, as a Markdown table."""
    if not found.calls:
        return "No model outside was asked.\n"
    lines = [
        "| role | model | provider | calls | answered | trouble | cached | p50 s | p95 s | dollars |",
        "|:--|:--|:--|--:|--:|:--|--:|--:|--:|--:|",
    ]
    for one in found.calls:
        trouble = ", ".join(f"{words(name)} {count}" for name, count in one.troubles.items()) or "–"
        times = ("–", "–") if one.p50_s is None or one.p95_s is None else (f"{one.p50_s:.2f}", f"{one.p95_s:.2f}")
        lines.append(
            f"| {one.total.role} | {one.total.model} | {one.provider} | {one.total.calls:,} | {one.answered:,} "
            f"| {trouble} | {one.total.cached:,} | {times[0]} | {times[1]} | {_dollars(one.dollars)} |"
        )
    budget = "" if found.budget is None else f" of a budget of {found.budget:.2f}"
    return "\n".join(lines) + f"\n\n**{_dollars(found.dollars)} dollars**{budget}, where the price is known.\n"


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"
