"""What `fedbench leaderboard` does and prints."""

import re
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from schemas.paper_scores import paper_scores
from schemas.scoring import PARTIAL_SCORE
from tasks.engine.fingerprint import fingerprint
from tasks.engine.places import shown, shown_uri
from tasks.engine.store import Store
from tasks.leaderboard.entrants import opened
from tasks.leaderboard.files import HOW, drift_words, number, plain, write_files
from tasks.leaderboard.page import write_page
from tasks.leaderboard.ranking import Board, RankBy, Ranked, boards

_MOST = 30  # lines of a table on a terminal


def rank_and_show(
    workspace: Path, names: Sequence[str], *, rank_by: RankBy, published: bool, seed: int, as_json: bool
) -> None:
    """Read the runs, rank them, write the files, and print the boards."""
    workspace = workspace.resolve()
    runs = opened(workspace, names)
    found = boards(runs, rank_by=rank_by, seed=seed)
    store, name = Store(workspace), _name([run.manifest.name for run in runs])
    folder = write_files(found, store, name, published=published)
    page = write_page(found, store, folder, published=published)
    if as_json:
        print_json(plain(found, published=published) | {"folder": shown(workspace / folder), "page": shown(page)})
        return
    for board in found:
        _show(board)
    if published:
        OUT.print(_published())
    OUT.print(HOW, style="dim")
    OUT.print(Text(f"files     {shown(workspace / folder)}"), soft_wrap=True)
    OUT.print(Text(f"page      {shown_uri(page)}"), soft_wrap=True)


def _name(names: Sequence[str]) -> str:
    """A folder's name: the run's, or that of the first by name and a hash of all; whoever was named first."""
    first = re.sub(r"[^a-z0-9.-]+", "-", min(names).lower()).strip("-.") or "run"
    return first if len(names) == 1 else f"{first[:50]}-and-{len(names) - 1}-{fingerprint(sorted(names))[:8]}"


def _show(board: Board) -> None:
    if board.apart:
        OUT.print(Text(f"Not ranked with the board above: {board.apart}.", style="yellow"), soft_wrap=True)
    OUT.print(_table(board))
    if len(board.rows) > _MOST:
        OUT.print(f"... and {len(board.rows) - _MOST} more, in the files.")
    for row in board.rows[:_MOST]:
        used = row.entrant.used
        if used.conflicts:
            kin = row.entrant.kin
            left = number(kin) if kin and kin.n else "no score"
            out = f"; {left} without relatives" if kin else ""
            OUT.print(Text(f"* {row.label}: {', '.join(used.conflicts)}{out}", style="yellow"), soft_wrap=True)
    for judge in board.manifest.judges:
        if judge.conflicts:
            OUT.print(Text(f"* judge {judge.judge}: {', '.join(judge.conflicts)}", style="yellow"), soft_wrap=True)
    for words in drift_words(board):
        OUT.print(Text(f"drift: {words}", style="yellow"), soft_wrap=True)
    if board.manifest.score == PARTIAL_SCORE:
        OUT.print("A partial score: mean(ID, BG) · REG, without a judge. It is no FED-Score, and ranks with none.")
    if board.stability and len(board.rows) > 1:
        OUT.print(_stability(board))
    OUT.print()


def _table(board: Board) -> Table:
    title = f"{board.title}: {board.manifest.triplets} triplets, {board.subjects} people"
    table = Table("rank", title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("editor", overflow="fold", min_width=8)
    of, beside = ("failed 0", "left\nout, n") if board.rank_by == "all" else ("left out", "failed\n0, n")
    names = (f"score,\n{of}", "n", beside, "fail\nunsc", "fid.\nalign", "r avg\nmed.")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("to the next", no_wrap=True, min_width=17)
    for row in board.rows[:_MOST]:
        whole, parts = row.entrant.whole, row.entrant.whole.parts
        other = whole.score if board.rank_by == "all" else whole.score_all
        gain = board.manifest.settings["cut"]["gain"]
        place = "–" if row.rank is None else str(row.rank)
        table.add_row(
            place if row.range is None else f"{place}\n{row.range[0]}–{row.range[1]}",
            Text(f"{row.label}{' *' if row.entrant.used.conflicts else ''}{_dagger(board, row)}"),
            number(row.score) if row.low is None else f"{number(row.score)}\n{_bare(row.low)}–{_bare(row.high)}",
            str(row.score.n),
            f"{number(other)}\n{other.n}",
            f"{whole.failed}\n{whole.unscored}",
            f"{_short(parts['fidelity'].value)}\n{_short(parts['alignment'].value)}",
            f"{_short(parts[f'{gain}_ratio'].value)}\n{_short(whole.median_ratio)}",
            _next(row),
        )
    return table


def _dagger(board: Board, row: Ranked) -> str:
    """Marks who was judged on other days, unchecked."""
    return " †" if board.judged.is_unchecked(row.entrant) else ""


def _next(row: Ranked) -> str:
    step = row.next
    if step is None or step.value is None:
        return "" if step is None else "no shared row"
    told = f"{step.verdict}\n{step.value:+.3f}"
    return told if step.detectable is None else f"{told} (≥ {step.detectable:.3f})"


def _stability(board: Board) -> Table:
    """Ranks under other scores; tau 1 is the same order."""
    title = "Ranks under other ways to score the same measurements"
    table = Table("way", title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("tau", justify="right")
    table.add_column("ranks of the editors above, in their order")
    for one in board.stability:
        places = " ".join("–" if place is None else str(place) for place in one.ranks[:_MOST])
        table.add_row(Text(one.variant), _short(one.tau), places)
    return table


def _published() -> Table:
    paper = paper_scores()
    title = f"Published figures, not ours: {paper.source}"
    table = Table("editor", title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in ("dense", "mean r", "ID", "GTA /10", "simple", "mean r"):
        table.add_column(name, justify="right")
    for row in paper.rows:
        dense, simple = row.dense, row.simple
        cells = (f"{dense.score:.3f}", f"{dense.mean_ratio:.2f}", f"{dense.id:.2f}", f"{dense.gta:.1f}")
        table.add_row(row.editor, *cells, f"{simple.score:.3f}", f"{simple.mean_ratio:.2f}")
    return table


def _bare(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
