"""What `fedbench status` prints: what is done, what is due, and what it cost so far."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from flows.call_verbs import calls_table
from flows.console import OUT, opened, print_json
from tasks.engine.account import accounts, notes
from tasks.engine.batch_file import batches
from tasks.engine.recut import recalled
from tasks.engine.tombstones import read_withdrawals
from tasks.pipeline import narrowed
from tasks.report.funnel import funnel, funnel_table


def show_status(workspace: Path, name: str | None, sets: Sequence[str], *, as_json: bool) -> None:
    """Per stage: shards done and due, the funnel so far, and what was asked of models outside."""
    run = opened(workspace, name, sets)
    rows = funnel(run.executor.order, narrowed(run, run.executor.commits()))
    gone = read_withdrawals(run.store)
    path = run.store.path("answers.sqlite")
    asked, sent = accounts(path, run.config.name), batches(path, run.config.name)
    if as_json:
        reuse = {
            stage: {"measured": known, "due": missing} for stage, (known, missing) in recalled(run.executor).items()
        }
        print_json(
            {
                "run": run.config.name,
                "funnel": [asdict(row) for row in rows],
                "rows": reuse,
                "calls": [account.plain() for account in asked],
                "call_notes": notes(asked, sent),
                "withdrawn": [str(stone.key) for stone in gone.tombstones],
                "withdrawal_unfinished": gone.unfinished is not None,
            }
        )
        return
    OUT.print(funnel_table(rows))
    due = [row.stage for row in rows if not row.complete]
    if not run.executor.shards:
        OUT.print("No source is planned yet: everything is due.")
    elif due:
        OUT.print(f"Due: {', '.join(due)}. The rest is reused; of these stages:")
        for stage, (known, missing) in recalled(run.executor).items():
            if stage in due and known + missing:
                OUT.print(f"  {stage:<9} {known} rows are measured already, {missing} need their model")
        OUT.print("Rows that models have yet to let pass come on top.")
    else:
        OUT.print("Everything is done.")
    if asked:
        OUT.print("Calls to models outside:")
        OUT.print(calls_table(asked))
    for note in notes(asked, sent):
        OUT.print(f"· {note}")
    if gone.tombstones:
        OUT.print(f"Withdrawn from this workspace for good: {_some([str(stone.key) for stone in gone.tombstones])}")
    if gone.unfinished:
        OUT.print("A withdrawal was stopped before its end: run `fedbench withdraw` once more; it needs no key.")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
