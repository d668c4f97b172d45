"""What stays of a withdrawn source: that it was, and that it is not to be used again."""

from schemas.records import Key, Record


class Tombstone(Record):
    """A withdrawn source.

    Attributes:
        pool, source_id: Its key.
        day: When it was withdrawn ("2026-11-30"); published nowhere.
        reason: As the user gave it; published nowhere.
        pixels: A hash over the sha256 of its decoded pixels, by which the very same picture is known under another
            name; empty where it was never read. It tells nothing to whom has not got the picture.
    """

    pool: str
    source_id: str
    day: str
    reason: str = ""
    pixels: str = ""

    @property
    def key(self) -> Key:
        return Key(self.pool, self.source_id)


class Unfinished(Record):
    """What a withdrawal has yet to do; gone when it is done.

    Attributes:
        keys: "pool/source_id" of what is going.
        digests: sha256 of their pictures and edits.
        folders: Data sets, releases and packs outside the workspace that are cleaned as well.
    """

    keys: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class Withdrawals(Record):
    """What `withdrawn.json` in a workspace says, in the order of the withdrawals."""

    tombstones: tuple[Tombstone, ...] = ()
    unfinished: Unfinished | None = None
