"""The manifest's counts, counted again from published rows."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from schemas.config import BuildConfig
from schemas.outcomes import Reason, Status
from schemas.published import CellCount, Manifest, RejectedRow, StageCount, TripletRow
from schemas.records import Key
from schemas.reviews import SampleReviewed
from tasks.boards.audits import audits, fell
from tasks.boards.sampling import SampleTally, sampled
from tasks.dataset.manifest import cell_counts
from tasks.dataset.rules import Row, after, key_of
from tasks.metrics.interval import Share


def funnel_of(rows: Sequence[Row], stages: Sequence[str]) -> tuple[StageCount, ...]:
    """The funnel, from where every row ended."""
    sources = len({key_of(row).source() for row in rows})
    lines = []
    for stage in stages:
        here = [
            row for row in rows if isinstance(row, RejectedRow) and row.stage == stage and row.status != Status.KEPT
        ]
        through = [row for row in rows if row.target and after(row, stage)]
        kept = sources - len(here) if stage == "screen" else len(through)
        counts = Counter(row.status for row in here)
        line = {str(status): counts.get(status, 0) for status in Status} | {"kept": kept}
        reasons = dict(sorted(Counter(row.reason for row in here if row.reason).items()))
        lines.append(StageCount(stage=stage, owed=kept + len(here), reasons=reasons, **line))
    return tuple(lines)


def cells_of(rows: Sequence[Row], config: BuildConfig) -> tuple[CellCount, ...]:
    """The natural and the published mix."""
    survivors = Counter((row.source_expression, row.target) for row in rows if row.target and after(row, "instruct"))
    triplets = Counter((row.source_expression, row.target) for row in rows if isinstance(row, TripletRow))
    return cell_counts(survivors, triplets, config)


def back_checks_of(rows: Sequence[Row]) -> dict[str, int]:
    """What became of the triplets' dense instructions when they were checked."""
    return dict(sorted(Counter(row.back_check for row in rows if isinstance(row, TripletRow)).items()))


def sample_of(rows: Sequence[Row], config: BuildConfig) -> SampleReviewed | None:
    """What people found in the sample they looked at."""
    steps: dict[Key, list[tuple[Status, str]]] = defaultdict(list)
    for row in rows:
        if isinstance(row, RejectedRow) and row.stage == "review":
            steps[key_of(row).source()].append((Status(row.status), row.evidence))
        elif row.target and after(row, "review"):
            steps[key_of(row).source()].append((Status.KEPT, ""))
    tally = SampleTally(config.review)
    for key, found in steps.items():
        tally.add(key, found)
    return tally.found()


def audit_faults_of(rows: Sequence[Row], manifest: Manifest, config: BuildConfig) -> Iterator[str]:
    """What does not fit in the manifest's words on audits. Rows do not say what people found of rejected candidates:
    what can be counted again is how many there are and by which rule, and that the shares follow from the counts."""
    if (manifest.audit is None) == audits(config.review):
        yield "the config says otherwise of audits"
    if manifest.audit is None or any(isinstance(row, RejectedRow) and row.reason == Reason.WITHDRAWN for row in rows):
        return
    found = manifest.audit
    rules = Counter(
        (row.stage, row.reason)
        for row in rows
        if isinstance(row, RejectedRow)
        and row.target
        and sampled(key_of(row), config.review.cut)
        and fell({row.stage: (Status(row.status), row.reason, "")})
    )
    if dict(rules) != {(one.stage, one.reason): one.rejected for one in found.by}:
        yield f"the rows give {sum(rules.values())} rejected candidates"
    if (found.decided, found.usable) != (sum(one.decided for one in found.by), sum(one.usable for one in found.by)):
        yield "its sums do not add up"
    if not found.usable <= found.decided <= found.drawn <= found.rejected:
        yield "it counts more than there are"
    elif (found.share, found.low, found.high) != tuple(
        Share(found.usable, found.decided).plain()[name] for name in ("value", "low", "high")
    ):
        yield "its share does not follow from its counts"
