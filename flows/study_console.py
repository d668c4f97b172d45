"""What `fedbench study agreement` does and prints."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from flows.console import ERR, OUT, print_json
from tasks.engine.errors import ConfigError
from tasks.engine.images import ImageStore
from tasks.engine.places import shown, shown_uri
from tasks.engine.store import Store
from tasks.leaderboard.entrants import ScoredRun, opened
from tasks.report.funnel import because
from tasks.study.ablation import Ablated, ablations
from tasks.study.agreement import Agreement, Better, Question, agreements, questions
from tasks.study.comparers import COMPARERS, check_all
from tasks.study.measured import Chosen, add_measured
from tasks.study.page import write_page
from tasks.study.pairs import Pair, read_pairs
from tasks.study.pictures import Album, sights_of
from tasks.study.scored import RAW, add_scores


def show_agreement(
    workspace: Path,
    path: Path,
    runs: Sequence[str],
    *,
    metrics: Sequence[str],
    lower: Sequence[str],
    near_one: Sequence[str],
    seed: int,
    as_json: bool,
) -> None:
    """Read the pairs, look up their scores, measure what is missing, and print each metric's agreement."""
    workspace = workspace.resolve()
    pairs, unused = read_pairs(path)
    chosen = [metric_of(text) for text in metrics]
    own = check_all(chosen)
    scored = opened(workspace, runs) if runs else []
    lost = add_scores(pairs, scored) if scored else 0
    lacking = _measured(workspace, pairs, scored, chosen) if chosen else {}
    found = agreements(pairs, own | _better(pairs, lower, near_one), seed=seed)
    asked, parts = questions(pairs), ablations(pairs, seed=seed)
    told = {
        "pairs": len(pairs),
        "not_in_runs": lost,
        "unused_columns": unused,
        "without_a_number": {metric: dict(reasons) for metric, reasons in lacking.items() if reasons},
        "metrics": [COMPARERS.identity(*one) for one in chosen],
        "questions": [asdict(one) for one in asked],
        "agreement": [asdict(one) | {"verdict": one.verdict} for one in found],
        "ablation": {question: [asdict(one) for one in rows] for question, rows in parts.items()},
    }
    page = write_page(_name(path), Store(workspace), asked=asked, found=found, parts=parts, told=told)
    if as_json:
        print_json(told | {"page": shown(page)})
        return
    for one in asked:
        OUT.print(_table(one, [row for row in found if row.question == one.question]))
        if one.question in parts:
            OUT.print(_ablated(one.question, parts[one.question]))
    _say_what_lacks(lost, len(pairs), unused, lacking)
    OUT.print(Text(f"page      {shown_uri(page)}"), soft_wrap=True)


def metric_of(text: str) -> Chosen:
    """`dino:model=facebook/dinov2-base,revision=...` as a name and its parameters.

    Raises:
        ConfigError: A parameter has no value; the registry says what else is wrong.
    """
    name, _, told = text.strip().partition(":")
    params: dict[str, Any] = {}
    for pair in filter(None, re.split(r",(?=\w+=)", told)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(
                f"--metrics {text}: '{pair}' is no parameter", "write --metrics dino:model=ID,revision=COMMIT"
            )
        params[key] = value
    COMPARERS.parse(name, params)
    return name, params


def _measured(
    workspace: Path, pairs: Sequence[Pair], runs: Sequence[ScoredRun], chosen: Sequence[Chosen]
) -> dict[str, Counter[str]]:
    store = Store(workspace)

    def tell(name: str, done: int, of: int) -> None:
        ERR.print(Text(f"{name}: {done} of {of} outputs"))

    with store.lock():
        album = Album(ImageStore(store))
        return add_measured(pairs, sights_of(pairs, runs, album), chosen, album, store, tell=tell)


def _name(path: Path) -> str:
    """Of the study, for its folder: the file's."""
    return re.sub(r"[^a-z0-9.-]+", "-", path.stem.lower()).strip("-.")[:80] or "pairs"


def _better(pairs: Sequence[Pair], lower: Sequence[str], near_one: Sequence[str]) -> dict[str, Better]:
    known = list(dict.fromkeys(name for pair in pairs for name in pair.values))
    if not known:
        raise ConfigError(
            "there is no metric to compare", "give columns METRIC_a and METRIC_b, --metrics NAME, or --scores RUN"
        )
    for name in (*lower, *near_one):
        if name not in known:
            raise ConfigError(f"no metric '{name}'", f"choose one of: {', '.join(known)}")
    both = sorted(set(lower) & set(near_one))
    if both:
        raise ConfigError(f"--lower and --near-one both name '{both[0]}'", "give one of them")
    chosen: dict[str, Better] = dict.fromkeys(lower, "lower")
    return RAW | chosen | dict.fromkeys(near_one, "near one")


def _table(asked: Question, rows: Sequence[Agreement]) -> Table:
    title = (
        f"{asked.question}: {asked.pairs} pairs, {asked.no_majority} without a majority and left out, "
        f"{asked.unanimous} where all agree" + (f"; alpha {asked.alpha:.2f}" if asked.alpha is not None else "")
    )
    table = Table("metric", title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("better")
    for name in ("agrees", "95 %", "n", "ties", "missing"):
        table.add_column(name, justify="right")
    table.add_column("to a coin")
    for one in rows:
        table.add_row(
            Text(one.metric), one.better, *_shares(one), str(one.n), str(one.ties), str(one.missing), one.verdict
        )
    return table


def _ablated(question: str, rows: Sequence[Ablated]) -> Table:
    title = f"{question}: FED-Score without a part, and the change over the pairs that both have a number for"
    table = Table("config", title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in ("agrees", "95 %", "n", "ties", "change", "95 % of it"):
        table.add_column(name, justify="right")
    for one in rows:
        change = one.change
        moved = "" if change is None or change.value is None else f"{change.value:+.4f}"
        band = "" if change is None or change.low is None else f"{change.low:+.3f} to {change.high:+.3f}"
        table.add_row(one.config, *_shares(one.agreement), str(one.agreement.n), str(one.agreement.ties), moved, band)
    return table


def _shares(one: Agreement) -> tuple[str, str]:
    return (
        "–" if one.value is None else f"{one.value:.4f}",
        "–" if one.low is None else f"{one.low:.3f}–{one.high:.3f}",
    )


def _say_what_lacks(lost: int, pairs: int, unused: Sequence[str], lacking: Mapping[str, Counter[str]]) -> None:
    if lost:
        OUT.print(f"{lost} of {pairs} pairs have an output that no run scored: its metrics are missing there.")
    for metric, reasons in lacking.items():
        if reasons:
            OUT.print(Text(f"{metric}: outputs without a number: {because(reasons)}"), soft_wrap=True)
    if unused:
        ERR.print(Text(f"columns that say nothing here: {', '.join(unused)}"), soft_wrap=True)
