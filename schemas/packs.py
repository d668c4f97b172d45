"""The gated pack of edited pictures that belongs to an index release: key, picture, hash, and nothing else."""

from typing import Literal

from schemas.published import ImageCell, PoolUsed
from schemas.records import Record


class PackedTruth(Record):
    """A ground truth. The first five columns are its identity, `id` the readable form of them."""

    pool: str
    source_id: str
    target: str
    editor: str
    attempt: int
    id: str
    ground_truth_sha256: str
    ground_truth: ImageCell


class PackedEdit(Record):
    """The picture of an edit that is no ground truth."""

    pool: str
    source_id: str
    target: str
    editor: str
    attempt: int
    id: str
    image_sha256: str
    image: ImageCell


class PackManifest(Record):
    """What a pack's `manifest.json` says.

    Attributes:
        kind: What tells it from a data set's.
        pictures: Which columns of the data set its pictures fill.
        rows_sha256: Of the data set it belongs to.
        files: Parquet file → rows.
    """

    kind: Literal["pack"]
    name: str
    edition: str
    split: str
    schema_version: int
    pictures: tuple[str, ...]
    fedbench: str
    pyarrow: str
    pools: tuple[PoolUsed, ...]
    triplets: int
    rows_sha256: str
    files: dict[str, int]
