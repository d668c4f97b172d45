"""What `fedbench withdraw` prints: who goes and why, what went, and which copies nobody here can reach."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from tasks.dataset.texts import recover
from tasks.dataset.withdrawn import Edition, clean, look, withdrawn_in
from tasks.engine.errors import ConfigError
from tasks.engine.places import shown
from tasks.engine.store import Store
from tasks.withdrawal import withdraw as withdrawal
from tasks.withdrawal.withdraw import Found, Wish

OUT_OF_REACH: Final = (
    "the photos themselves: they stay where the pool reads them",
    "exports, and releases written with --out, unless --dataset named them",
    "what was uploaded or handed on, and the caches of whoever loaded it (~/.cache/huggingface/datasets)",
    "backups and snapshots of this disk or bucket, older versions of objects where it keeps them",
    "models trained on the data",
)


def withdraw_and_show(
    workspace: Path,
    keys: Sequence[str],
    folders: Sequence[Path],
    *,
    person: bool,
    reason: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Withdraw sources, or only say what would go."""
    if not any((workspace / folder).is_dir() for folder in ("runs", "accuracy")):
        raise ConfigError(f"{shown(workspace)} is no workspace: nothing was built there", "give --workspace")
    store = Store(workspace.resolve())
    wish = Wish(keys, person, folders, reason, datetime.now().astimezone().date().isoformat())
    providers: list[str] = []
    if dry_run:
        found = withdrawal.look(store, wish)
    else:
        with store.lock():
            found, providers = withdrawal.withdraw(store, wish)
    if as_json:
        print_json(_as_json(found, providers, dry_run=dry_run))
    else:
        _print(found, providers, dry_run=dry_run)


def clean_and_show(like: Path, keys: Sequence[str], folders: Sequence[Path], *, dry_run: bool, as_json: bool) -> None:
    """Take out of folders what a newer release has withdrawn."""
    if keys or not folders:
        raise ConfigError("--like takes the keys from the newer release", "give --dataset for each copy, and no key")
    gone = withdrawn_in(like)
    if not dry_run:
        for folder in folders:
            recover(folder.resolve())
    editions = look([folder.resolve() for folder in folders], gone)
    if not dry_run:
        clean(editions, gone)
    if as_json:
        print_json({"dry_run": dry_run, "withdrawn": sorted(map(str, gone)), "editions": _editions_json(editions)})
        return
    OUT.print(Text(f"{like} names as withdrawn: {', '.join(sorted(map(str, gone)))}"), soft_wrap=True)
    _print_editions(editions, dry_run=dry_run)


def _as_json(found: Found, providers: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "withdrawn": [{"key": str(one.key), "why": one.why, "runs": one.runs} for one in found.going],
        "already": [stone.model_dump(mode="json") for stone in found.already],
        "finished_an_earlier_one": found.unfinished and not dry_run,
        "rows": found.rows.count,
        "pictures": found.pictures,
        "answers": found.answers,
        "editions": _editions_json(found.editions),
        "sent_to": dict(Counter(providers)),
        "out_of_reach": OUT_OF_REACH,
    }


def _editions_json(editions: Sequence[Edition]) -> list[dict[str, Any]]:
    return [{"folder": str(one.folder), "rows": one.gone} for one in editions]


def _print(found: Found, providers: Sequence[str], *, dry_run: bool) -> None:
    for stone in found.already:
        OUT.print(Text(f"{stone.key} was withdrawn on {stone.day} already."), soft_wrap=True)
    if found.unfinished:
        words = "An earlier withdrawal was stopped before its end; "
        OUT.print(words + ("it would be finished now." if dry_run else "it is finished now."))
    if found.going:
        table = Table(title="These would go" if dry_run else "These are gone", title_justify="left")
        for column in ("source", "why", "runs"):
            table.add_column(column, overflow="fold")
        for one in found.going:
            table.add_row(Text(str(one.key)), Text(one.why), Text(", ".join(one.runs) or "–"))
        OUT.print(table)
    OUT.print(f"{found.rows.count} stored rows, {found.pictures} pictures and edits, {found.answers} outside answers")
    _print_editions(found.editions, dry_run=dry_run)
    for provider, count in Counter(providers).items():
        OUT.print(Text(f"{provider} was sent a picture with {count} calls: ask them to delete it."), soft_wrap=True)
    if dry_run:
        OUT.print("Nothing was written.")
        return
    OUT.print("Not reached from here:")
    for words in OUT_OF_REACH:
        OUT.print(f"  {words}", soft_wrap=True)
    OUT.print("next      fedbench build with the config as it was: the rest is decided again, nothing is paid twice")


def _print_editions(editions: Sequence[Edition], *, dry_run: bool) -> None:
    for one in editions:
        if one.gone:
            OUT.print(
                Text(f"{'would lose' if dry_run else 'lost':<11}{one.gone} rows: {shown(one.folder)}"), soft_wrap=True
            )
    clean_ones = sum(not one.gone for one in editions)
    if clean_ones:
        OUT.print(f"{clean_ones} other data sets, releases and packs hold no row of theirs.")
