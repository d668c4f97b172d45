"""`fedbench calls`: what was asked of models outside, and what it cost."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from flows.verbs import AsJson, RunName, Workspace, in_words

if TYPE_CHECKING:
    from rich.table import Table

    from tasks.engine.account import Account
    from tasks.engine.ledger import Total

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
    for column in ("calls", "cached", "tokens in, out", "dollars", "p50, p95 s"):
        table.add_column(column, justify="right")
    table.add_column("of the calls")
    for account in held:
        total = account.total
        table.add_row(
            total.role,
            total.model,
            f"{total.calls:,}",
            f"{total.cached:,}",
            f"{total.tokens_in:,} {total.tokens_out:,}",
            "unknown" if total.unpriced and not account.priced else f"{total.cost:.4f}",
            "–" if account.p50_s is None or account.p95_s is None else f"{account.p50_s:.2f} {account.p95_s:.2f}",
            ", ".join(_troubles(total)) or "–",
        )
    if len(held) > 1:
        sums = [account.total for account in held]
        calls, cached, tokens_in, tokens_out = (
            sum(getattr(total, name) for total in sums) for name in ("calls", "cached", "tokens_in", "tokens_out")
        )
        cost = sum(total.cost for total in sums)
        table.add_row("all", "", f"{calls:,}", f"{cached:,}", f"{tokens_in:,} {tokens_out:,}", f"{cost:.4f}")
    return table


def _troubles(total: "Total") -> list[str]:
    counts = {"failed": total.failed, "unknown": total.unknown, "unpriced": total.unpriced}
    return [f"{count:,} {name}" for name, count in counts.items() if count]
