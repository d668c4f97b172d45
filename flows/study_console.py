"""What `fedbench study agreement` does and prints."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from flows.console import ERR, OUT, print_json
from tasks.engine.errors import ConfigError
from tasks.leaderboard.entrants import opened
from tasks.study.agreement import Agreement, Better, Question, agreements, questions
from tasks.study.pairs import Pair, read_pairs
from tasks.study.scored import RAW, add_scores


def show_agreement(
    workspace: Path,
    path: Path,
    runs: Sequence[str],
    *,
    lower: Sequence[str],
    near_one: Sequence[str],
    seed: int,
    as_json: bool,
) -> None:
    """Read the pairs, look up their scores, and print each metric's agreement."""
    pairs, unused = read_pairs(path)
    lost = add_scores(pairs, opened(workspace.resolve(), runs)) if runs else 0
    found = agreements(pairs, _better(pairs, lower, near_one), seed=seed)
    asked = questions(pairs)
    if as_json:
        told = {"pairs": len(pairs), "not_in_runs": lost, "unused_columns": unused}
        rows = [asdict(one) | {"verdict": one.verdict} for one in found]
        print_json(told | {"questions": [asdict(one) for one in asked], "agreement": rows})
        return
    for one in asked:
        OUT.print(_table(one, [row for row in found if row.question == one.question]))
    if lost:
        OUT.print(f"{lost} of {len(pairs)} pairs have an output that no run scored: its metrics are missing there.")
    if unused:
        ERR.print(Text(f"columns that say nothing here: {', '.join(unused)}"), soft_wrap=True)


def _better(pairs: Sequence[Pair], lower: Sequence[str], near_one: Sequence[str]) -> dict[str, Better]:
    known = list(dict.fromkeys(name for pair in pairs for name in pair.values))
    if not known:
        raise ConfigError("there is no metric to compare", "give columns METRIC_a and METRIC_b, or --scores RUN")
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
        f"{asked.unanimous} where all agree"
    )
    table = Table("metric", title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("better")
    for name in ("agrees", "95 %", "n", "ties", "missing"):
        table.add_column(name, justify="right")
    table.add_column("against a coin")
    for one in rows:
        table.add_row(
            Text(one.metric),
            one.better,
            "–" if one.value is None else f"{one.value:.4f}",
            "–" if one.low is None else f"{one.low:.3f}–{one.high:.3f}",
            str(one.n),
            str(one.ties),
            str(one.missing),
            one.verdict,
        )
    return table
