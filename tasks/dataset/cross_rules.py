"""What must hold between published rows: candidates per source, places, review, selection; computed anew."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from schemas.config import BuildConfig
from schemas.expressions import Expression
from schemas.outcomes import Reason, Status
from schemas.published import Manifest, RejectedRow, TripletRow
from schemas.records import Fidelity, Finalist, Key
from tasks.boards.sampling import mode_of
from tasks.dataset.rules import Fault, Row, after, candidate_of, ended, key_of, said, said_by
from tasks.engine.stage import Item, Kept
from tasks.generate import owed
from tasks.publish import core_digest
from tasks.rank import Rank

_OF_THE_SOURCE: Final = (
    "source_expression",
    "licence",
    "label_source",
    "subject",
    "clip",
    "movie",
    "source_split",
    "traits",
    "source_file_sha256",
    "source_pixel_sha256",
    "source_sha256",
)


def run_faults(rows: Sequence[Row], config: BuildConfig, core: Collection[str] = ()) -> Iterator[Fault]:
    """What rows say of each other, computed anew. `core` has the ids of the triplets that were taken first."""
    seen = Counter(row.id for row in rows)
    yield from (Fault(id_, "unique", f"{count} rows") for id_, count in seen.items() if count > 1)
    by_source: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[key_of(row).source()].append(row)
    photos: dict[str, str] = {}
    for source, source_rows in by_source.items():
        yield from _source_faults(source, source_rows, config)
        pixels = next((row.source_pixel_sha256 for row in source_rows if isinstance(row, TripletRow)), None)
        if pixels and config.screen.cut.duplicates and photos.setdefault(pixels, str(source)) != str(source):
            yield Fault(str(source), "duplicate", f"its photo is that of {photos[pixels]}")
    yield from _selection_faults(rows, config, core)


def _source_faults(source: Key, rows: Sequence[Row], config: BuildConfig) -> Iterator[Fault]:
    """One source: its candidates are those it owes, its columns agree, its places and its review add up."""
    for column in _OF_THE_SOURCE:
        values = {getattr(row, column): row.id for row in rows if hasattr(row, column)}
        if len(values) > 1:
            yield Fault(str(source), "source", f"its rows differ in {column}: {', '.join(sorted(values.values()))}")
    if rows[0].target or len(rows) > 1 or (isinstance(rows[0], RejectedRow) and rows[0].status == Status.KEPT):
        shown = rows[0].source_expression
        due = set(owed(config.generate.measure, source, Expression(shown))) if shown else set()
        there = {key_of(row) for row in rows if row.target}
        yield from (Fault(str(key), "candidates", "it is owed and not there") for key in sorted(due - there))
        yield from (Fault(str(key), "candidates", "nothing owes it") for key in sorted(there - due))
        if there and any(not row.target for row in rows):
            yield Fault(str(source), "candidates", "it has a row of its own beside its candidates")
    yield from _rank_faults([row for row in rows if row.target], config)


def _rank_faults(rows: Sequence[Row], config: BuildConfig) -> Iterator[Fault]:
    """Among the verified candidates of a source, identity and background give the places; review takes of them."""
    verified = {key_of(row): row for row in rows if after(row, "verify") and not ended(row, "rank", Status.FAILED)}
    items = [
        Item(
            key,
            candidate_of(row),
            Fidelity(identity=row.identity, background_rmse=row.background_rmse, registered_rmse=row.registered_rmse),
        )
        for key, row in verified.items()
    ]
    places: dict[Key, int] = {}
    for key, outcome in Rank(config.rank.measure, config.rank.cut).cut(items):
        row = verified[key]
        (way, words), (computed, evidence) = said(row, "rank"), said_by(outcome)
        if computed != way or (words is not None and words != evidence):
            yield Fault(row.id, "rank", f"its numbers give {' '.join(computed)} ({evidence}), the row {' '.join(way)}")
        elif isinstance(outcome, Kept) and isinstance(outcome.output, Finalist):
            places[key] = outcome.output.rank
            if isinstance(row, TripletRow) and (
                row.rank != outcome.output.rank or abs(row.score - outcome.output.score) > 1e-9
            ):
                yield Fault(row.id, "rank", f"its numbers give {evidence}")
    yield from _review_faults({key: verified[key] for key in places}, places, config)


def _review_faults(finalists: dict[Key, Row], places: dict[Key, int], config: BuildConfig) -> Iterator[Fault]:
    """At most so many are chosen; the board without people chooses the best places."""
    seen = {key: row for key, row in finalists.items() if after(row, "caption")}
    most = config.review.cut.keep_per_source
    best = set(sorted(seen, key=places.__getitem__)[:most])
    chosen = [key for key, row in seen.items() if after(row, "review")]
    if len(chosen) > most:
        yield Fault(str(chosen[0].source()), "review", f"{len(chosen)} ground truths, at most {most}")
    elif config.review.measure.board.name == "auto" or (chosen and mode_of(chosen[0], config.review) == "auto"):
        yield from (
            Fault(seen[key].id, "review", f"place {places[key]} was taken") for key in chosen if key not in best
        )
    for key, row in seen.items():
        reason = row.reason if isinstance(row, RejectedRow) else ""
        if reason == Reason.NOT_CHOSEN and not str(said(row, "review")[1]).startswith(f"rank {places[key]}; "):
            yield Fault(row.id, "review", f"its place is {places[key]}, its evidence says another")


def _selection_faults(rows: Sequence[Row], config: BuildConfig, core: Collection[str]) -> Iterator[Fault]:
    """With a target, the core comes first, then cells are filled evenly.

    A full cell that lost a row is at most one below the fullest of those that were filled. What was withdrawn after
    selection may be missing from any of them.
    """
    triplets = [row for row in rows if isinstance(row, TripletRow)]
    left_out = [row for row in rows if isinstance(row, RejectedRow) and row.reason == Reason.NOT_SELECTED]
    target = config.publish.cut.target
    if target is not None and len(triplets) > target:
        yield Fault("manifest.json", "selection", f"{len(triplets)} triplets, the target is {target}")
    cells = Counter((row.source_expression, row.target) for row in triplets)
    withdrawn = sum(isinstance(row, RejectedRow) and row.reason == Reason.WITHDRAWN for row in rows)
    missing = withdrawn * config.review.cut.keep_per_source
    filled = {(row.source_expression, row.target) for row in triplets if row.id not in core}
    of_core = not filled and any(row.id in core for row in left_out)
    level = max((cells[cell] for cell in (cells if of_core else filled)), default=0)
    for row in left_out:
        room = (row.id in core) == of_core and cells[row.source_expression, row.target] + missing < level - 1
        if row.id in core and filled:
            yield Fault(row.id, "selection", "it is of the core, and others were taken before it")
        elif room or target is None or target - len(triplets) > missing:
            yield Fault(row.id, "selection", "its cell had room")


def core_faults(rows: Sequence[Row], manifest: Manifest, config: BuildConfig) -> Iterator[Fault]:
    """What the manifest says of the core must be what became of its triplets here, withdrawals since then aside."""
    core = manifest.core
    if (core.edition if core else "") != config.publish.cut.core:
        yield Fault("manifest.json", "core", f"the config names '{config.publish.cut.core}'")
    if core is None:
        return
    ends = {key_of(row): row for row in rows if isinstance(row, RejectedRow) and row.status != Status.KEPT}
    gone = tuple(f"{row.id}:" for row in ends.values() if row.reason == Reason.WITHDRAWN)
    missing = {*core.triplets} - {row.id for row in rows if isinstance(row, TripletRow)}
    said = {str(row.key) for row in core.lost}
    if core_digest(core.triplets) != core.digest:
        yield Fault("manifest.json", "core", "its digest is that of other triplets")
    if not said <= missing or any(not id_.startswith(gone) for id_ in missing - said):
        yield Fault("manifest.json", "core", "other triplets of it are missing than it says")
    for lost in core.lost:
        row = ends.get(lost.key) or ends.get(lost.key.source())
        if row and row.reason == Reason.WITHDRAWN:
            continue
        if row and (lost.stage, lost.reason, lost.evidence) != (row.stage, row.reason or row.status, row.evidence):
            yield Fault(str(lost.key), "core", f"it ended in {row.stage} for {row.reason or row.status}")
        if not row and lost.stage:
            yield Fault(str(lost.key), "core", f"no row ended in {lost.stage}")
