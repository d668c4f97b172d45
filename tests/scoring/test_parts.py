"""The rule parts of outputs of real photos: what is in the mask, whose face it is, and what has no value."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from schemas.records import Key
from schemas.score_config import ScoreCut, ScoredEditor, ScoreMeasure
from schemas.score_steps import Made
from schemas.scoring import Granularity, PartStatus, RuleParts, State
from schemas.sections import Adapter as Spec
from tasks.distances import DISTANCES
from tasks.engine.images import ImageStore, Picture
from tasks.engine.registry import Adapter
from tasks.engine.stage import Context
from tasks.engine.store import Store
from tasks.faces import ANALYZERS
from tasks.faces.geometry import face_mask
from tasks.metrics.identity import matched
from tasks.metrics.score import scored
from tasks.scoring.parts import ScoreParts
from tasks.scoring.steps import Entry
from tests.doors import SHUT
from tests.photos import photo

Pixels = NDArray[np.uint8]


class Difference(Adapter):
    """The mean difference of two crops."""

    def between(self, one: Pixels, other: Pixels) -> float:
        return float(np.abs(one.astype(float) - other.astype(float)).mean() / 255)


class Bench:
    """Measures outputs of one triplet, whose ground truth is a later frame or photo."""

    def __init__(self, folder: Path, source: Pixels, truth: Pixels) -> None:
        self.images = ImageStore(Store(folder))
        self.source, self.truth = self.images.put(source), self.images.put(truth)
        params = ScoreMeasure(distance=Spec(name="difference"))
        entry = Entry(ScoredEditor(called="copy", adapter=Spec(name="copy")), Granularity.SIMPLE)
        self.step = ScoreParts(entry, params)

    def measure(self, output: Pixels) -> RuleParts:
        made = Made(
            key=Key("p", "1", "happy", "e"),
            source_image=self.source.digest,
            truth_image=self.truth.digest,
            image=self.images.put(output).digest,
            instruction="",
            seed=0,
            raw_width=1,
            raw_height=1,
        )
        ((_, parts),) = self.step.measure([made], Context(0, self.images, SHUT, print))
        assert isinstance(parts, RuleParts)
        return parts


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    DISTANCES.add("difference", Difference)
    source = photo("astronaut").pixels
    truth = source.copy()
    truth[150:180, 200:250] = 90  # somewhere in the face
    return Bench(tmp_path, source, truth)


def test_a_copy_is_the_same_person_on_the_same_background_without_a_change(bench: Bench) -> None:
    parts = bench.measure(bench.source.pixels.copy())
    assert parts.identity == pytest.approx(1)
    assert (parts.background_rmse, parts.background_own_rmse) == (0, 0)
    assert (parts.registered_rmse, parts.registered_own_rmse) == (0, 0)
    assert (parts.lpips_output, parts.au_output) == (0, 0)
    assert parts.lpips_truth is not None
    assert parts.lpips_truth > 0
    assert (parts.au_direction, parts.faces) == (None, 1)


def test_what_changes_inside_the_triplets_mask_moves_the_background_by_nothing(bench: Bench) -> None:
    noise = np.random.default_rng(0).integers(-9, 10, bench.source.pixels.shape)
    output = np.clip(bench.source.pixels.astype(int) + noise, 0, 255).astype(np.uint8)
    before = bench.measure(output)
    face = ANALYZERS.get("mediapipe", {}).analyze(bench.source)[0]
    inside = face_mask(output.shape, face, 0.2)
    output[inside] = bench.truth.pixels[inside]
    after = bench.measure(output)
    assert before.background_rmse == after.background_rmse
    assert before.background_rmse is not None
    assert before.background_rmse > 1
    assert before.lpips_output != after.lpips_output


def test_an_output_without_a_face_has_a_status_and_a_gain(bench: Bench) -> None:
    empty = np.random.default_rng(1).integers(0, 255, bench.source.pixels.shape, dtype=np.uint8)
    parts = bench.measure(empty)
    assert (parts.identity, parts.identity_status, parts.faces) == (None, PartStatus.NO_FACE, 0)
    assert (parts.au_output, parts.au_direction, parts.motion, parts.registered_rmse) == (None, None, None, None)
    assert parts.background_rmse is not None
    assert parts.background_rmse > 50
    assert parts.lpips_output is not None


def test_a_source_or_truth_without_a_face_is_the_triplets_fault(tmp_path: Path, bench: Bench) -> None:
    empty = np.random.default_rng(1).integers(0, 255, bench.source.pixels.shape, dtype=np.uint8)
    sourceless = Bench(tmp_path / "a", empty, bench.truth.pixels).measure(bench.source.pixels)
    assert (sourceless.identity_status, sourceless.background_status) == (PartStatus.NO_REFERENCE,) * 2
    assert (sourceless.lpips_output, sourceless.au_truth) == (None, None)
    truthless = Bench(tmp_path / "b", bench.source.pixels, empty).measure(bench.source.pixels)
    assert (truthless.identity_status, truthless.background_status) == (PartStatus.OK, PartStatus.NO_REFERENCE)
    assert (truthless.au_truth, truthless.background_rmse) == (None, None)


def test_among_several_faces_the_one_in_the_sources_place_counts(tmp_path: Path) -> None:
    DISTANCES.add("difference", Difference)
    people = photo("six_people")
    faces = ANALYZERS.get("mediapipe", {}).analyze(people)
    assert len(faces) > 3
    small = faces[-1]
    alone = people.pixels.copy()
    for face in faces[:-1]:
        left, top, wide, high = (max(0, int(value)) for value in face.box)
        alone[top : top + high, left : left + wide] = 127
    source = Picture("alone", alone)
    assert matched(small.box, [face.box for face in faces]) == len(faces) - 1
    assert len(ANALYZERS.get("mediapipe", {}).analyze(source)) == 1
    parts = Bench(tmp_path, alone, alone).measure(people.pixels)
    assert parts.faces == len(faces)
    assert parts.identity is not None
    assert parts.identity > 0.9


def test_the_nearest_face_counts_where_none_overlaps() -> None:
    def box(*values: float) -> NDArray[np.float32]:
        return np.array(values, np.float32)

    boxes = [box(300, 300, 90, 90), box(100, 0, 40, 40), box(0, 100, 30, 30)]
    assert matched(box(0, 0, 50, 50), boxes) == 2
    assert matched(box(90, 0, 50, 50), boxes) == 1
    assert matched(box(0, 0, 50, 50), []) is None


def test_a_ground_truth_equal_to_its_source_is_nobodys_failure(tmp_path: Path) -> None:
    DISTANCES.add("difference", Difference)
    source = photo("astronaut").pixels
    changed = source.copy()
    changed[150:180, 200:250] = 90
    parts = Bench(tmp_path, source, source).measure(changed)
    assert (parts.lpips_truth, parts.au_truth) == (0, 0)
    assert parts.lpips_output is not None
    assert parts.lpips_output > 0
    for gain in ("lpips", "au"):
        one = scored(parts, (), ScoreCut.model_validate({"gain": gain, "min_lpips": 0, "min_au": 0}), partial=True)
        assert (one.state, one.reason, one.score) == (State.UNSCORED, "reg: degenerate", None)
        assert (one.lpips_ratio, one.au_ratio) == (None, None)
