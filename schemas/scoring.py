"""The rows of a scoring run: what an editor made of a triplet, everything that was measured of it.

`fedbench score` writes `runs/NAME/scores/scores.parquet` (one `ScoreRow` for each triplet, granularity and editor that
was owed, failed ones included, sorted by `ROW_ORDER`); `manifest.json` beside it is of `schemas/score_manifest.py`.
Raw measurements stand beside what the run's cut made of them, so that a reader can cut them anew
(`tasks.metrics.score.rescored`) without any model.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from schemas.expressions import Expression
from schemas.outcomes import Abstention, FailureKind
from schemas.records import Motion, Record

# Rises with any change of the columns below or of their meaning.
SCORES_VERSION: Final = 2
ROW_ORDER: Final = ("editor", "granularity", "pool", "source_id", "target", "truth_editor", "truth_attempt")


class Granularity(StrEnum):
    """Which of a triplet's instructions the editor got."""

    SIMPLE = "simple"
    DENSE = "dense"


class Part(StrEnum):
    """What a score is made of; each is 0..1, higher is better."""

    ID = "id"
    BG = "bg"
    PQ = "pq"
    SC = "sc"
    GTA = "gta"
    REG = "reg"


# A dimension is the mean of its parts, the score the product of the dimensions.
DIMENSIONS: Final[Mapping[str, tuple[Part, ...]]] = {
    "fidelity": (Part.ID, Part.BG, Part.PQ),
    "alignment": (Part.SC, Part.GTA),
    "gain": (Part.REG,),
}
RULE: Final = frozenset({Part.ID, Part.BG, Part.REG})
MODEL: Final = frozenset({Part.PQ, Part.SC, Part.GTA})
# Which parts an ablation removes; a dimension left without a part leaves the product. The last one is what a run
# without a judge calls its partial score.
ABLATIONS: Final[Mapping[str, frozenset[Part]]] = {
    "full": frozenset(),
    "w/o REG": frozenset({Part.REG}),
    "w/o Rule": RULE,
    "w/o Fidelity": frozenset(DIMENSIONS["fidelity"]),
    "w/o Alignment": frozenset(DIMENSIONS["alignment"]),
    "w/o Model": MODEL,
}
FED_SCORE: Final = "FED-Score"
PARTIAL_SCORE: Final = "partial score"


class State(StrEnum):
    """How a row counts.

    Scored ones have a score. Failed ones are the editor's failure: 0 in the column that counts failures, left out of
    the other. Unscored ones are nobody's failure (a judge that abstained, a ground truth equal to its source): left
    out of both, counted beside.
    """

    SCORED = "scored"
    FAILED = "failed"
    UNSCORED = "unscored"


class PartStatus(StrEnum):
    """Whether a part has a value, and if not, why.

    no_face: none in the output. no_reference: none in the source or, where that is needed, in the ground truth.
    no_background: the widened faces cover the picture. degenerate: the ground truth differs too little from its source
    to divide by. abstained: too few judges answered. not_measured: this run does without.
    """

    OK = "ok"
    NO_FACE = "no_face"
    NO_REFERENCE = "no_reference"
    NO_BACKGROUND = "no_background"
    DEGENERATE = "degenerate"
    ABSTAINED = "abstained"
    NOT_MEASURED = "not_measured"


class JudgeScore(Record):
    """One judge's answer on one part.

    Attributes:
        judge: Its name in the run; `family` of its model.
        part: pq, sc or gta.
        value: 0..10; None where it abstained, and `abstained` says why.
        reason: In its own words.
        model: As its provider names it.
        repaired: Whether this is its second answer, because the first could not be read.
        swapped: Whether it saw the two pictures in the other order.
        repeat: Which time it was asked so, from 0.
    """

    judge: str
    family: str
    part: Part
    value: float | None
    abstained: Abstention | None
    reason: str
    model: str
    repaired: bool
    swapped: bool
    repeat: int


class RuleParts(Record):
    """What is measured of an output without a judge. All pictures have the source's size.

    Attributes:
        identity: ArcFace cosine of source and output, −1..1, before any floor; None without a face in either.
        identity_status: ok, no_face or no_reference.
        faces: How many the output shows; the one whose box overlaps the source's most counts.
        background_rmse: 0..255, outside the mask of the triplet: source's and ground truth's faces, widened.
        background_own_rmse: The same with the output's own face in the mask, too.
        registered_rmse, registered_own_rmse: The same two once the output's `motion` is undone; None where it cannot
            be told.
        background_status: ok, no_reference or no_background.
        motion: Of the whole output against the source.
        lpips_output, lpips_truth: Distance of the source's face box to the output's and the ground truth's, ≥ 0; None
            where it was not measured.
        au_output, au_truth: Distance of the source's blendshapes to the output's and the ground truth's, ≥ 0.
        au_direction: Cosine of the two changes, −1..1; None where one of them is 0.
    """

    identity: float | None
    identity_status: PartStatus
    faces: int
    background_rmse: float | None
    background_own_rmse: float | None
    registered_rmse: float | None
    registered_own_rmse: float | None
    background_status: PartStatus
    motion: Motion | None
    lpips_output: float | None
    lpips_truth: float | None
    au_output: float | None
    au_truth: float | None
    au_direction: float | None


class Unchanged(Record):
    """What an editor makes of a source that is to keep its expression: what its re-encoding alone changes.

    Attributes:
        image: sha256 of the stored picture at the source's size.
        lpips, au: Its distance to the source, ≥ 0, as in `RuleParts`; None where it was not or cannot be measured.
    """

    image: str
    lpips: float | None
    au: float | None


class Scored(Record):
    """What the cut makes of the measurements: parts, dimensions and the score, each 0..1, None where there is none.

    Attributes:
        state: How the row counts.
        reason: Why it is not scored: the kind of a failure, or "part: status"; empty where it is.
        statuses: By part, in the order of `Part`: "id ok", "bg ok", ...
        lpips_ratio, au_ratio: r = distance to the output over distance to the ground truth; 0 is no change, 1 as much
            as the ground truth; None where the divisor is degenerate or something was not measured.
        noop_ratio: The same of the editor's own re-encoding of the unchanged source, by the chosen gain: what of r is
            no edit.
        id, bg, pq, sc, gta, reg: The parts; `pq`, `sc`, `gta` are the panel's mean over 10: of each judge the mean of
            its answers (both orders, all repeats), then the mean over the judges that answered.
        pq_spread, sc_spread, gta_spread: Sample standard deviation over those judges' means, on their 0..10; None with
            fewer than two.
        fidelity, alignment, gain: The dimensions.
        score: Their product. In a run without a judge the partial score: mean(id, bg) · reg.
    """

    state: State
    reason: str
    statuses: tuple[str, ...]
    lpips_ratio: float | None
    au_ratio: float | None
    noop_ratio: float | None
    id: float | None
    bg: float | None
    pq: float | None
    sc: float | None
    gta: float | None
    reg: float | None
    pq_spread: float | None
    sc_spread: float | None
    gta_spread: float | None
    fidelity: float | None
    alignment: float | None
    gain: float | None
    score: float | None


class ScoreRow(Record):
    """One editor's output for one triplet under one instruction. The first seven columns are its identity.

    Attributes:
        editor: What the run calls it; the manifest has its parameters, version and weights.
        pool, source_id, target, truth_editor, truth_attempt: The triplet's key: the last two say who made the ground
            truth.
        triplet: The readable form of it.
        subject: Who is shown, as the data set has it: what a bootstrap draws.
        seed: What the editor was given.
        failure, message: Kind and words of the editor's failure; None and empty where there is an output.
        image: sha256 of the stored output at the source's size (`images/` of the workspace); empty without one.
        raw_width, raw_height: Pixels the editor gave.
        source_image, truth_image: The same of the triplet's pictures.
        rule: None where there is no output.
        judged: Every judge's answer on every part; empty without an output or a judge.
        noop: The source re-encoded by the editor; None where that was not asked for or cannot be had.
        scored: What the run's cut makes of it.
        truths: How many ground truths the source has for this target: that many rows are one set.
        truth_best, truth_mean: Of the set's scores, failed ones as 0; None where none has one.
    """

    editor: str
    granularity: Granularity
    pool: str
    source_id: str
    target: Expression
    truth_editor: str
    truth_attempt: int
    triplet: str
    subject: str
    source_expression: Expression
    instruction: str
    seed: int
    failure: FailureKind | None
    message: str
    image: str
    raw_width: int
    raw_height: int
    source_image: str
    truth_image: str
    rule: RuleParts | None
    judged: tuple[JudgeScore, ...]
    noop: Unchanged | None
    scored: Scored
    truths: int
    truth_best: float | None
    truth_mean: float | None
