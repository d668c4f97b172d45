"""What `fedbench score` prints: the price, the way, and the table."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from flows.console import ERR, OUT, print_json, progress_bar
from schemas.score_config import ScoreConfig
from schemas.score_manifest import EditorUsed
from schemas.scoring import PARTIAL_SCORE
from tasks.engine.places import shown
from tasks.engine.store import Store
from tasks.metrics.drift_words import apart, drifted, words_of
from tasks.metrics.score_summary import Mean
from tasks.report.funnel import because
from tasks.scoring.drift import planned
from tasks.scoring.price import Ask, asks, judges_are_asked, plain, total
from tasks.scoring.results import Results, finish
from tasks.scoring.run import due, open_scoring

ORDERS: Final = (
    "other order: how much more it gives where the pictures are swapped; flips: scores that then cross 5; repeats: how "
    "far answers to one question lie apart"
)


def score_and_show(workspace: Path, config: ScoreConfig, *, dry_run: bool, as_json: bool) -> None:
    """Price it, measure what is missing, and show the scores. Without work to do, no orchestrator is started."""
    workspace = workspace.resolve()
    with Store(workspace).lock():
        run = open_scoring(workspace, config)
        try:
            left = due(run)
            plan = planned(run, datetime.now(UTC).date(), asks=judges_are_asked(left))
            outside, edits, same, rows = asks(run, left, plan), *_sums(left)
            results = None if dry_run or plan or any(sum(counts.values()) for counts in left) else finish(run)
        finally:
            run.call.close()
    words = _price(config, run.benchmark.triplets, len(run.entries), (edits, same, rows), outside)
    if dry_run:
        told = {"run": config.name, "edits": edits, "re_encodings": same, "measurements": rows}
        print_json(
            told | {"outside": [plain(ask) for ask in outside], "dollars": total(outside)}
        ) if as_json else OUT.print(Text(words), soft_wrap=True)
        return
    if results is None:
        ERR.print(Text(words), soft_wrap=True)
        from flows.runner import on_batches, on_progress
        from flows.scoring import score_editors
        from flows.server import reached
        from flows.states import answer

        with reached(), progress_bar() as bar:
            token = on_progress.set(bar)
            on_batches.set(lambda words: ERR.print(Text(words)))
            results = answer(score_editors(config, str(workspace)))
            on_progress.reset(token)
    show(results, as_json=as_json)


def show(results: Results, *, as_json: bool) -> None:
    """The table of scores, and what must be known to read it."""
    if as_json:
        print_json(results.plain())
        return
    manifest = results.manifest
    OUT.print(_table(results))
    for one in results.scores:
        whole = one.whole
        if whole.truth_mean.n < whole.score_all.n:
            told = f"best {_number(whole.truth_best, 4)}, mean {_number(whole.truth_mean, 4)}, n {whole.truth_mean.n}"
            OUT.print(Text(f"{one.editor} ({one.granularity}), over the ground truths of a source and target: {told}"))
        if whole.reasons:
            first = f"; the first: {one.first_failure}" if one.first_failure else ""
            words = f"{one.editor} ({one.granularity}), not scored: {because(whole.reasons)}{first}"
            OUT.print(Text(words), soft_wrap=True)
    for used in manifest.editors:
        if used.conflicts:
            words = f"* {used.editor}: {', '.join(used.conflicts)}; its scores may flatter it{_left_out(results, used)}"
            OUT.print(Text(words, style="yellow"))
    for judge in manifest.judges:
        if judge.conflicts:
            OUT.print(Text(f"* judge {judge.judge}: {', '.join(judge.conflicts)}", style="yellow"))
    if manifest.judges:
        OUT.print(_judges(results))
        OUT.print(ORDERS, style="dim")
        _drift(results)
    if manifest.score == PARTIAL_SCORE:
        OUT.print("A partial score: mean(ID, BG) · REG, without a judge. It is no FED-Score; a copy keeps a seventh.")
    OUT.print(Text(f"scores    {shown(results.table)}"), soft_wrap=True)
    OUT.print(Text(f"next      fedbench leaderboard {manifest.name}"), soft_wrap=True)


def _drift(results: Results) -> None:
    """What was judged when, where that is not one day, and whether the judges still answer as they did."""
    record = results.judging
    if record is None:
        return
    for check in record.checks:
        OUT.print(Text(f"drift: {words_of(check)}", style="yellow" if drifted(check) else ""), soft_wrap=True)
    for line in apart(record.judged, record.checks, record.apart):
        OUT.print(Text(f"drift: {line}; add --drift now to this command", style="yellow"), soft_wrap=True)


def _left_out(results: Results, used: EditorUsed) -> str:
    """The scores without relatives, as words behind what marks an editor."""
    held = {one.granularity: one.without_relatives for one in results.scores if one.editor == used.editor}
    told = [
        f"{_number(mean, 4)} {name}, n {mean.n}" if mean.n else f"none {name}" for name, mean in held.items() if mean
    ]
    return f". Without relatives: {'; '.join(told)}" if told else ""


def _judges(results: Results) -> Table:
    """What each judge gave, and what its answers are worth."""
    table = Table(title="Judges, on their 0 to 10", title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("judge", overflow="fold")
    for name in ("part", "mean", "outputs", "abstained", "other order", "flips", "repeats"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in results.judges:
        orders, shift, again = len(one.orders), one.shift, one.repeat_spread
        table.add_row(
            Text(one.judge),
            str(one.part).upper(),
            "–" if one.mean is None else f"{one.mean:.2f}",
            str(len(one.means)),
            str(one.abstained),
            "–" if shift is None else f"{shift:+.2f}",
            f"{one.flips} of {orders}" if orders else "–",
            "–" if again is None else f"± {again:.2f}",
        )
    return table


def _table(results: Results) -> Table:
    """Three lines for each editor and granularity, so that it fits a terminal of 80 columns."""
    manifest = results.manifest
    title = f"{manifest.score} on {manifest.dataset} {manifest.edition}, {manifest.triplets} triplets"
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("editor\n  request", overflow="fold")
    judged = ("PQ", "SC\nGTA") if manifest.judges else ()
    columns = (
        "score\nfailed=0",
        "ID",
        "BG\nRMSE",
        *judged,
        "r mean\nmedian\nno-op",
        "AU r\nway",
        "n\nfailed",
        "un-\nscored",
    )
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    marked = {used.editor for used in manifest.editors if used.conflicts}
    for one in results.scores:
        whole, parts = one.whole, one.whole.parts
        median = "–" if whole.median_ratio is None else f"{whole.median_ratio:.2f}"
        judges = (_number(parts["pq"]), f"{_number(parts['sc'])}\n{_number(parts['gta'])}") if judged else ()
        table.add_row(
            Text(f"{one.editor}{' *' if one.editor in marked else ''}\n  {one.granularity}"),
            f"{_number(whole.score, 4)}\n{_number(whole.score_all, 4)}",
            _number(parts["id"]),
            f"{_number(parts['bg'])}\n{_number(parts['background_rmse'], 2)}",
            *judges,
            f"{_number(parts['lpips_ratio'], 2)}\n{median}\n{_number(parts['noop_ratio'], 2)}",
            f"{_number(parts['au_ratio'], 2)}\n{_number(parts['au_direction'], 2)}",
            f"{whole.score.n}\n{whole.failed}",
            str(whole.unscored),
        )
    return table


def _number(mean: Mean, digits: int = 3) -> str:
    return "–" if mean.value is None else f"{mean.value:.{digits}f}"


def _sums(left: Sequence[Mapping[str, int]]) -> list[int]:
    return [sum(counts[step] for counts in left) for step in ("score_edit", "score_noop", "score_parts")]


def _price(config: ScoreConfig, triplets: int, entries: int, left: tuple[int, int, int], outside: Sequence[Ask]) -> str:
    edits, same, rows = left
    told = f"{triplets} triplets × {entries} (editor, instruction): {edits} outputs to make, {rows} to measure"
    told += f", {same} faces to re-encode unchanged" if same else ""
    if not outside:
        return f"{told}; nothing is asked outside"
    dollars, budget = total(outside), config.calls.budget
    price = "of unknown price" if dollars is None else f"about ${dollars:.2f}"
    limit = "no budget is set" if budget is None else f"the budget is ${budget:.2f}"
    who = ", ".join(
        f"{ask.questions} to {ask.who}{' again, for drift' if ask.role == 'drift check' else ''}" for ask in outside
    )
    return f"{told}; at most {sum(ask.questions for ask in outside)} questions outside ({who}), {price}; {limit}."
