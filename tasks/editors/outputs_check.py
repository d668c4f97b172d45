"""Whether a user's outputs are those that are owed, looked at before anything is built or scored on them."""

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from schemas.records import Key
from tasks.editors.outputs_found import NotOne, found_in
from tasks.engine.decode import decode
from tasks.engine.errors import UnreadableImage
from tasks.engine.fingerprint import sha256
from tasks.metrics.registration import has_other_shape

Size = tuple[int, int]


@dataclass(frozen=True)
class Matched:
    """What became of the owed keys and of the outputs. All but the last two are faults.

    Attributes:
        owed: How many keys there are.
        matched: How many have one output that can be read.
        missing: Keys without an output, with the name that was looked for.
        doubled: Keys with several, with their names.
        unreadable: Keys whose output cannot be read, and why.
        extra: Outputs of no owed key.
        shared: One and the same file for several keys.
        other_shape: Outputs whose width : height is not the source's: they will be stretched.
        other_size: How many outputs have another size than their source: they will be resized.
    """

    owed: int
    matched: int
    missing: tuple[str, ...]
    doubled: tuple[str, ...]
    unreadable: tuple[str, ...]
    extra: tuple[str, ...]
    shared: tuple[str, ...]
    other_shape: tuple[str, ...]
    other_size: int

    @property
    def clean(self) -> bool:
        """Whether every key has its own output, and every output its key."""
        return not (self.missing or self.doubled or self.unreadable or self.extra or self.shared)


def match(root: str, pattern: str, owed: Mapping[Key, Size | None]) -> Matched:
    """Match outputs to keys, and decode every one of them.

    Args:
        root, pattern: As the `outputs` editor takes them.
        owed: By key, (height, width) of its source where that is known.

    Raises:
        ConfigError: As `found_in` does.
    """
    found = found_in(root, pattern)
    names: dict[Key, str] = {}
    missing: list[str] = []
    doubled: list[str] = []
    for key in sorted(owed):
        try:
            names[key] = found.one(key)
        except NotOne as error:
            (doubled if error.several else missing).append(str(error))

    def look(key: Key) -> tuple[str, Size] | str:
        try:
            data = found.read(names[key])
            return sha256(data), (int((pixels := decode(data)).shape[0]), int(pixels.shape[1]))
        except UnreadableImage as error:
            return f"{names[key]}: {error.reason}, {error}"

    unreadable, other_shape, other_size = [], [], 0
    alike: dict[str, list[str]] = defaultdict(list)
    with ThreadPoolExecutor(4) as threads:
        for key, seen in zip(names, threads.map(look, names), strict=True):
            if isinstance(seen, str):
                unreadable.append(seen)
                continue
            digest, size = seen
            alike[digest].append(names[key])
            wanted = owed[key]
            if wanted and size != wanted:
                other_size += 1
                if has_other_shape(size, wanted):
                    given, due = f"{size[1]} × {size[0]}", f"{wanted[1]} × {wanted[0]}"
                    other_shape.append(f"{names[key]}: {given}, the source is {due}")
    taken = set(names.values())
    return Matched(
        owed=len(owed),
        matched=len(names) - len(unreadable),
        missing=tuple(missing),
        doubled=tuple(doubled),
        unreadable=tuple(unreadable),
        extra=tuple(name for name in found.names if name not in taken),
        shared=tuple(" = ".join(same) for same in alike.values() if len(same) > 1),
        other_shape=tuple(other_shape),
        other_size=other_size,
    )
