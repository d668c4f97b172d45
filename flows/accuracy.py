"""What `fedbench panel accuracy` does and prints."""

from pathlib import Path

from rich.table import Table
from rich.text import Text

from flows.console import ERR, OUT, print_json
from schemas.config import BuildConfig
from schemas.paper_accuracy import paper_accuracy
from tasks.accuracy.findings import Findings, Shown
from tasks.accuracy.page import write_page
from tasks.accuracy.plants import Case, Verdicts
from tasks.accuracy.sub_panels import PanelsOfSize
from tasks.accuracy.trials import RUN, Trial, asked_outside, attempt, prepare
from tasks.engine.account import bought
from tasks.engine.calls import Calls
from tasks.engine.places import shown as where
from tasks.engine.places import shown_uri
from tasks.engine.store import Store
from tasks.metrics.interval import Share
from tasks.report.funnel import because


def try_panel(workspace: Path, config: BuildConfig, *, limit: int, planted: bool, dry_run: bool, as_json: bool) -> None:
    """Price the trial, ask the panel, and tell what came of it."""
    workspace = workspace.resolve()
    trial = prepare(config, workspace, limit, planted=planted)
    questions, dollars = asked_outside(trial)
    if dry_run:
        if as_json:
            print_json({"sources": len(trial.sources), "pictures": trial.pictures, "questions_outside": questions,
                        "dollars": dollars})  # fmt: skip
        else:
            OUT.print(_price(trial, questions, dollars))
        return
    ERR.print(_price(trial, questions, dollars))
    path = workspace / "answers.sqlite"
    call = Calls(path, config.calls, RUN)
    call.tell_of_batches(lambda words: ERR.print(words, highlight=False))
    try:
        before = call.last()
        tried = attempt(trial, call, lambda done, total: ERR.print(f"{done} of {total} photos", highlight=False))
    finally:
        call.close()
    found = Findings.of(trial, tried, bought(path, RUN, before))
    page = write_page(found, Store(workspace))
    if as_json:
        print_json(found.plain() | {"page": where(page)})
        return
    for shown in found.shown:
        OUT.print(_voters(shown))
        OUT.print(_panels(shown))
    if tried.verdicts:
        OUT.print(_verdicts(tried.verdicts))
    _print_rest(found)
    OUT.print(Text(f"page      {shown_uri(page)}"), soft_wrap=True)


def _price(trial: Trial, questions: int, dollars: float | None) -> str:
    told = (
        f"{len(trial.sources)} of {trial.labelled} labelled photos ({trial.listed} listed), {trial.pictures} pictures"
    )
    if not questions:
        return f"{told}; nothing is asked outside"
    price = "of unknown price" if dollars is None else f"about ${dollars:.2f}"
    budget = trial.config.calls.budget
    limit = "no budget is set" if budget is None else f"the budget is ${budget:.2f}"
    return f"{told}; at most {questions} questions outside, {price}; {limit}. What is stored is not asked again."


def share(one: Share) -> str:
    """A share in percent with its interval: "66.7 (58–74)"."""
    if one.value is None or one.interval is None:
        return "–"
    low, high = one.interval
    return f"{100 * one.value:.1f} ({100 * low:.0f}–{100 * high:.0f})"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _table(title: str, *columns: str) -> Table:
    table = Table(*columns[:1], title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in columns[1:]:
        table.add_column(name, justify="right")
    return table


def _voters(shown: Shown) -> Table:
    title = (
        f"Voters on {shown.pictures} {shown.what}: percent right of all and, in the second column, of those answered"
    )
    table = _table(title, "voter", "seven", "answered", "three", "answered", "n answered")
    table.add_column("abstained", overflow="fold")
    for one in shown.voters:
        fine = (share(one.fine.of_all), share(one.fine.of_answered)) if one.fine else ("–", "–")
        name = f"{one.voter} ({one.granularity}{f', repeat {one.repeat}' if one.repeat else ''})"
        table.add_row(
            name,
            *fine,
            share(one.coarse.of_all),
            share(one.coarse.of_answered),
            str(one.coarse.of_answered.of),
            because(one.abstained) or "–",
        )
    return table


def _panels(shown: Shown) -> Table:
    title = f"Panels of every size on {shown.pictures} {shown.what}: percent right of all, best and on average"
    columns = ("classes", "rule", "voters", "panels", "best", "average", "of decided", "paper best", "average")
    table = _table(title, *columns)
    for one in shown.panels:
        classes = "seven" if one.granularity == "fine" else "three"
        table.add_row(
            classes,
            one.rule,
            str(one.size),
            str(one.panels),
            share(one.best.of_all),
            _percent(one.average),
            f"{_percent(one.average_of_decided)} ({_percent(one.average_decided)})",
            *published(one),
        )
    table.caption = "of decided: average where the panel has a winner, and in how many percent it has one"
    table.caption_justify = "left"
    return table


def published(one: PanelsOfSize) -> tuple[str, str]:
    """The paper's best and average for panels of this kind and size."""
    for row in paper_accuracy().rows:
        if row.size == one.size:
            figure = row.fine if one.granularity == "fine" else row.coarse
            return tuple("–" if value is None else f"{value:.2f}" for value in (figure.best, figure.average))  # type: ignore[return-value]
    return "–", "–"


def _verdicts(verdicts: Verdicts) -> Table:
    columns = [f"{one.rule}{' + floor' if one.identity else ''}" for one in verdicts.tables]
    table = _table("Percent of planted edits that the verdict lets pass, by majority rule", "planted", "n", *columns)
    for case in Case:
        planted = str(verdicts.tables[0].planted[case])
        table.add_row(case, planted, *(share(one.share(case)) for one in verdicts.tables))
    precision = (f"{share(one.precision)} of {one.precision.of}" for one in verdicts.tables)
    table.add_row("[bold]precision[/bold]", "", *precision)
    table.add_row("[bold]recall[/bold]", "", *(share(one.recall) for one in verdicts.tables))
    table.caption = (
        "floor: ranking's, on identity. Precision depends on how many of each are planted.\n"
        "Plants of one photo share pictures: the intervals are narrower than they should be."
    )
    table.caption_justify = "left"
    return table


def _print_rest(found: Findings) -> None:
    for one in found.bought:
        dollars = "of unknown price" if one.unpriced == one.answers else f"${one.dollars:.4f}"
        OUT.print(f"{one.model} ({one.role}): {one.answers} answers, {one.new} of them bought now, {dollars} in all")
    if found.bought:
        total = "unknown" if found.dollars is None else f"${found.dollars:.4f}"
        each = "unknown" if found.dollars_per_picture is None else f"${found.dollars_per_picture:.6f}"
        OUT.print(f"cost {total} in all; of the votes, per picture {each}")
    for what, counts in (("photos not shown", found.tried.unreadable), ("edits not made", found.tried.unmade)):
        if counts:
            OUT.print(f"{what}: {because(dict(counts))}")
    paper = paper_accuracy()
    OUT.print(
        Text(f"The paper's figures are published ones, on {paper.pictures} pictures of its own, by its own models.")
    )
    for notice in found.notices:
        OUT.print(Text(notice, style="yellow"))
