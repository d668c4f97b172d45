"""The frozen row types. Identity is columns, never a parsed string; the readable key is for people.

Each type has one Arrow schema, derived from its annotations in `tasks.engine.store`.
"""

from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention
from schemas.ratings import RatingMean


class Key(NamedTuple):
    """What a row is: a source, or a candidate edit of it. Sorts and compares by its columns."""

    pool: str
    source_id: str
    target: str = ""
    editor: str = ""
    attempt: int = 0

    def source(self) -> "Key":
        """The key of the source this row belongs to."""
        return Key(self.pool, self.source_id)

    def __str__(self) -> str:
        source = f"{self.pool}/{self.source_id}"
        return f"{source}:{self.target}@{self.editor}#{self.attempt}" if self.target else source


def _key(value: Any) -> Any:
    return Key(**value) if isinstance(value, dict) else value


# A key is a struct of columns wherever a row is written.
KeyField = Annotated[Key, BeforeValidator(_key), PlainSerializer(Key._asdict)]


class Record(BaseModel):
    """Base of all rows: frozen, and no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Record):
    """One photo that a pool lists, before anybody looked at its pixels.

    Attributes:
        path: Relative to the pool's root.
        stamp: Changes when the file does; published nowhere.
        label: The expression the pool says it shows.
        label_confidence: A share in 0..1.
        clip, movie, identity: The pool's own hints, empty where it has none.
        licence: Must survive to the export.
        traits: What the pool says of the person, for slices: "gender=female", "age=20-39".
    """

    key: KeyField
    path: str
    stamp: str = ""
    label: Expression | None = None
    label_confidence: float | None = None
    split: str = ""
    clip: str = ""
    movie: str = ""
    identity: str = ""
    licence: str = ""
    traits: tuple[str, ...] = ()


class Vote(Record):
    """One voter's answer on one picture: a class, a polarity, or an abstention with its kind and raw text.

    Attributes:
        voter: What the panel calls it.
        repeat: Tells apart answers of one voter that is asked more than once.
        confidence: The voter's own probability of its answer in 0..1 where it has one.
        raw: What it said.
        model: Which model answered, as its provider names it; empty for a local voter.
        repaired: Whether this is its second answer, because the first could not be read.
    """

    voter: str
    granularity: str
    repeat: int = 0
    expression: Expression | None = None
    polarity: Polarity | None = None
    confidence: float | None = None
    abstained: Abstention | None = None
    raw: str = ""
    model: str = ""
    repaired: bool = False


class SourceFacts(Record):
    """What screening measured of one source. Fields that need a face are None without one.

    Attributes:
        problem: Short code of what kept the picture out ("truncated"); empty if it was read.
        detail: The problem, or what only loading could tell ("frame 13 of 18"), in words.
        image: Digest of the stored PNG.
        width, height: Pixels.
        file_sha256: Of the file as the user has it.
        pixel_sha256: Of the decoded RGB bytes: equal for byte-different files of equal pixels.
        phash, mirror_phash: 64-bit perceptual hashes of the picture and its mirror image, 16 hexadecimal digits each.
        face_phash, face_mirror_phash: The same of the aligned face; empty without one.
        faces: How many were found.
        second_face: Size of the second face over the first, sqrt of the areas, 0..1.
        inter_eye: Pixels, corrected for yaw.
        yaw, pitch, roll: Degrees.
        sharpness: Laplacian variance of the face crop of fixed size.
        overexposed, underexposed: Shares of face pixels, 0..1.
        embedding: (D,) float32 little-endian bytes of length-1 identity vector; never published.
        votes: The label panel's fine answers, where the pool gave no label.
    """

    problem: str = ""
    detail: str = ""
    image: str | None = None
    width: int = 0
    height: int = 0
    file_sha256: str = ""
    pixel_sha256: str = ""
    phash: str = ""
    mirror_phash: str = ""
    face_phash: str = ""
    face_mirror_phash: str = ""
    faces: int = 0
    second_face: float = 0.0
    inter_eye: float | None = None
    yaw: float | None = None
    pitch: float | None = None
    roll: float | None = None
    sharpness: float | None = None
    overexposed: float | None = None
    underexposed: float | None = None
    embedding: bytes | None = None
    votes: tuple[Vote, ...] = ()


class Photo(Record):
    """A source that passed screening. `subject` is the key of the first source of the same person in this run."""

    key: KeyField
    image: str
    width: int
    height: int
    file_sha256: str
    pixel_sha256: str
    expression: Expression
    label_source: str
    subject: str
    path: str
    split: str
    clip: str
    movie: str
    licence: str
    traits: tuple[str, ...] = ()


class Motion(Record):
    """Where the source's content lies in an edit of its size: shift and zoom of the whole picture.

    A point p of the source is found at c + R · S · (p − c) + (dx, dy) of the edit: c is the centre, R the turn,
    S = (zoom · √stretch, zoom / √stretch).

    Attributes:
        dx, dy: Pixels of the source, right and down.
        zoom: Enlargement; 1 is none.
        stretch: How much wider the content became against its height; 1 is not at all.
        turn: Degrees clockwise.
        confidence: Share of the picture's followed points that move so, 0..1.
    """

    dx: float
    dy: float
    zoom: float
    stretch: float
    turn: float
    confidence: float


class Candidate(Record):
    """One edit of a source.

    Attributes:
        source_image, image: Digests of the stored PNGs.
        instruction, seed: What the editor was given; the instruction is the simple one.
        raw_width, raw_height: The editor's own size in pixels; `image` always has the source's.
        changed_pixels: Share of pixels that differ from the source by more than 2 levels, 0..1.
        local_change: Largest blurred difference to the source, in levels 0-255 (`tasks.metrics.unchanged`).
        motion: Of the whole picture against the source; None where it cannot be told.
        model, watermark: Who made it, by its provider's or the config's word, and its mark; empty if nobody says.
    """

    key: KeyField
    source_image: str
    source_expression: Expression
    image: str
    instruction: str
    seed: int
    raw_width: int
    raw_height: int
    changed_pixels: float
    local_change: float
    motion: Motion | None
    model: str = ""
    watermark: str = ""


class Ballots(Record):
    """What the panel said of one candidate. `change` is the blendshape distance from the source, None if no face."""

    votes: tuple[Vote, ...]
    faces: int
    change: float | None = None


class Fidelity(Record):
    """How much of the source a candidate kept: ArcFace cosine -1..1, and RMSE 0-255 outside both face masks.

    All are None where the candidate shows no face; the RMSE also where the widened faces cover the whole picture.
    `registered_rmse` is the RMSE once the candidate's motion is undone, None also where that cannot be told.
    """

    identity: float | None = None
    background_rmse: float | None = None
    registered_rmse: float | None = None


class Finalist(Record):
    """A candidate among the best of its source. `rank` starts at 1; `score` is the fused fidelity, 0..1."""

    key: KeyField
    source_image: str
    source_expression: Expression
    image: str
    instruction: str
    rank: int
    score: float
    caption: str = ""


class CaptionText(Record):
    """A finalist's expression in words."""

    text: str


class Opinion(Record):
    """A board's view of one finalist: `chosen` is None while people are still at it."""

    mode: str
    chosen: bool | None
    note: str = ""


class GroundTruth(Record):
    """A finalist that review chose: `mode` says who (human, sample or auto), `runner_up` is the digest of the best
    other one ("" without one), `ratings` is how people rated it."""

    key: KeyField
    source_image: str
    source_expression: Expression
    image: str
    instruction: str
    rank: int
    caption: str
    mode: str
    note: str
    runner_up: str = ""
    ratings: tuple[RatingMean, ...] = ()


class DenseText(Record):
    """A dense instruction, whether a model of another family could pick the ground truth by it, and what it picked."""

    text: str
    back_check: str
    evidence: str = ""


class Triplet(Record):
    """What the data set is made of: source, instructions, ground truth (pictures by digest)."""

    key: KeyField
    source_image: str
    source_expression: Expression
    image: str
    instruction: str
    dense_instruction: str
    back_check: str
    caption: str
    rank: int
    mode: str
    note: str
    ratings: tuple[RatingMean, ...] = ()
