"""`fedbench calls`: what was asked of models outside, and what it cost."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from flows.verbs import AsJson, RunName, Workspace, in_words

if TYPE_CHECKING:
    from rich.table import Table

    from tasks.engine.account import Account
    from tasks.engine.batch_file import Batch

app = typer.Typer()


@app.command()
@in_words
def calls(workspace: Workspace = Path("workspace"), run: RunName = None, json: AsJson = False) -> None:
    """Show a run's calls to models outside, by role, provider and model: how they ended, tokens, dollars, seconds.

    Below the table: batches at providers, and what a provider's bill may differ by. Works beside a build that is
    calling. Calls in batches have no seconds.
    """
    from flows.console import OUT, print_json
    from tasks.engine.account import accounts, notes, runs_of
    from tasks.engine.batch_file import batches
    from tasks.results import saved_config

    path = workspace / "answers.sqlite"
    # Not every run of the ledger is a build: `panel accuracy` asks, too.
    asked = runs_of(path)
    named = asked[0] if run is None and len(asked) == 1 else run
    name = named if named and named in asked else saved_config(workspace, run).name
    held, sent = accounts(path, name), batches(path, name)
    if json:
        told = {"calls": [account.plain() for account in held], "batches": [asdict(batch) for batch in sent]}
        print_json({"run": name, **told, "notes": notes(held, sent)})
        return
    if not held:
        OUT.print(f"Run '{name}' has asked no model outside.")
        return
    OUT.print(f"Run '{name}':")
    OUT.print(calls_table(held))
    if sent:
        OUT.print(batches_table(sent))
    for note in notes(held, sent):
        OUT.print(f"· {note}")


def calls_table(held: "Sequence[Account]") -> "Table":
    """One row per role, provider and model, and their sum."""
    from rich.table import Table

    from tasks.engine.account import dollars_of

    table = Table("role", box=None, header_style="bold", pad_edge=False)
    table.add_column("model\nprovider", overflow="fold")
    for column in ("calls", "cached", "tokens in\nout", "dollars", "p50\np95 s"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("of the calls")
    for account in held:
        total = account.total
        troubles = [f"{count:,} {name}" for name, count in account.troubles.items()]
        table.add_row(
            total.role,
            f"{total.model}\n{account.provider}",
            f"{total.calls:,}",
            f"{total.cached:,}",
            f"{total.tokens_in:,}\n{total.tokens_out:,}",
            "unknown" if account.dollars is None else f"{account.dollars:.4f}",
            "–" if account.p50_s is None or account.p95_s is None else f"{account.p50_s:.2f}\n{account.p95_s:.2f}",
            ", ".join([f"{account.answered:,} answered", *troubles]),
        )
    if len(held) > 1:
        sums = [account.total for account in held]
        calls, cached, tokens_in, tokens_out = (
            f"{sum(getattr(total, name) for total in sums):,}"
            for name in ("calls", "cached", "tokens_in", "tokens_out")
        )
        answered, cost = sum(account.answered for account in held), dollars_of(held)
        dollars = "unknown" if cost is None else f"{cost:.4f}"
        table.add_row("all", "", calls, cached, f"{tokens_in}\n{tokens_out}", dollars, "", f"{answered:,} answered")
    return table


def batches_table(sent: "Sequence[Batch]") -> "Table":
    """One row per batch, those in flight told apart from those that are settled."""
    from rich.table import Table

    from tasks.engine.batch_file import OPEN

    table = Table("batch", "of", "sent", box=None, header_style="bold", pad_edge=False)
    table.add_column("requests", justify="right")
    table.add_column("state")
    for batch in sent:
        when = datetime.fromtimestamp(batch.sent).astimezone().strftime("%Y-%m-%d %H:%M")
        state = f"in flight: {batch.told or batch.state}" if batch.state in OPEN else f"{batch.state}: {batch.told}"
        table.add_row(batch.name, batch.service, when, f"{batch.requests:,}", state)
    return table
