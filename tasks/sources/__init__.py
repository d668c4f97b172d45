"""Source pools: where photos come from. Pools list and crop; screening only measures."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.records import Source
from tasks.engine.registry import Registry


@dataclass(frozen=True, eq=False)
class Loaded:
    """A source's pixels as they enter the store.

    Attributes:
        pixels: RGB (H, W, 3) uint8, upright, without metadata.
        file_sha256: Hash of the file on the user's disk (of the whole photo where the source is a crop of it).
        note: What only loading could tell ("frame 34 of 72"), for people.
    """

    pixels: NDArray[np.uint8]
    file_sha256: str
    note: str = ""


class SourcePool(Protocol):
    """A collection of photos.

    `redistributable` says that every licence in it allows its pictures, and edits of them, to be passed on. Where
    that is not known it is False: the user who knows better says so (`publish.acknowledge_licences`).
    """

    redistributable: bool

    def list(self) -> Iterable[Source]:
        """Every source once, in any order, without opening a picture.

        Raises:
            ConfigError: The root or the manifest is wrong.
        """
        ...

    def load(self, source: Source) -> Loaded:
        """The pixels of one source.

        Raises:
            UnreadableImage: With a reason, for whatever cannot be read.
        """
        ...


POOLS: Registry[SourcePool] = Registry(
    "pool",
    {
        "folder": "tasks.sources.folder:FolderPool",
        "samples": "tasks.sources.samples:SamplePool",
        "sfew": "tasks.sources.sfew:SfewPool",
        "dfew": "tasks.sources.dfew:DfewPool",
        "rafdb": "tasks.sources.rafdb:RafdbPool",
    },
)


def redistributable(kind: str) -> bool:
    """Whether a kind of pool says that its pictures may be passed on; one that says nothing does not.

    Raises:
        ConfigError: There is no such kind.
    """
    return bool(getattr(POOLS.adapter_class(kind), "redistributable", False))
