"""What must hold within and between published rows; every rule is computed anew from columns and config."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import prompts
from schemas.config import BuildConfig
from schemas.expressions import EXPRESSIONS, POLARITY, Expression, others
from schemas.outcomes import FailureKind, Reason, Status
from schemas.published import SCHEMA_VERSION, RejectedRow, TripletRow
from schemas.records import Ballots, Candidate, Fidelity, Finalist, Key, Vote
from tasks.dataset.rows import row_digest
from tasks.engine.fingerprint import seed_of
from tasks.engine.stage import Failed, Item, Kept, Outcome, Rejected
from tasks.rank import Rank
from tasks.verify import verdict

Row = TripletRow | RejectedRow

STAGES: Final = ("screen", "generate", "verify", "rank", "caption", "review", "instruct", "publish")
REASONS: Final[dict[str, frozenset[Reason]]] = {
    "screen": frozenset(list(Reason)[: list(Reason).index(Reason.CAP_IDENTITY) + 1]),
    "generate": frozenset({Reason.UNCHANGED_PICTURE}),
    "verify": frozenset(
        {
            Reason.WRONG_POLARITY,
            Reason.NO_MAJORITY,
            Reason.UNCHANGED_EXPRESSION,
            Reason.WRONG_EXPRESSION,
            Reason.FACE_LOST,
        }
    ),
    "rank": frozenset({Reason.FACE_LOST, Reason.LOW_IDENTITY, Reason.BACKGROUND_CHANGED, Reason.BELOW_TOP_K}),
    "review": frozenset({Reason.NOT_CHOSEN}),
    "publish": frozenset({Reason.NOT_SELECTED, Reason.BEYOND_PREFIX}),
}
_OF_THE_SOURCE: Final = (
    "source_expression",
    "licence",
    "label_source",
    "subject",
    "clip",
    "movie",
    "source_split",
    "source_file_sha256",
    "source_pixel_sha256",
    "source_sha256",
)
# Hostile files may say anything: of a name or a finding, so much is shown.
_SHOWN: Final = 300


@dataclass(frozen=True)
class Fault:
    """One thing that is not as it should be: which row or file, which rule, and what was found."""

    where: str
    rule: str
    found: str

    def __str__(self) -> str:
        return f"{_shown(self.where)}: {self.rule}: {_shown(self.found)}"


def _shown(text: str) -> str:
    """Short, and on one line whatever it holds."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in short)


def key_of(row: Row) -> Key:
    return Key(row.pool, row.source_id, row.target, row.editor, row.attempt)


def after(row: Row, stage: str) -> bool:
    """Whether a row got through a stage."""
    return isinstance(row, TripletRow) or STAGES.index(row.stage) > STAGES.index(stage)


def ended(row: Row, stage: str, status: Status) -> bool:
    """Whether a row left the run at a stage, in that way."""
    return isinstance(row, RejectedRow) and row.stage == stage and row.status == status


# -- one row ----------------------------------------------------------------------------------------------------


def column_faults(row: Row) -> Iterator[Fault]:
    """Values that no column may hold. The other rules need a row without such faults."""
    numbers = [row.change, row.identity, row.background_rmse, *(vote.confidence for vote in row.votes)]
    numbers += [row.score] if isinstance(row, TripletRow) else []
    if not all(math.isfinite(number) for number in numbers if number is not None):
        yield Fault(row.id, "column", "a number is not finite")
    if row.schema_version != SCHEMA_VERSION:
        yield Fault(row.id, "column", f"schema_version is {row.schema_version}, the manifest says {SCHEMA_VERSION}")
    needed = [row.target] if row.target else []
    if isinstance(row, TripletRow):
        needed = [row.target, row.target_expression, row.source_expression]
        if row.target_expression != row.target or not row.synthetic:
            yield Fault(row.id, "column", "target_expression is not the key's target, or synthetic is false")
        if not row.dense_instruction.strip() or not row.caption.strip():
            yield Fault(row.id, "column", "it has no dense instruction or no caption")
    else:
        needed += [row.source_expression] if row.source_expression or row.target else []
        yield from _end_faults(row)
    for expression in needed:
        if expression not in EXPRESSIONS:
            yield Fault(row.id, "column", f"'{expression}' is no expression")
    for vote in row.votes:
        if not _possible(vote):
            yield Fault(row.id, "votes", f"{vote.voter}: no answer, two answers, or a polarity of another class")


def _end_faults(row: RejectedRow) -> Iterator[Fault]:
    """Whether a row can have ended there, so, and for that reason."""
    if row.stage not in STAGES or row.reason not in _reasons(row):
        yield Fault(row.id, "end", f"no row ends in '{row.stage}' as '{row.status}' for '{row.reason}'")
    elif (row.stage == "screen") != (row.target == ""):
        yield Fault(row.id, "end", "only sources end in screen, and only candidates after it")


def _reasons(row: RejectedRow) -> Collection[str]:
    if row.status == Status.REJECTED:
        return REASONS.get(row.stage, frozenset())
    if row.status == Status.FAILED:
        return set(FailureKind)
    stands = (row.status, row.stage) in ((Status.WAITING, "review"), (Status.KEPT, "screen"))
    return {""} if stands else ()


def _possible(vote: Vote) -> bool:
    if (vote.polarity is None) == (vote.abstained is None):
        return False
    return vote.expression is None or vote.polarity is POLARITY[vote.expression]


def row_faults(row: Row, config: BuildConfig) -> Iterator[Fault]:
    """What one row says of itself, computed anew. Its columns must be free of faults."""
    if row_digest(row) != row.row_sha256:
        yield Fault(row.id, "row", "a column was changed after row_sha256 was made")
    if row.id != str(key_of(row)):
        yield Fault(row.id, "id", f"its columns say {key_of(row)}")
    if not row.target:
        return
    edited = after(row, "generate") or ended(row, "generate", Status.REJECTED)
    simple = prompts.render("simple_instruction", source=row.source_expression, target=row.target) if edited else ""
    if row.instruction != simple:
        yield Fault(row.id, "instruction", f"the template says '{simple}'")
    if isinstance(row, RejectedRow) and edited != (row.image is not None and row.image_sha256 != ""):
        yield Fault(row.id, "image", "it has a picture without an edit, or an edit without its picture and hash")
    if isinstance(row, TripletRow):
        if row.seed != seed_of(config.seed, list(key_of(row))):
            yield Fault(row.id, "seed", "it is not the seed of this key")
        auto = config.review.measure.board.name == "auto"
        if (row.review.mode == "auto") != auto:
            yield Fault(row.id, "review", f"the board is '{config.review.measure.board.name}'")
    yield from _vote_faults(row, config)


def _vote_faults(row: Row, config: BuildConfig) -> Iterator[Fault]:
    """The panel must be the config's, and its votes must give the verdict that the row's fate says."""
    voted = after(row, "verify") or ended(row, "verify", Status.REJECTED)
    if row.votes or voted:
        asked = [voter.name for voter in config.verify.measure.panel]
        if [vote.voter for vote in row.votes] != asked:
            yield Fault(row.id, "votes", f"the panel is {', '.join(asked)}")
    insufficient = isinstance(row, RejectedRow) and row.reason == FailureKind.INSUFFICIENT_VOTES
    if not (voted or insufficient):
        return
    lost = (
        ended(row, "verify", Status.REJECTED) and row.change is None and _said(row, "verify")[0][1] == Reason.FACE_LOST
    )
    ballots = Ballots(votes=row.votes, faces=0 if lost else 1, change=row.change)
    outcome = verdict(_candidate(row), ballots, config.verify.cut)
    said, words = _said(row, "verify")
    if _said_by(outcome)[0] != said:
        yield Fault(row.id, "verdict", f"the votes say {_said_by(outcome)}, the row {said}")
    elif words is not None and _said_by(outcome)[1] != words:
        yield Fault(row.id, "verdict", f"the votes say '{_said_by(outcome)[1]}'")


def _candidate(row: Row) -> Candidate:
    """The row as rank and verify see it; what they do not decide by is left empty."""
    return Candidate(
        key=key_of(row),
        source_image="",
        source_expression=Expression(row.source_expression),
        image="",
        instruction="",
        seed=0,
        raw_width=0,
        raw_height=0,
        changed_pixels=0,
        shift=0,
    )


def _said_by(outcome: Outcome) -> tuple[tuple[str, str], str]:
    reason = outcome.reason if isinstance(outcome, Rejected) else outcome.kind if isinstance(outcome, Failed) else ""
    words = outcome.message if isinstance(outcome, Failed) else outcome.evidence
    return (str(outcome.status), str(reason)), words


def _said(row: Row, stage: str) -> tuple[tuple[str, str], str | None]:
    """How the row says it left a stage, and in which words, where it keeps them."""
    if isinstance(row, RejectedRow) and row.stage == stage:
        return (row.status, row.reason), row.evidence
    words = row.verdict if isinstance(row, TripletRow) and stage == "verify" else None
    return (str(Status.KEPT), ""), words


# -- rows beside each other -------------------------------------------------------------------------------------


def run_faults(rows: Sequence[Row], config: BuildConfig) -> Iterator[Fault]:
    """What rows say of each other, computed anew."""
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
    yield from _selection_faults(rows, config)


def _source_faults(source: Key, rows: Sequence[Row], config: BuildConfig) -> Iterator[Fault]:
    """One source: its candidates are those it owes, its columns agree, its places and its review add up."""
    for column in _OF_THE_SOURCE:
        values = {getattr(row, column): row.id for row in rows if hasattr(row, column)}
        if len(values) > 1:
            yield Fault(str(source), "source", f"its rows differ in {column}: {', '.join(sorted(values.values()))}")
    if rows[0].target or len(rows) > 1 or (isinstance(rows[0], RejectedRow) and rows[0].status == Status.KEPT):
        measure = config.generate.measure
        owed = {
            Key(*source[:2], target, measure.editor.name, attempt)
            for target in (others(Expression(rows[0].source_expression)) if rows[0].source_expression else ())
            if not measure.targets or target in measure.targets
            for attempt in range(measure.attempts)
        }
        there = {key_of(row) for row in rows if row.target}
        yield from (Fault(str(key), "candidates", "it is owed and not there") for key in sorted(owed - there))
        yield from (Fault(str(key), "candidates", "nothing owes it") for key in sorted(there - owed))
        if there and any(not row.target for row in rows):
            yield Fault(str(source), "candidates", "it has a row of its own beside its candidates")
    yield from _rank_faults([row for row in rows if row.target], config)


def _rank_faults(rows: Sequence[Row], config: BuildConfig) -> Iterator[Fault]:
    """Among the verified candidates of a source, identity and background give the places; review takes of them."""
    verified = {key_of(row): row for row in rows if after(row, "verify") and not ended(row, "rank", Status.FAILED)}
    items = [
        Item(key, _candidate(row), Fidelity(identity=row.identity, background_rmse=row.background_rmse))
        for key, row in verified.items()
    ]
    places: dict[Key, int] = {}
    for key, outcome in Rank(config.rank.measure, config.rank.cut).cut(items):
        row = verified[key]
        said, words = _said(row, "rank")
        computed, evidence = _said_by(outcome)
        if computed != said or (words is not None and words != evidence):
            yield Fault(row.id, "rank", f"its numbers give {' '.join(computed)} ({evidence}), the row {' '.join(said)}")
        elif isinstance(outcome, Kept) and isinstance(outcome.output, Finalist):
            places[key] = outcome.output.rank
            if isinstance(row, TripletRow) and (
                row.rank != outcome.output.rank or abs(row.score - outcome.output.score) > 1e-9
            ):
                yield Fault(row.id, "rank", f"its numbers give {evidence}")
    yield from _review_faults({key: verified[key] for key in places}, places, config)


def _review_faults(finalists: dict[Key, Row], places: dict[Key, int], config: BuildConfig) -> Iterator[Fault]:
    seen = {key: row for key, row in finalists.items() if after(row, "caption")}
    chosen = [key for key, row in seen.items() if after(row, "review")]
    if len(chosen) > config.review.cut.keep_per_source:
        yield Fault(seen[chosen[-1]].id, "review", f"{len(chosen)} ground truths of one source")
    best = min((places[key] for key, row in seen.items() if not ended(row, "review", Status.FAILED)), default=0)
    for key, row in seen.items():
        if isinstance(row, RejectedRow) and row.reason == Reason.NOT_CHOSEN:
            if not row.evidence.startswith(f"rank {places[key]}; "):
                yield Fault(row.id, "review", f"its place is {places[key]}, its evidence says '{row.evidence}'")
        elif config.review.measure.board.name == "auto" and key in chosen and places[key] != best:
            yield Fault(row.id, "review", f"place {places[key]} was taken, the best is {best}")


def _selection_faults(rows: Sequence[Row], config: BuildConfig) -> Iterator[Fault]:
    """With a target, cells are filled evenly: a full one that lost a row is at most one below the fullest."""
    triplets = [row for row in rows if isinstance(row, TripletRow)]
    left_out = [row for row in rows if isinstance(row, RejectedRow) and row.reason == Reason.NOT_SELECTED]
    target = config.publish.cut.target
    if target is not None and len(triplets) > target:
        yield Fault("manifest.json", "selection", f"{len(triplets)} triplets, the target is {target}")
    cells = Counter((row.source_expression, row.target) for row in triplets)
    for row in left_out:
        if target != len(triplets) or cells[row.source_expression, row.target] < max(cells.values()) - 1:
            yield Fault(row.id, "selection", "its cell had room")
