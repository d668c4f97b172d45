"""The funnel: per stage, what was owed and how it left. Read from commits alone, so it costs no row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from schemas.outcomes import FailureKind, Reason, Status
from tasks.engine.errors import ContractError
from tasks.engine.rows import Commit

if TYPE_CHECKING:
    from rich.table import Table

# What one owed key of a stage is, for people.
UNITS: Final[dict[str, str]] = {
    "screen": "photos",
    "generate": "edits",
    "verify": "edits",
    "rank": "edits",
    "caption": "finalists",
    "review": "finalists",
    "instruct": "ground truths",
    "publish": "triplets",
}


@dataclass(frozen=True)
class FunnelRow:
    """One stage's balance over the shards that have it. All counts are of owed keys.

    Attributes:
        stage: Its name.
        owed, kept, waiting: Counts.
        rejected: By reason, most first.
        failed: By kind, most first.
        shards, shards_done: How many shards the run has, and in how many of them this stage is done.
    """

    stage: str
    owed: int
    kept: int
    rejected: dict[str, int]
    failed: dict[str, int]
    waiting: int
    shards: int
    shards_done: int

    @property
    def unit(self) -> str:
        """What was owed, in the plural ("edits")."""
        return UNITS.get(self.stage, "rows")

    @property
    def rejections(self) -> int:
        return sum(self.rejected.values())

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    @property
    def complete(self) -> bool:
        """Whether every shard has this stage."""
        return self.shards_done == self.shards


def funnel(order: Sequence[str], done: Sequence[dict[str, Commit]]) -> list[FunnelRow]:
    """The balance of every stage.

    Args:
        order: The stages, in the order the data flows.
        done: Per shard, its commits by stage; a stage without one is not counted there.

    Raises:
        ContractError: A stage's counts do not add up.
    """
    rows = []
    for stage in order:
        commits = [shard[stage] for shard in done if stage in shard]
        rejected: Counter[str] = Counter()
        failed: Counter[str] = Counter()
        for commit in commits:
            why_rejected, why_failed = split_reasons(commit)
            rejected.update(why_rejected)
            failed.update(why_failed)
        row = FunnelRow(
            stage=stage,
            owed=sum(commit.owed for commit in commits),
            kept=sum(commit.statuses.get(Status.KEPT, 0) for commit in commits),
            rejected=_most_first(rejected),
            failed=_most_first(failed),
            waiting=sum(commit.statuses.get(Status.WAITING, 0) for commit in commits),
            shards=len(done),
            shards_done=len(commits),
        )
        check(row)
        rows.append(row)
    return rows


def check(row: FunnelRow) -> None:
    """Conservation: owed = kept + rejected + failed + waiting.

    Raises:
        ContractError: It is not so; names the stage and the numbers.
    """
    left = row.kept + row.rejections + row.failures + row.waiting
    if left != row.owed:
        raise ContractError(
            f"stage '{row.stage}' owed {row.owed} rows, but {left} left it: {row.kept} kept, "
            f"{row.rejections} rejected, {row.failures} failed, {row.waiting} waiting",
            "this is a bug of the stage, or a damaged workspace",
        )


def split_reasons(commit: Commit) -> tuple[dict[str, int], dict[str, int]]:
    """A commit's reasons as (rejected by reason, failed by kind).

    The commit counts both in one table, where a word that is a reason as well as a kind ("no_face") stands for
    either. The totals by status tell them apart: failures not told by another kind are of that one.
    """
    kinds, reasons = set(map(str, FailureKind)), set(map(str, Reason))
    failed = {name: count for name, count in commit.reasons.items() if name in kinds - reasons}
    rejected = {name: count for name, count in commit.reasons.items() if name not in kinds}
    missing = commit.statuses.get(Status.FAILED, 0) - sum(failed.values())
    for name in sorted(commit.reasons.keys() & kinds & reasons):
        taken = min(missing, commit.reasons[name])
        missing -= taken
        failed |= {name: taken} if taken else {}
        rejected |= {name: commit.reasons[name] - taken} if commit.reasons[name] > taken else {}
    return rejected, failed


def words(code: str) -> str:
    """A reason or kind for people: "low_identity" is "low identity"."""
    return code.replace("_", " ")


def because(counts: dict[str, int]) -> str:
    """Reasons with their counts in one line: "no face 3, pose 2"."""
    return ", ".join(f"{words(name)} {count}" for name, count in counts.items())


def funnel_markdown(rows: Sequence[FunnelRow]) -> str:
    """The funnel as a Markdown table, for a Prefect artifact or a data set card."""
    lines = [
        "| stage | owed | kept | rejected | failed | waiting | why |",
        "|:--|--:|--:|--:|--:|--:|:--|",
    ]
    for row in rows:
        lines.append(
            f"| {row.stage} | {row.owed} {row.unit} | {row.kept} | {row.rejections} | {row.failures} | {row.waiting} "
            f"| {_why(row)} |"
        )
    return "\n".join(lines) + "\n"


def funnel_table(rows: Sequence[FunnelRow]) -> "Table":
    """The funnel as a `rich` table, for a terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    for name in ("owed", "kept", "rejected", "failed", "waiting"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", style="dim", overflow="fold")
    for row in rows:
        table.add_row(
            row.stage,
            f"{row.owed} {row.unit}",
            str(row.kept),
            str(row.rejections or "–"),
            f"[red]{row.failures}[/red]" if row.failures else "–",
            f"[yellow]{row.waiting}[/yellow]" if row.waiting else "–",
            _why(row),
        )
    return table


def _why(row: FunnelRow) -> str:
    parts = [because(row.rejected), f"failed: {because(row.failed)}" if row.failed else ""]
    if not row.complete:
        parts.append(f"{row.shards_done} of {row.shards} shards done")
    return "; ".join(part for part in parts if part)


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
