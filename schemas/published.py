"""The rows of the published data set. Flat where users filter, structs where they do not; pictures last."""

from typing import Any, Final

from schemas.records import KeyField, Motion, Record, Vote
from schemas.reviews import AuditReviewed, ReviewCell, SampleReviewed

# The columns that hold pictures: of a triplet two, of a rejected edit one.
PICTURES: Final = ("source", "ground_truth", "image")

# Rises with any change of the columns below or of their meaning.
SCHEMA_VERSION: Final = 6


class ImageCell(Record):
    """A picture as Hugging Face `Image` stores it: the file's bytes, and a logical name that exists on no disk."""

    bytes: bytes
    path: str


class TripletRow(Record):
    """One triplet. The first five columns are its identity; `id` is the readable form of them.

    Attributes:
        id: Readable key.
        source_expression, target_expression: What the source shows and the ground truth shall show.
        instruction, dense_instruction: The simple template, and the description of what must move.
        back_check: Whether a model of another family could pick the ground truth by the dense instruction: passed,
            rewritten (the second text did it), failed, abstained (it gave no answer) or not_checked.
        caption: The ground truth's expression in words.
        votes: Every voter's answer on the ground truth.
        verdict: The arithmetic of the vote in words.
        change: Blendshape distance between source and ground truth.
        identity: ArcFace cosine of source and ground truth, -1..1.
        background_rmse, registered_rmse: 0-255, outside both faces' dilated masks; the latter with `motion` undone.
        motion, moved: Of the whole picture, and whether beyond the config's limits; null where it cannot be told.
        raw_width, raw_height: Pixels the editor gave; the picture here has the source's.
        editor_model, watermark: Who made it, by its provider's or the config's word, and its mark; or empty.
        score, rank: Fused fidelity 0..1 and its place among the source's verified candidates.
        label_source: Who said what the source shows: given (by the pool) or panel.
        traits: What the pool says of the person, for slices ("gender=female").
        subject: Readable key of the first source of the same person in the run.
        source_file_sha256, source_pixel_sha256: Of the user's file, and of its decoded RGB.
        source_sha256, ground_truth_sha256: Of the PNG bytes in this row.
        synthetic: The ground truth was made by a model.
        row_sha256: Over all other columns, pictures by their hash.
    """

    pool: str
    source_id: str
    target: str
    editor: str
    attempt: int
    id: str
    source_expression: str
    target_expression: str
    instruction: str
    dense_instruction: str
    back_check: str
    caption: str
    votes: tuple[Vote, ...]
    verdict: str
    change: float | None
    identity: float | None
    background_rmse: float | None
    registered_rmse: float | None
    motion: Motion | None
    moved: bool | None
    raw_width: int
    raw_height: int
    editor_model: str
    watermark: str
    score: float
    rank: int
    review: ReviewCell
    label_source: str
    subject: str
    clip: str
    movie: str
    source_split: str
    traits: tuple[str, ...]
    licence: str
    seed: int
    synthetic: bool
    source_file_sha256: str
    source_pixel_sha256: str
    source_sha256: str
    ground_truth_sha256: str
    schema_version: int
    row_sha256: str
    source: ImageCell
    ground_truth: ImageCell


class RejectedRow(Record):
    """A source or candidate that is not in the data set, and where and why it ended.

    Attributes:
        stage, status: Where it ended: rejected, failed or waiting; kept only for a source that owed no candidate.
        reason: A reason or a kind of failure.
        evidence: The numbers behind it in words.
        image: The candidate's picture; null for sources, which are not ours to give away.
    """

    pool: str
    source_id: str
    target: str
    editor: str
    attempt: int
    id: str
    stage: str
    status: str
    reason: str
    evidence: str
    source_expression: str
    instruction: str
    votes: tuple[Vote, ...]
    change: float | None
    identity: float | None
    background_rmse: float | None
    registered_rmse: float | None
    motion: Motion | None
    moved: bool | None
    licence: str
    image_sha256: str
    schema_version: int
    row_sha256: str
    image: ImageCell | None


class StageCount(Record):
    """One line of the funnel: how many rows a stage owed, and how they left it."""

    stage: str
    owed: int
    kept: int
    rejected: int
    failed: int
    waiting: int
    reasons: dict[str, int]


class CellCount(Record):
    """What became of one cell, from one expression to another.

    Attributes:
        survivors: The natural mix: edits that passed everything before selection.
        triplets: The published mix.
        short: How many triplets the cell lacks of an even share of the target; 0 where there is no target.
    """

    source: str
    target: str
    survivors: int
    triplets: int
    short: int


class PoolUsed(Record):
    """Where sources came from, and whether their pictures may be passed on.

    Attributes:
        name, kind: As in every row's `pool`, and as in the registry.
        redistributable: Whether every licence of the kind allows its pictures and edits of them to be passed on.
        licences: Licence → sources under it.
    """

    name: str
    kind: str
    redistributable: bool
    licences: dict[str, int]


class RoleUsed(Record):
    """An adapter that made or checked something.

    Attributes:
        role: editor, voter, captioner, writer, judge or checker.
        adapter, called, family: Its (model's) name; what rows call it, where they do otherwise; of its models, if any.
        conflicts: Why what it makes cannot be vouched for by others here, or what it cannot vouch for.
    """

    role: str
    adapter: str
    called: str = ""
    version: int
    family: str
    conflicts: tuple[str, ...]


class ExcludedSources(Record):
    """What the sources share no clip, picture or person with, such as the benchmark.

    Attributes:
        sources: How many were excluded.
        without_identity: How many of them have no identity vector, so that persons were not compared.
        digest: Of what they are known by: clips, hashes, vectors.
        model: What made the vectors.
    """

    sources: int
    without_identity: int
    digest: str
    model: str


class AnswersUsed(Record):
    """Answers of one measure identity that the data set rests on.

    Attributes:
        version: Of the stage.
        group: What the user chose for a part of the rows (one of several editors); empty where it is for all.
        uses: Adapters (kind, name, version, params, weights by sha256) and hashes of prompts.
        rows: How many rows were measured so; 0 where a stage measured nothing.
    """

    version: int
    group: str
    uses: tuple[Any, ...]
    rows: int


class LostTriplet(Record):
    """A triplet of the core that does not survive any more: where it ended, why, and the numbers in words."""

    key: KeyField
    stage: str
    reason: str
    evidence: str


class CoreUsed(Record):
    """The earlier edition whose triplets were taken first.

    Attributes:
        edition: Of the same data set.
        digest: Of its triplets, by which it decided.
        triplets: Their readable keys, in order.
        lost: Those of them that are not in this edition.
    """

    edition: str
    digest: str
    triplets: tuple[str, ...]
    lost: tuple[LostTriplet, ...]


class WeightUsed(Record):
    """A model file that had a say in the data set."""

    name: str
    licence: str
    tuned_against: str


class Manifest(Record):
    """What `manifest.json` says.

    Attributes:
        pictures: Which columns of pictures the tables have: all in a full release, none in an index.
        full_sha256: Of the full release's `checksums.sha256`, in a release that was made of it; else empty.
        fedbench, pyarrow: Versions that wrote it.
        back_checks, sample: Outcome of the check → triplets; what people found in a sample, if that is what they saw.
        audit: What they found of candidates that were rejected automatically, if they were asked.
        config: The build's config, without what changes no row and without paths.
        stages: Whose answers each took, oldest version first; more than one of a group where they were replayed.
        prompts, files, rows_sha256: Name → sha256; Parquet file → rows; over the sorted `row_sha256` of all rows.
    """

    name: str
    edition: str
    split: str
    schema_version: int
    pictures: tuple[str, ...]
    full_sha256: str
    fedbench: str
    pyarrow: str
    config: dict[str, Any]
    stages: dict[str, tuple[AnswersUsed, ...]]
    prompts: dict[str, str]
    weights: tuple[WeightUsed, ...]
    pools: tuple[PoolUsed, ...]
    roles: tuple[RoleUsed, ...]
    excluded: ExcludedSources | None = None
    core: CoreUsed | None = None
    sources: int
    triplets: int
    funnel: tuple[StageCount, ...]
    cells: tuple[CellCount, ...]
    back_checks: dict[str, int]
    sample: SampleReviewed | None = None
    audit: AuditReviewed | None = None
    files: dict[str, int]
    rows_sha256: str
