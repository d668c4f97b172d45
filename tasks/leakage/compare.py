"""Compares two sides source by source: clip, exact pixels, near duplicates, person. Pure: portraits in, leaks out."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.outcomes import Reason
from schemas.portraits import Portrait
from schemas.records import Key
from schemas.screening import ScreenCut
from tasks.engine.fingerprint import fingerprint, sha256

# Numbers held at once: 2 million float64 are 16 MB, whatever the sizes of the two sides.
_CELLS: Final = 2**21
_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Leak:
    """One rule that a source of side B breaks, with the source of A that it breaks it most with.

    Attributes:
        reason: What screening would reject it for.
        rule: "clip", "pixels", "picture", "face", "person" or "identity".
        a, b: The two sources.
        number: Bits of 64 that differ, or the cosine; None for what is equal by name.
        evidence: The same in words.
        others: How many more sources of A it breaks this rule with.
    """

    reason: Reason
    rule: str
    a: Key
    b: Key
    number: float | None
    evidence: str
    others: int = 0


@dataclass(frozen=True)
class Comparison:
    """What leaks from A into B, and what could not be checked.

    Attributes:
        leaks: In the order of B, and for each source in the order of the rules.
        unchecked: One line each for people; empty if everything was compared by every rule.
    """

    leaks: tuple[Leak, ...]
    unchecked: tuple[str, ...]

    @cached_property
    def must_go(self) -> tuple[Key, ...]:
        """The sources of B that leak, in its order."""
        return tuple(dict.fromkeys(leak.b for leak in self.leaks))


class Guard:
    """Side A, laid out for comparing.

    Args:
        portraits: Of side A.
        cut: Its `leak_` limits.
    """

    def __init__(self, portraits: Sequence[Portrait], cut: ScreenCut) -> None:
        self.portraits = tuple(portraits)
        self._cut = cut
        self._names = {rule: _places(self.portraits, field) for rule, field in _BY_NAME.items()}
        self._picture = _Hashes(self.portraits, "phash", "mirror_phash")
        self._face = _Hashes(self.portraits, "face_phash", "face_mirror_phash")
        self._vectors = _vectors(self.portraits)

    @cached_property
    def digest(self) -> str:
        """Of everything that the decisions depend on, whatever the order of the portraits."""
        rows = (row.model_dump(mode="json", exclude={"embedding", "lacking"}) for row in self.portraits)
        vectors = (sha256(row.embedding or b"") for row in self.portraits)
        return fingerprint(sorted(fingerprint(row, vector) for row, vector in zip(rows, vectors, strict=True)))

    def leaks(self, portraits: Iterable[Portrait]) -> Iterator[list[Leak]]:
        """For every portrait of side B, in order, the rules it breaks; an empty list if it is clean."""
        rows = list(portraits)
        size = max(1, _CELLS // max(1, len(self.portraits)))
        for start in range(0, len(rows), size):
            yield from self._block(rows[start : start + size])

    def _block(self, rows: Sequence[Portrait]) -> Iterator[list[Leak]]:
        cut = self._cut
        cosine = self._cosines(rows)
        picture, picture_mirrored = self._picture.bits(rows)
        face, face_mirrored = self._face.bits(rows)
        # Aligned faces look alike: a few bits are no proof against an identity model that sees two people.
        face[(face <= cut.leak_face_bits) & (cosine < cut.leak_face_identity)] = _BITS + 1
        near = (
            ("picture", picture, picture_mirrored, cut.leak_duplicate_bits),
            ("face", face, face_mirrored, cut.leak_face_bits),
        )
        for place, row in enumerate(rows):
            found = [self._by_name(row, "clip"), self._by_name(row, "pixels")]
            found += [self._near(row, rule, bits[place], turned[place], most) for rule, bits, turned, most in near]
            found += [self._by_name(row, "person"), self._identity(row, cosine[place])]
            yield [leak for leak in found if leak is not None]

    def _by_name(self, row: Portrait, rule: str) -> Leak | None:
        value = getattr(row, _BY_NAME[rule])
        places = self._names[rule].get(value, []) if value else []
        if not places:
            return None
        a = self.portraits[places[0]].key
        reason, words, number = {
            "clip": (Reason.LEAK_CLIP, f"clip {value} is also that of {a}", None),
            "pixels": (Reason.LEAK_DUPLICATE, f"same pixels as {a}", 0.0),
            "person": (Reason.LEAK_IDENTITY, f"the pool calls it {value}, as it does {a}", None),
        }[rule]
        return Leak(reason, rule, a, row.key, number, words, len(places) - 1)

    def _near(
        self, row: Portrait, rule: str, bits: NDArray[np.uint8], mirrored: NDArray[np.bool_], most: int
    ) -> Leak | None:
        hits = int((bits <= most).sum())
        if not hits:
            return None
        nearest = int(bits.argmin())
        turned = "mirrored, " if mirrored[nearest] else ""
        a = self.portraits[nearest].key
        words = f"{rule} {turned}{bits[nearest]} of 64 hash bits from {a}, needs more than {most}"
        return Leak(Reason.LEAK_DUPLICATE, rule, a, row.key, float(bits[nearest]), words, hits - 1)

    def _identity(self, row: Portrait, cosine: NDArray[np.float64]) -> Leak | None:
        limit = self._cut.leak_identity
        hits = int((cosine >= limit).sum())
        if not hits:
            return None
        nearest = int(np.nanargmax(cosine))
        a = self.portraits[nearest].key
        words = f"cosine {cosine[nearest]:.3f} to {a}, needs less than {limit:g}"
        return Leak(Reason.LEAK_IDENTITY, "identity", a, row.key, float(cosine[nearest]), words, hits - 1)

    def _cosines(self, rows: Sequence[Portrait]) -> NDArray[np.float64]:
        """(len(rows), len(A)) cosines; NaN where a vector is missing or another model's."""
        cosines = np.full((len(rows), len(self.portraits)), np.nan)
        for model, (places, vectors) in _vectors(rows).items():
            if model in self._vectors:
                columns, others = self._vectors[model]
                # Doubles, rounded: a block's size must not move a cosine across a limit.
                cosines[np.ix_(places, columns)] = (vectors @ others.T).round(6)
        return cosines


_BY_NAME: Final = {"clip": "clip", "pixels": "pixel_sha256", "person": "person"}


def _places(portraits: Sequence[Portrait], field: str) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(portraits):
        if value := getattr(row, field):
            places[value].append(place)
    return dict(places)


def _vectors(portraits: Sequence[Portrait]) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """By model and length: places, and (N, D) vectors."""
    by_model: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(portraits):
        if row.embedding:
            by_model[f"{row.model} {len(row.embedding)}"].append(place)
    return {
        model: (
            np.array(places),
            np.stack([np.frombuffer(portraits[place].embedding or b"", "<f4") for place in places]).astype(np.float64),
        )
        for model, places in by_model.items()
    }


class _Hashes:
    """(N,) hashes of A's pictures and of their mirror images; missing ones are left out."""

    def __init__(self, portraits: Sequence[Portrait], field: str, mirror: str) -> None:
        self._fields = field, mirror
        self._count = len(portraits)
        self._known, self._plain, self._mirror = self._read(portraits)

    def _read(self, portraits: Sequence[Portrait]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        known = [place for place, row in enumerate(portraits) if all(getattr(row, field) for field in self._fields)]
        plain, mirror = (
            np.array([int(getattr(portraits[place], field), 16) for place in known], np.uint64)
            for field in self._fields
        )
        return np.array(known, np.int64), plain, mirror

    def bits(self, rows: Sequence[Portrait]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """(len(rows), len(A)) differing bits, 65 where a hash is missing; and whether the mirror image is nearer.

        Each picture is compared with the other's mirror image both ways, so that A and B may change places.
        """
        bits = np.full((len(rows), self._count), _BITS + 1, np.uint8)
        mirrored = np.zeros(bits.shape, np.bool_)
        known, plain, mirror = self._read(rows)
        if len(known) and len(self._known):
            straight = np.bitwise_count(plain[:, None] ^ self._plain)
            turned = np.minimum(
                np.bitwise_count(plain[:, None] ^ self._mirror), np.bitwise_count(mirror[:, None] ^ self._plain)
            )
            places = np.ix_(known, self._known)
            bits[places] = np.minimum(straight, turned)
            mirrored[places] = turned < straight
        return bits, mirrored


def compare(a: Sequence[Portrait], b: Sequence[Portrait], cut: ScreenCut | None = None) -> Comparison:
    """Everything that leaks from A into B.

    Args:
        a: The side that must stay unseen, such as the benchmark.
        b: The side that may lose sources, such as the training set.
        cut: Its `leak_` limits; None for the defaults.
    """
    guard = Guard(a, cut or ScreenCut())
    leaks = tuple(leak for found in guard.leaks(b) for leak in found)
    return Comparison(leaks, (*_lacking(a, "A"), *_lacking(b, "B"), *_mixed(a, b)))


def _lacking(side: Sequence[Portrait], name: str) -> Iterator[str]:
    """What a side's portraits lack, counted by cause."""
    without = [row for row in side if not row.phash]
    if without:
        yield f"near duplicates not checked for {len(without)} of {len(side)} sources of {name}: {_causes(without)}"
    without = [row for row in side if not row.embedding]
    if without:
        yield f"identity not checked for {len(without)} of {len(side)} sources of {name}: {_causes(without)}"


def _causes(rows: Sequence[Portrait]) -> str:
    return ", ".join(f"{cause} {count}" for cause, count in Counter(row.lacking or "unknown" for row in rows).items())


def _mixed(a: Sequence[Portrait], b: Sequence[Portrait]) -> Iterator[str]:
    """Which vectors were not compared because two models made them."""
    models = [Counter(row.model for row in side if row.embedding) for side in (a, b)]
    for one, count in models[0].items():
        for other, others in models[1].items():
            if one != other:
                yield (
                    f"identity not checked between {count} sources of A ({one}) and {others} of B ({other}): "
                    "different identity models"
                )
