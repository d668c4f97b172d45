"""What `fedbench score` prints: the price, the way, and the table."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from flows.console import ERR, OUT, print_json, progress_bar
from schemas.score_config import ScoreConfig
from schemas.scoring import PARTIAL_SCORE
from tasks.engine.store import Store
from tasks.metrics.score_summary import Mean
from tasks.report.funnel import because
from tasks.scoring.price import Ask, asks, plain, total
from tasks.scoring.results import Results, finish
from tasks.scoring.run import due, open_scoring


def score_and_show(workspace: Path, config: ScoreConfig, *, dry_run: bool, as_json: bool) -> None:
    """Price it, measure what is missing, and show the scores. Without work to do, no orchestrator is started."""
    workspace = workspace.resolve()
    with Store(workspace).lock():
        run = open_scoring(workspace, config)
        try:
            left = due(run)
            outside, edits = asks(run, left), sum(counts["score_edit"] for counts in left)
            rows = sum(counts["score_parts"] for counts in left)
            results = None if dry_run or any(sum(counts.values()) for counts in left) else finish(run)
        finally:
            run.call.close()
    words = _price(config, run.benchmark.triplets, len(run.entries), (edits, rows), outside)
    if dry_run:
        told = {"run": config.name, "edits": edits, "measurements": rows, "outside": [plain(ask) for ask in outside]}
        print_json(told | {"dollars": total(outside)}) if as_json else OUT.print(words, soft_wrap=True)
        return
    if results is None:
        ERR.print(words, soft_wrap=True)
        from flows.runner import on_batches, on_progress
        from flows.scoring import score_editors
        from flows.server import reached
        from flows.states import answer

        with reached(), progress_bar() as bar:
            token = on_progress.set(bar)
            on_batches.set(lambda words: ERR.print(words, highlight=False))
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
        if one.whole.reasons:
            OUT.print(f"{one.editor} ({one.granularity}), not scored: {because(one.whole.reasons)}")
    for used in manifest.editors:
        if used.conflicts:
            OUT.print(Text(f"* {used.editor}: {', '.join(used.conflicts)}; its scores may flatter it", style="yellow"))
    for judge in manifest.judges:
        if judge.conflicts:
            OUT.print(Text(f"* judge {judge.judge}: {', '.join(judge.conflicts)}", style="yellow"))
    if manifest.score == PARTIAL_SCORE:
        OUT.print("A partial score: mean(ID, BG) · REG, without a judge. It is no FED-Score; a copy keeps a seventh.")
    OUT.print(Text(f"scores    {results.table}"), soft_wrap=True)
    OUT.print(Text(f"next      fedbench leaderboard {manifest.name}"), soft_wrap=True)


def _table(results: Results) -> Table:
    """Two lines for each editor and granularity, so that it fits a terminal of 80 columns."""
    manifest = results.manifest
    title = f"{manifest.score} on {manifest.dataset} {manifest.edition}, {manifest.triplets} triplets"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("editor\n  instruction", overflow="fold")
    judged = ("PQ", "SC\nGTA") if manifest.judges else ()
    columns = (
        "score\nfailed=0",
        "ID",
        "BG\nRMSE",
        *judged,
        "r mean\nmedian",
        "AU r\nway",
        "n\nfailed",
        "un-\nscored",
    )
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    marked = {used.editor for used in manifest.editors if used.conflicts}
    for one in results.scores:
        whole, parts = one.whole, one.whole.parts
        judges = (_number(parts["pq"]), f"{_number(parts['sc'])}\n{_number(parts['gta'])}") if judged else ()
        table.add_row(
            f"{one.editor}{' *' if one.editor in marked else ''}\n  {one.granularity}",
            f"{_number(whole.score, 4)}\n{_number(whole.score_all, 4)}",
            _number(parts["id"]),
            f"{_number(parts['bg'])}\n{_number(parts['background_rmse'], 2)}",
            *judges,
            f"{_number(parts['lpips_ratio'], 2)}\n{'–' if whole.median_ratio is None else f'{whole.median_ratio:.2f}'}",
            f"{_number(parts['au_ratio'], 2)}\n{_number(parts['au_direction'], 2)}",
            f"{whole.score.n}\n{whole.failed}",
            str(whole.unscored),
        )
    return table


def _number(mean: Mean, digits: int = 3) -> str:
    return "–" if mean.value is None else f"{mean.value:.{digits}f}"


def _price(config: ScoreConfig, triplets: int, entries: int, left: tuple[int, int], outside: Sequence[Ask]) -> str:
    edits, rows = left
    told = f"{triplets} triplets × {entries} (editor, instruction): {edits} outputs to make, {rows} to measure"
    if not outside:
        return f"{told}; nothing is asked outside"
    dollars, budget = total(outside), config.calls.budget
    price = "of unknown price" if dollars is None else f"about ${dollars:.2f}"
    limit = "no budget is set" if budget is None else f"the budget is ${budget:.2f}"
    who = ", ".join(f"{ask.questions} to {ask.who}" for ask in outside)
    return f"{told}; at most {sum(ask.questions for ask in outside)} questions outside ({who}), {price}; {limit}."
