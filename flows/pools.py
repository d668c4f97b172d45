"""What `fedbench pools` prints."""

from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from flows.console import OUT, print_json
from schemas.expressions import EXPRESSIONS
from tasks.sources.inspect import Inspection, inspect


def show_inspection(kind: str, root: Path, *, decode_all: bool, as_json: bool) -> None:
    """A copy of a set: counts, labels, findings."""
    found = inspect(kind, str(root), decode_all=decode_all)
    if as_json:
        print_json(asdict(found))
        return
    OUT.print(_counts(found))
    OUT.print(_labels(found))
    if not found.findings:
        OUT.print("Nothing else stands out.")
    for finding in found.findings:
        OUT.print(Text.assemble((f"{finding.count:>6}  ", "yellow"), finding.what))
        for example in finding.examples:
            OUT.print(Text(f"        {example}", style="dim"), soft_wrap=True)
    how = "every picture decoded" if found.decoded else "headers read; --decode decodes every picture"
    OUT.print(Text(how, style="dim"))


def _counts(found: Inspection) -> Table:
    table = Table("what", "here", "published")
    for count in found.counts:
        style = "" if count.published in (None, count.found) else "yellow"
        published = "" if count.published is None else f"{count.published:,}"
        table.add_row(count.what, Text(f"{count.found:,}", style=style, justify="right"), published)
    return table


def _labels(found: Inspection) -> Table:
    names = [label for label in (*EXPRESSIONS, "none") if any(label in counts for counts in found.labels.values())]
    table = Table("split", *names)
    for split, counts in found.labels.items():
        table.add_row(split or "none", *(f"{counts.get(name, 0):,}" for name in names))
    return table
