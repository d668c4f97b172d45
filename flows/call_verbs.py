"""`fedbench calls`: what was asked of models outside, and what it cost."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from flows.verbs import AsJson, RunName, Workspace, in_words

if TYPE_CHECKING:
    from rich.table import Table

    from tasks.engine.account import Account

app = typer.Typer()


@app.command()
@in_words
def calls(workspace: Workspace = Path("workspace"), run: RunName = None, json: AsJson = False) -> None:
    """Show a run's calls to models outside: how many, how they ended, tokens, dollars, seconds, by role and model.

    Below the table: what a provider's bill may differ by. Works beside a build that is calling.
    """
    from flows.console import OUT, print_json
    from tasks.engine.account import accounts, notes
    from tasks.results import saved_config

    name = saved_config(workspace, run).name
    held = accounts(workspace / "answers.sqlite", name)
    if json:
        print_json({"run": name, "calls": [asdict(account) for account in held], "notes": notes(held)})
        return
    if not held:
        OUT.print(f"Run '{name}' has asked no model outside.")
        return
    OUT.print(calls_table(held))
    for note in notes(held):
        OUT.print(f"· {note}")


def calls_table(held: "list[Account]") -> "Table":
    """One row per role and model, and their sum."""
    from rich.table import Table

    table = Table("role", "model", box=None, header_style="bold", pad_edge=False)
    for column in ("calls", "cached", "failed", "unknown", "unpriced", "tokens in", "out", "dollars", "p50 s", "p95 s"):
        table.add_column(column, justify="right")
    table.add_column("price of")
    for account in held:
        total = account.total
        counts = (total.calls, total.cached, total.failed, total.unknown, total.unpriced)
        priced = total.calls - total.failed - total.unknown - total.unpriced
        table.add_row(
            total.role,
            total.model,
            *(f"{count:,}" if count else "–" for count in counts),
            f"{total.tokens_in:,}",
            f"{total.tokens_out:,}",
            f"{total.cost:.4f}" if priced else "unknown" if total.unpriced else "–",
            *("–" if seconds is None else f"{seconds:.2f}" for seconds in (account.p50_s, account.p95_s)),
            ", ".join(account.priced) or "–",
        )
    sums = [account.total for account in held]
    table.add_section()
    table.add_row(
        "all",
        "",
        *(
            f"{sum(getattr(total, name) for total in sums):,}"
            for name in ("calls", "cached", "failed", "unknown", "unpriced", "tokens_in", "tokens_out")
        ),
        f"{sum(total.cost for total in sums):.4f}",
    )
    return table
