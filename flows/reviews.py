"""What `fedbench review` prints: projects, progress, and how well people agree."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from flows.console import ERR, OUT, opened, print_json
from schemas.config import BuildConfig
from tasks.boards.access import read_access
from tasks.boards.collecting import in_short
from tasks.boards.simulate import Behaviour, play
from tasks.reviewing import Review, collect_review, open_review, review_of, told


def show_opened(workspace: Path, run: str | None, sets: Sequence[str], *, as_json: bool) -> None:
    """Open the review, and say where it is."""
    review = review_of(opened(workspace, run, sets))
    projects = open_review(
        review,
        lambda who, done, total: ERR.print(f"{who}: {done} of {total} tasks", highlight=False),
    )
    if as_json:
        print_json([asdict(project) for project in projects])
        return
    table = Table("annotator", box=None, header_style="bold", pad_edge=False)
    table.add_column("tasks", justify="right")
    table.add_column("new", justify="right")
    table.add_column("where", no_wrap=True)
    for one in projects:
        table.add_row(one.annotator + (" (single)" if one.single else ""), f"{one.tasks}", f"{one.added}", one.url)
    OUT.print(table if projects else "Nobody is to be asked: everything is decided.")
    for line in lines_of(told(review)):
        if line.startswith("work "):
            OUT.print(line, markup=False, highlight=False, soft_wrap=True)


def show_collected(workspace: Path, run: str | None, sets: Sequence[str], *, as_json: bool) -> None:
    """Collect, and say what is new and how things stand."""
    found = collect_review(review_of(opened(workspace, run, sets)))
    review = review_of(opened(workspace, run, sets))
    numbers = told(review)
    if as_json:
        print_json({"fresh": found.fresh, "projects": found.projects, "notes": found.notes, "review": numbers})
        return
    OUT.print(f"{found.fresh} answers are new, from {found.projects} projects.")
    for note in in_short(found.notes):
        OUT.print(f"· {note}", markup=False, soft_wrap=True)
    show_numbers(numbers, review)


def show_standing(workspace: Path, run: str | None, sets: Sequence[str], *, daily: bool, as_json: bool) -> None:
    """How things stand by what was collected last; asks no server."""
    review = review_of(opened(workspace, run, sets))
    numbers = told(review)
    if as_json:
        print_json(numbers["daily"] if daily else numbers)
    elif daily:
        OUT.print(daily_table(numbers["daily"]))
        OUT.print(finish_line(numbers), markup=False, highlight=False, soft_wrap=True)
    else:
        show_numbers(numbers, review)


def show_played(workspace: Path, run: str | None, how: Behaviour, *, as_json: bool) -> None:
    """Let played annotators answer."""
    review = review_of(opened(workspace, run))
    given: dict[str, int] = {}
    config = review.run.config
    play(
        review.run.store,
        read_access(review.run.store),
        config.name,
        config.review.cut,
        how=how,
        tell=given.__setitem__,
    )
    if as_json:
        print_json(given)
    else:
        OUT.print(f"played: {', '.join(f'{name} {count} answers' for name, count in given.items()) or 'nobody'}")


def show_numbers(numbers: dict[str, Any], review: Review) -> None:
    """The statistics as tables."""
    OUT.print(numbers_table(numbers))
    for line in lines_of(numbers, review.run.config.review.gold_pass):
        OUT.print(line, markup=False, highlight=False, soft_wrap=True)
    if numbers["decided"] == numbers["sources"]:
        OUT.print("Everything is decided: build again.")
    elif enough_is_decided(review.run.config, numbers):
        OUT.print("Enough is decided: build again.")


def enough_is_decided(config: BuildConfig, numbers: dict[str, Any]) -> bool:
    enough: bool = numbers["decided"] >= config.review.enough * numbers["sources"]
    return enough


def go_on_is_due(config: BuildConfig, numbers: dict[str, Any]) -> bool:
    """Whether the build can go on by itself: enough is decided, and more than was published."""
    more: bool = numbers["decided"] > numbers["published"]
    return more and enough_is_decided(config, numbers)


def numbers_table(numbers: dict[str, Any]) -> Table:
    """One row per annotator."""
    table = Table("annotator", box=None, header_style="bold", pad_edge=False)
    for name in ("answered", "median s", "under 5 s", "as decided", "as the other two", "chose A"):
        table.add_column(name, justify="right")
    for name, one in numbers["annotators"].items():
        seconds = one["median_seconds"]
        table.add_row(
            name,
            f"{one['answered']} of {one['of']}",
            "–" if seconds is None else f"{seconds:.0f}",
            str(one["under_5_seconds"] or "–"),
            percent(one["with_majority"], short=True),
            percent(one["with_the_others"], short=True),
            percent(one["position"], short=True),
        )
    return table


def daily_table(daily: dict[str, Any]) -> Table:
    """One row per day and person."""
    table = Table("day", "annotator", box=None, header_style="bold", pad_edge=False)
    for name in ("answers", "tests", "median s", "under 5 s", "as decided", "gold"):
        table.add_column(name, justify="right")
    for one in daily["days"]:
        table.add_row(one["day"] or "–", one["annotator"], *daily_cells(one))
    return table


def daily_cells(one: dict[str, Any]) -> list[str]:
    """The figures of one row: answers, gold tasks and audits, median seconds, speeders, agreement, gold score."""
    seconds, gold = one["median_seconds"], one["gold"]
    return [
        str(one["answers"]),
        str(one["extra"] or "–"),
        "–" if seconds is None else f"{seconds:.0f}",
        percent(one["speeders"], short=True),
        percent(one["as_decided"], short=True),
        f"{gold['hits']} of {gold['of']}" if gold["of"] else "–",
    ]


def finish_line(numbers: dict[str, Any]) -> str:
    """How many answers are left, and when they will be there."""
    owed, daily = numbers["left"]["answers"], numbers["daily"]
    if not owed:
        return "finish     nothing is owed any more"
    if daily["finish"] is None:
        return f"finish     {owed} answers are owed; nobody has answered yet, so the day cannot be told"
    pace = f"{daily['per_day']:.1f} a day, as on the last days with answers"
    return f"finish     {daily['finish']}, at {pace}; {owed} answers are owed at least"


def lines_of(numbers: dict[str, Any], gold_pass: float = 0.0) -> list[str]:
    """Everything else, a line each; who is below the pass mark of gold tasks is told so."""
    alpha = numbers["alpha"]
    lines = [
        f"decided    {numbers['decided']} of {numbers['sources']} sources: {numbers['chosen']} have a ground truth, "
        f"{numbers['rejected']} have none; {numbers['without_majority']} without a majority, "
        f"{numbers['to_adjudicate']} of them for an adjudicator",
        f"agreement  Krippendorff's alpha {'–' if alpha is None else f'{alpha:.2f}'}; "
        + (", ".join(f"{who} {percent(one)}" for who, one in numbers["pairwise"].items()) or "nobody to compare"),
        f"position   A was chosen in {percent(numbers['position'])} of single choices",
        f"rank       people chose the first rank in {percent(numbers['rank'])}",
        f"captions   something was usable in {percent(numbers['captions']['with'])} with, "
        f"{percent(numbers['captions']['without'])} without",
    ]
    if numbers["sample"]:
        lines.insert(1, sample_line(numbers["sample"]))
    if numbers["simulated"]:
        lines.insert(0, f"simulated  {numbers['simulated']} answers are played: nothing here says anything of people")
    left = numbers["left"]
    if left["answers"]:
        lines.append(
            f"work       {left['answers']} answers are owed at least: {left['hours']:.1f} hours of people's time, at "
            f"{left['seconds']:.0f} s each ({left['basis']})"
        )
        lines.append(finish_line(numbers))
    for name, one in numbers["gold"].items():
        kinds = ", ".join(f"{kind} {by['hits']} of {by['of']}" for kind, by in one["kinds"].items())
        lines.append(f"gold       {name}: right in {percent(one)}{below(one, gold_pass)}{kinds and f' ({kinds})'}")
    if numbers["audit"]:
        lines.append(audit_line(numbers["audit"]))
    for voter, one in numbers["voters"].items():
        lines.append(
            f"voter      {voter}: usable {percent(one['approved_usable'])} of what it approved, "
            f"{percent(one['doubted_usable'])} of what it did not"
        )
    for cell, ratings in numbers["ratings"].items():
        told = ", ".join(f"{quality} {one['mean']:.1f}" for quality, one in ratings.items())
        lines.append(f"ratings    {cell}: {told} (of {max(one['ratings'] for one in ratings.values())})")
    for cell, flags in numbers["flags"].items():
        lines.append(f"tags       {cell}: {', '.join(f'{flag} {count}' for flag, count in flags.items())}")
    if numbers["changed_since_published"]:
        lines.append(f"changed    {numbers['changed_since_published']} answers to published decisions changed since")
    return lines


def below(one: dict[str, Any], mark: float) -> str:
    return f"; BELOW the pass mark of {mark:.0%}" if one["value"] is not None and one["value"] < mark else ""


def sample_line(sample: dict[str, Any]) -> str:
    """What people found in the sample, by the decisions of the last build."""
    of = f"sample     {sample['sampled']} of {sample['sources']} sources in review are for people"
    if sample["error_rate"] is None:
        return f"{of}; none is decided by a build yet, so how often the best rank is wrong is not known"
    return (
        f"{of}; the best rank was wrong on {sample['wrong']} of {sample['decided']}: {sample['error_rate']:.1%} "
        f"(95 % interval {sample['low']:.1%} to {sample['high']:.1%})"
    )


def audit_line(audit: dict[str, Any]) -> str:
    """What people found of the candidates that were rejected automatically."""
    of = f"audit      {audit['drawn']} of {audit['rejected']} rejected candidates are for people"
    if audit["share"] is None:
        return f"{of}; none is decided yet, so what was lost is not known"
    words = (
        f"{of}; they would accept {audit['usable']} of {audit['decided']}: {audit['share']:.0%} "
        f"(95 % interval {audit['low']:.0%} to {audit['high']:.0%})"
    )
    if audit["recall"] is None:
        return words
    return (
        f"{words}; the votes let {audit['recall']:.0%} of usable edits pass "
        f"({audit['recall_low']:.0%} to {audit['recall_high']:.0%})"
    )


def percent(one: dict[str, Any], *, short: bool = False) -> str:
    """A share with its 95 % interval: "72% (61%–81% of 90)"; or, in short, alone."""
    if one["value"] is None:
        return "–"
    if short:
        return f"{one['value']:.0%}"
    return f"{one['value']:.0%} ({one['low']:.0%}–{one['high']:.0%} of {one['of']})"
