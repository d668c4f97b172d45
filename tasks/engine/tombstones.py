"""Withdrawn sources, as a build meets them: by key without opening anything, by pixels under whatever name."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from schemas.records import Key, Source
from schemas.tombstones import Withdrawals
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store

FILE: Final = "withdrawn.json"
# The stamp of a source of which only its key and licence are left, and the problem that screening finds with it.
WITHDRAWN: Final = "withdrawn"
# The one evidence of such a rejection. The day and the reason are nobody else's business.
WORDS: Final = "it was taken out on request"


def read_withdrawals(store: Store) -> Withdrawals:
    """The tombstones of a workspace; none where nothing was ever withdrawn."""
    return store.read_as(FILE, Withdrawals) or Withdrawals()


def check_finished(store: Store) -> None:
    """Refuse to build where a withdrawal was stopped halfway.

    Raises:
        WorkspaceError: One was.
    """
    if read_withdrawals(store).unfinished:
        raise WorkspaceError(
            f"a withdrawal in {store.root} was stopped before its end",
            "run `fedbench withdraw` once more; no key needed",
        )


def pixels_mark(pixel_sha256: str) -> str:
    """What a tombstone keeps of a hash of pixels: not the hash itself, which stands in rows published earlier."""
    return fingerprint(WITHDRAWN, pixel_sha256) if pixel_sha256 else ""


@dataclass(frozen=True)
class Withdrawn:
    """The sources that no build uses again."""

    keys: frozenset[Key] = frozenset()
    pixels: frozenset[str] = frozenset()

    @classmethod
    def of(cls, store: Store) -> "Withdrawn":
        """Those of a workspace."""
        stones = read_withdrawals(store).tombstones
        return cls(frozenset(stone.key for stone in stones), frozenset(stone.pixels for stone in stones) - {""})

    @cached_property
    def digest(self) -> str:
        """Of all that decisions depend on; empty where nothing is withdrawn."""
        return fingerprint(sorted(map(list, self.keys)), sorted(self.pixels)) if self.keys else ""

    def left_of(self, source: Source) -> Source:
        """The source, or what is left of a withdrawn one: nothing that could be opened or tells of the person."""
        if source.key not in self.keys:
            return source
        return Source(key=source.key, path="", stamp=WITHDRAWN, licence=source.licence)

    def shows(self, pixel_sha256: str) -> bool:
        """Whether a picture with this hash of its pixels is withdrawn."""
        return bool(self.pixels) and pixels_mark(pixel_sha256) in self.pixels


NOBODY: Final = Withdrawn()
