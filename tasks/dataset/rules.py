"""What must hold within a published row; every rule is computed anew from its columns and the config."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import prompts
from schemas.config import BuildConfig
from schemas.expressions import EXPRESSIONS, POLARITY, Expression
from schemas.outcomes import BackCheck, FailureKind, Reason, Status
from schemas.published import SCHEMA_VERSION, RejectedRow, TripletRow
from schemas.records import Ballots, Candidate, Key, Vote
from schemas.reviews import ASKED
from tasks.boards.sampling import PEOPLE, mode_of
from tasks.dataset.rows import row_digest
from tasks.engine.fingerprint import seed_of
from tasks.engine.stage import Failed, Outcome, Rejected
from tasks.generate import how_moved
from tasks.verify import verdict

Row = TripletRow | RejectedRow

STAGES: Final = ("screen", "generate", "verify", "rank", "caption", "review", "instruct", "publish")
REASONS: Final[dict[str, frozenset[Reason]]] = {
    "screen": frozenset(list(Reason)[: list(Reason).index(Reason.CAP_IDENTITY) + 1]),
    "generate": frozenset({Reason.UNCHANGED_PICTURE, Reason.PICTURE_MOVED}),
    "verify": frozenset(
        {
            Reason.WRONG_POLARITY,
            Reason.NO_MAJORITY,
            Reason.UNCHANGED_EXPRESSION,
            Reason.WRONG_EXPRESSION,
            Reason.FACE_LOST,
        }
    ),
    "rank": frozenset(
        {
            Reason.FACE_LOST,
            Reason.LOW_IDENTITY,
            Reason.NO_BACKGROUND,
            Reason.BACKGROUND_CHANGED,
            Reason.BELOW_TOP_K,
        }
    ),
    "review": frozenset({Reason.NOT_CHOSEN}),
    "instruct": frozenset({Reason.NO_DIFFERENCE}),
    "publish": frozenset({Reason.NOT_SELECTED, Reason.BEYOND_PREFIX}),
}
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


def column_faults(row: Row) -> Iterator[Fault]:
    """Values that no column may hold. The other rules need a row without such faults."""
    numbers = [row.change, row.identity, row.background_rmse, row.registered_rmse]
    numbers += [vote.confidence for vote in row.votes]
    numbers += list(row.motion.model_dump().values()) if row.motion else []
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
        if row.back_check not in list(BackCheck):
            yield Fault(row.id, "column", f"'{row.back_check}' is no outcome of a back check")
    else:
        needed += [row.source_expression] if row.source_expression or row.target else []
        yield from _end_faults(row)
    for expression in needed:
        if expression not in EXPRESSIONS:
            yield Fault(row.id, "column", f"'{expression}' is no expression")
    for vote in row.votes:
        if not _possible(vote):
            yield Fault(row.id, "votes", f"{vote.voter}: no answer, two, or not one of its granularity")


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
    """One answer or one abstention; a fine answer names a class and its polarity, a coarse one no class."""
    if vote.abstained is not None:
        return vote.polarity is None and vote.expression is None
    if vote.granularity == "fine":
        return vote.expression is not None and vote.polarity is POLARITY[vote.expression]
    return vote.granularity == "coarse" and vote.polarity is not None and vote.expression is None


def row_faults(row: Row, config: BuildConfig, *, known_prompt: bool = True) -> Iterator[Fault]:
    """What one row says of itself, computed anew. Its columns must be free of faults.

    Args:
        row: The row.
        config: Of the build.
        known_prompt: Whether all simple instructions came from the template that is installed here.
    """
    if row_digest(row) != row.row_sha256:
        yield Fault(row.id, "row", "a column was changed after row_sha256 was made")
    if row.id != str(key_of(row)):
        yield Fault(row.id, "id", f"its columns say {key_of(row)}")
    if not row.target:
        return
    edited = after(row, "generate") or ended(row, "generate", Status.REJECTED)
    simple = prompts.render("simple_instruction", source=row.source_expression, target=row.target) if edited else ""
    if row.instruction != simple and (known_prompt or not (edited and row.instruction)):
        yield Fault(row.id, "instruction", f"the template says '{simple}'")
    if isinstance(row, RejectedRow) and edited != (row.image is not None and row.image_sha256 != ""):
        yield Fault(row.id, "image", "it has a picture without an edit, or an edit without its picture and hash")
    if isinstance(row, TripletRow):
        if row.seed != seed_of(config.seed, list(key_of(row))):
            yield Fault(row.id, "seed", "it is not the seed of this key")
        if (row.back_check == BackCheck.NOT_CHECKED) != (config.instruct.measure.checker is None):
            yield Fault(row.id, "back check", f"it is {row.back_check}, and the config says otherwise of a checker")
        board = config.review.measure.board.name
        if (row.review.mode == "auto") != (board == "auto" or mode_of(key_of(row), config.review) == "auto"):
            yield Fault(row.id, "review", f"the board is '{board}' (sample {config.review.cut.sample:g})")
        if not _possible_ratings(row):
            yield Fault(row.id, "review", "a rating is no mean of 1 to 5, or nobody is there who gave it")
    yield from _motion_faults(row, config)
    yield from _vote_faults(row, config)


def _possible_ratings(row: TripletRow) -> bool:
    """Means lie between 1 and 5, and are there where somebody rated, which is only where people decided."""
    means = [mean for quality in ASKED if (mean := getattr(row.review, quality)) is not None]
    people = row.review.raters > 0 and row.review.mode in PEOPLE
    return people and all(1 <= mean <= 5 for mean in means) if means else row.review.raters == 0


def _motion_faults(row: Row, config: BuildConfig) -> Iterator[Fault]:
    """The flag and the fate must follow from the motion, and only where one is known a background is registered."""
    words = how_moved(row.motion, config.generate.cut)
    if row.moved != (None if row.motion is None else bool(words)):
        yield Fault(row.id, "motion", f"moved is {row.moved}, the motion says '{words}'")
    if row.registered_rmse is not None and (row.motion is None or row.background_rmse is None):
        yield Fault(row.id, "motion", "a registered background without a motion or a background")
    fell = row if isinstance(row, RejectedRow) and row.reason == Reason.PICTURE_MOVED else None
    rejecting = config.generate.cut.moved == "reject"
    if fell and not (rejecting and fell.evidence == words):
        yield Fault(row.id, "motion", f"it fell for its motion; that says '{words}', and the config {rejecting=}")
    if rejecting and words and after(row, "generate"):
        yield Fault(row.id, "motion", f"it passed, and {words}")


def _vote_faults(row: Row, config: BuildConfig) -> Iterator[Fault]:
    """The panel must be the config's, and its votes must give the verdict that the row's fate says."""
    voted = after(row, "verify") or ended(row, "verify", Status.REJECTED)
    if row.votes or voted:
        asked = [voter.label for voter in config.verify.measure.panel]
        if [vote.voter for vote in row.votes] != asked:
            yield Fault(row.id, "votes", f"the panel is {', '.join(asked)}")
    insufficient = isinstance(row, RejectedRow) and row.reason == FailureKind.INSUFFICIENT_VOTES
    if not (voted or insufficient):
        return
    lost = (
        ended(row, "verify", Status.REJECTED) and row.change is None and said(row, "verify")[0][1] == Reason.FACE_LOST
    )
    ballots = Ballots(votes=row.votes, faces=0 if lost else 1, change=row.change)
    outcome = verdict(candidate_of(row), ballots, config.verify.cut)
    (way, words), (computed, evidence) = said(row, "verify"), said_by(outcome)
    if computed != way:
        yield Fault(row.id, "verdict", f"the votes say {' '.join(computed)} ({evidence}), the row {' '.join(way)}")
    elif words is not None and evidence != words:
        yield Fault(row.id, "verdict", f"the votes say '{evidence}'")


def candidate_of(row: Row) -> Candidate:
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
        local_change=0,
        motion=row.motion,
    )


def said_by(outcome: Outcome) -> tuple[tuple[str, str], str]:
    """Status and reason of an outcome, and its words."""
    reason = outcome.reason if isinstance(outcome, Rejected) else outcome.kind if isinstance(outcome, Failed) else ""
    words = outcome.message if isinstance(outcome, Failed) else outcome.evidence
    return (str(outcome.status), str(reason)), words


def said(row: Row, stage: str) -> tuple[tuple[str, str], str | None]:
    """How the row says it left a stage, and in which words, where it keeps them."""
    if isinstance(row, RejectedRow) and row.stage == stage:
        return (row.status, row.reason), row.evidence
    words = row.verdict if isinstance(row, TripletRow) and stage == "verify" else None
    return (str(Status.KEPT), ""), words
