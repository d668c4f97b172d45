"""The rules, each with a planted case; what cannot be checked is said."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from schemas.outcomes import Reason
from schemas.portraits import Portrait
from schemas.records import Key
from schemas.screening import ScreenCut
from tasks.leakage.compare import Guard, compare

WIDTH = 512  # so that two drawn vectors are never alike


def portrait(name: str, pool: str = "p", **fields: Any) -> Portrait:
    """A source whose hashes and vector are like nobody's, unless `fields` says otherwise."""
    random = np.random.default_rng([ord(letter) for letter in f"{pool}/{name}"])
    hashes = [f"{int(value):016x}" for value in random.integers(0, 2**63, 4)]
    known = {
        "key": Key(pool, name),
        "pixel_sha256": f"pixels of {pool}/{name}",
        "phash": hashes[0],
        "mirror_phash": hashes[1],
        "face_phash": hashes[2],
        "face_mirror_phash": hashes[3],
        "embedding": vector(random.standard_normal(WIDTH)),
        "model": "m",
    }
    return Portrait(**known | fields)


def vector(values: Any) -> bytes:
    unit = np.asarray(values, np.float64) / np.linalg.norm(values)
    return unit.astype("<f4").tobytes()


def close_to(other: Portrait, cosine: float) -> bytes:
    """A vector at that cosine to another's."""
    base = np.frombuffer(other.embedding or b"", "<f4").astype(np.float64)
    aside = np.roll(base, 1) - (np.roll(base, 1) @ base) * base
    return vector(cosine * base + np.sqrt(1 - cosine**2) * aside / np.linalg.norm(aside))


def flipped(digits: str, bits: int) -> str:
    """A hash with so many of its bits changed."""
    return f"{int(digits, 16) ^ ((1 << bits) - 1):016x}"


A = portrait("a")
PLANTED = {
    "clip": (
        portrait("a", clip="dfew/00001"),
        portrait("b", clip="dfew/00001"),
        Reason.LEAK_CLIP,
        None,
        "clip dfew/00001 is also that of p/a",
    ),
    "pixels": (A, portrait("b", pixel_sha256=A.pixel_sha256), Reason.LEAK_DUPLICATE, 0, "same pixels as p/a"),
    "picture": (
        A,
        portrait("b", phash=flipped(A.phash, 6)),
        Reason.LEAK_DUPLICATE,
        6,
        "picture 6 of 64 hash bits from p/a, needs more than 6",
    ),
    "picture mirrored": (
        A,
        portrait("b", phash=flipped(A.mirror_phash, 2)),
        Reason.LEAK_DUPLICATE,
        2,
        "picture mirrored, 2 of 64 hash bits from p/a, needs more than 6",
    ),
    "face": (
        A,
        portrait("b", face_phash=flipped(A.face_phash, 4), embedding=close_to(A, 0.31)),
        Reason.LEAK_DUPLICATE,
        4,
        "face 4 of 64 hash bits from p/a, needs more than 6",
    ),
    "face mirrored": (
        A,
        portrait("b", face_phash=A.face_mirror_phash, embedding=None),
        Reason.LEAK_DUPLICATE,
        0,
        "face mirrored, 0 of 64 hash bits from p/a, needs more than 6",
    ),
    "person": (
        portrait("a", person="p/anna"),
        portrait("b", person="p/anna"),
        Reason.LEAK_IDENTITY,
        None,
        "the pool calls it p/anna, as it does p/a",
    ),
    "identity": (
        A,
        portrait("b", embedding=close_to(A, 0.46)),
        Reason.LEAK_IDENTITY,
        pytest.approx(0.46, abs=1e-5),
        "cosine 0.460 to p/a, needs less than 0.45",
    ),
}


@pytest.mark.parametrize("rule", PLANTED)
def test_each_rule_finds_its_planted_case_and_says_the_number(rule: str) -> None:
    a, b, reason, number, evidence = PLANTED[rule]
    strangers = [portrait(f"stranger {place}") for place in range(20)]
    found = compare([*strangers, a], [*(portrait(f"other {place}") for place in range(20)), b])
    (leak,) = found.leaks
    assert (leak.reason, leak.number, leak.evidence) == (reason, number, evidence)
    assert rule.startswith(leak.rule)
    assert (leak.a, leak.b, leak.others) == (a.key, b.key, 0)
    assert found.must_go == (b.key,)


@pytest.mark.parametrize("rule", PLANTED)
def test_the_sides_may_change_places(rule: str) -> None:
    a, b, *_ = PLANTED[rule]
    there, back = compare([a], [b]).leaks, compare([b], [a]).leaks
    assert [(leak.rule, leak.number) for leak in there] == [(leak.rule, leak.number) for leak in back]


NEAR_MISSES = {
    "clip of another pool": (portrait("a", clip="dfew/00001"), portrait("b", clip="sfew/00001")),
    "no clip on either side": (A, portrait("b")),
    "picture": (A, portrait("b", phash=flipped(A.phash, 8))),
    "alike faces of two people": (A, portrait("b", face_phash=A.face_phash, embedding=close_to(A, 0.29))),
    "identity": (A, portrait("b", embedding=close_to(A, 0.44))),
}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_what_is_just_beyond_a_limit_stays(case: str) -> None:
    a, b = NEAR_MISSES[case]
    found = compare([a], [b])
    assert (found.leaks, found.unchecked) == ((), ())


def test_limits_are_those_of_the_cut() -> None:
    b = portrait("b", phash=flipped(A.phash, 8), embedding=close_to(A, 0.6))
    assert [leak.rule for leak in compare([A], [b], ScreenCut(leak_duplicate_bits=8)).leaks] == ["picture", "identity"]
    assert compare([A], [b], ScreenCut(leak_identity=0.61)).leaks == ()


def test_the_nearest_of_several_is_named_and_the_others_are_counted() -> None:
    near = [portrait(f"a{place}", embedding=close_to(A, cosine)) for place, cosine in enumerate((0.7, 0.9, 0.8))]
    (leak,) = compare([*near, portrait("far")], [A]).leaks
    assert (str(leak.a), leak.others) == ("p/a1", 2)


def test_vectors_of_two_models_are_not_compared_and_that_is_said() -> None:
    b = A.model_copy(update={"key": Key("p", "b"), "model": "n"})
    found = compare([A, portrait("c")], [b])
    assert "identity" not in [leak.rule for leak in found.leaks]
    assert found.unchecked == (
        "identity not checked between 2 sources of A (m) and 1 of B (n): different identity models",
    )


def test_what_is_missing_is_counted_by_cause() -> None:
    blind = {"embedding": None, "model": "", "lacking": "no face found"}
    bare = {"phash": "", "mirror_phash": "", "face_phash": "", "face_mirror_phash": ""} | blind
    side = [portrait("a", **blind), portrait("b", **bare | {"lacking": "no picture"}), portrait("c")]
    assert compare(side, [portrait("d")]).unchecked == (
        "near duplicates not checked for 1 of 3 sources of A: no picture 1",
        "identity not checked for 2 of 3 sources of A: no face found 1, no picture 1",
    )


def test_exact_pixels_and_clips_are_found_without_pictures() -> None:
    bare = {"phash": "", "mirror_phash": "", "face_phash": "", "face_mirror_phash": "", "embedding": None}
    b = portrait("b", pixel_sha256=A.pixel_sha256, **bare)
    assert [leak.rule for leak in compare([A], [b]).leaks] == ["pixels"]


def test_the_digest_follows_what_is_known_and_not_the_order() -> None:
    rows = [portrait("a"), portrait("b"), portrait("c", clip="p/1")]
    digest = Guard(rows, ScreenCut()).digest
    assert Guard(rows[::-1], ScreenCut()).digest == digest
    changed = {"clip": "p/2", "phash": flipped(A.phash, 1), "embedding": close_to(A, 0.9), "model": "n"}
    for field, value in changed.items():
        assert Guard([rows[0].model_copy(update={field: value}), *rows[1:]], ScreenCut()).digest != digest


def test_many_are_compared_in_flat_memory_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a = [portrait(f"{place}", "a") for place in range(300)]
    b = [portrait(f"{place}", "b", embedding=close_to(a[place % 300], 0.2 + place % 5 / 10)) for place in range(3000)]
    tracemalloc.start()
    try:
        guard = Guard(a, ScreenCut())
        whole = list(guard.leaks(b))
        assert tracemalloc.get_traced_memory()[1] < 400 * 2**20
    finally:
        tracemalloc.stop()
    monkeypatch.setattr("tasks.leakage.compare._CELLS", 7 * len(a))
    assert list(guard.leaks(b)) == whole
    assert sum(bool(leaks) for leaks in whole) >= 1200
    assert list(guard.leaks(b[:50])) == whole[:50]
