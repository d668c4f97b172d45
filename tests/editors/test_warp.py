"""The embedded editor: what it may touch, that it repeats itself, and that it does something."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from schemas.expressions import EXPRESSIONS, Expression
from schemas.outcomes import FailureKind
from tasks.editors import EDITORS, EditRequest
from tasks.editors.warp import WarpEditor, edit_mask, warp_face
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, Face
from tasks.sources.samples import SamplePool
from tests.doors import SHUT

NAMES = ("astronaut", "officer", "studio-1", "studio-3", "studio-4", "group-a-2", "group-b-1")
INTENSITIES = (0.0, 0.02, 0.25, 0.5, 0.75, 1.0, 1.3)


@cache
def photo(name: str) -> tuple[Picture, Face]:
    samples = SamplePool(SamplePool.Params.model_validate({}))
    source = next(source for source in samples.list() if source.key.source_id == name)
    picture = Picture(f"warp {name}", samples.load(source).pixels)
    return picture, ANALYZERS.get("mediapipe", {}).analyze(picture)[0]


def resized(name: str, side: int) -> tuple[NDArray[np.uint8], Face]:
    picture, face = photo(name)
    scale = side / picture.pixels.shape[1]
    scaled = replace(face, landmarks=face.landmarks * np.float32(scale))
    return cv2.resize(picture.pixels, None, fx=scale, fy=scale), scaled


def moved(face: Face, right: float, down: float) -> Face:
    return replace(face, landmarks=face.landmarks + np.array([right, down, 0], np.float32))


def requests(picture: Picture, targets: Sequence[Expression]) -> list[EditRequest]:
    return [EditRequest(picture, Expression.NEUTRAL, target, "", seed) for seed, target in enumerate(targets)]


def change(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> float:
    return float(np.abs(before.astype(float) - after).mean())


@pytest.mark.parametrize("name", NAMES)
def test_nothing_changes_outside_the_mask(name: str) -> None:
    picture, face = photo(name)
    outside = ~edit_mask(picture.pixels.shape, face)
    assert 0.05 < outside.mean() < 0.95
    for target, edited in zip(
        EXPRESSIONS, EDITORS.get("warp", {}).edit(requests(picture, EXPRESSIONS), SHUT), strict=True
    ):
        assert isinstance(edited, np.ndarray), target
        assert edited.shape == picture.pixels.shape
        assert edited.dtype == np.uint8
        assert np.array_equal(edited[outside], picture.pixels[outside]), target


@pytest.mark.parametrize("target", [target for target in EXPRESSIONS if target is not Expression.NEUTRAL])
def test_every_expression_changes_a_neutral_face_and_differs_from_the_others(target: Expression) -> None:
    picture, face = photo("officer")
    edited = warp_face(picture.pixels, face, target)
    inside = edit_mask(picture.pixels.shape, face)
    assert change(picture.pixels[inside], edited[inside]) > 2
    for other in EXPRESSIONS:
        if other is not target:
            assert change(warp_face(picture.pixels, face, other)[inside], edited[inside]) > 1


@pytest.mark.parametrize("target", EXPRESSIONS)
def test_the_change_grows_with_the_intensity_from_nothing(target: Expression) -> None:
    for name in ("astronaut", "officer", "studio-1"):
        picture, face = photo(name)
        inside = edit_mask(picture.pixels.shape, face)
        changes = [
            change(picture.pixels[inside], warp_face(picture.pixels, face, target, intensity)[inside])
            for intensity in INTENSITIES
        ]
        assert changes[0] == 0
        assert changes[1] < 1.6
        assert changes == sorted(changes)


def test_the_mouth_shape_reaches_its_target() -> None:
    picture, _ = photo("officer")
    analyzer = ANALYZERS.get("mediapipe", {})

    def blendshapes(target: Expression) -> dict[str, float]:
        (edited,) = WarpEditor(WarpEditor.Params()).edit(requests(picture, [target]), SHUT)
        assert isinstance(edited, np.ndarray)
        return analyzer.analyze(Picture(f"warp officer {target}", edited))[0].blendshapes

    assert blendshapes(Expression.HAPPY)["mouthSmileLeft"] > 0.4
    surprised, angry = blendshapes(Expression.SURPRISE), blendshapes(Expression.ANGER)
    assert surprised["jawOpen"] > 0.2 > angry["jawOpen"]
    assert surprised["browOuterUpLeft"] > angry["browOuterUpLeft"]


def test_a_smile_is_taken_back() -> None:
    picture, face = photo("astronaut")
    edited = warp_face(picture.pixels, face, Expression.NEUTRAL)
    after = ANALYZERS.get("mediapipe", {}).analyze(Picture("warp astronaut neutral", edited))[0]
    assert after.blendshapes["mouthSmileLeft"] < 0.3 < face.blendshapes["mouthSmileLeft"]


@pytest.mark.parametrize("side", [256, 512, 1024])
def test_sizes(side: int) -> None:
    pixels, face = resized("studio-1", side)
    outside = ~edit_mask(pixels.shape, face)
    for target in EXPRESSIONS:
        edited = warp_face(pixels, face, target)
        assert edited.shape == pixels.shape
        assert np.array_equal(edited[outside], pixels[outside])


def test_threads_and_repeats_give_equal_bytes() -> None:
    picture, face = photo("studio-3")

    def edited(target: Expression) -> bytes:
        return warp_face(picture.pixels, face, target).tobytes()

    once = [edited(target) for target in EXPRESSIONS]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(edited, EXPRESSIONS * 3)) == once * 3


def test_the_seed_and_the_company_do_not_matter() -> None:
    picture, _ = photo("astronaut")
    editor = WarpEditor(WarpEditor.Params())
    together = editor.edit(requests(picture, EXPRESSIONS), SHUT)
    (alone,) = editor.edit([replace(requests(picture, [Expression.FEAR])[0], seed=99)], SHUT)
    same = together[EXPRESSIONS.index(Expression.FEAR)]
    assert isinstance(same, np.ndarray)
    assert isinstance(alone, np.ndarray)
    assert np.array_equal(same, alone)


@pytest.mark.parametrize(("right", "down"), [(-1, 0), (1, 0), (0, -1), (0, 1), (0.7, 0.7), (-9, 0)])
def test_a_face_across_the_border_does_no_harm(right: float, down: float) -> None:
    picture, face = photo("studio-1")
    height, width = picture.pixels.shape[:2]
    across = moved(face, right * width / 2, down * height / 2)
    outside = ~edit_mask(picture.pixels.shape, across)
    for target in EXPRESSIONS:
        edited = warp_face(picture.pixels, across, target)
        assert np.array_equal(edited[outside], picture.pixels[outside])


def test_any_sliver_of_a_face_does_no_harm() -> None:
    picture, face = photo("officer")
    pixels = np.ascontiguousarray(picture.pixels[::2, ::2])
    half = replace(face, landmarks=face.landmarks * np.float32(0.5))
    for right in range(-240, 241, 24):
        for down in (-200, -160, 0, 90, 180):
            across = moved(half, right, down)
            outside = ~edit_mask(pixels.shape, across)
            edited = warp_face(pixels, across, Expression.SURPRISE if right % 48 else Expression.DISGUST)
            assert np.array_equal(edited[outside], pixels[outside])


def test_the_source_is_left_alone() -> None:
    picture, face = photo("officer")
    before = picture.pixels.copy()
    pixels = picture.pixels.copy()
    pixels.flags.writeable = False
    edited = warp_face(pixels, face, Expression.HAPPY)
    assert edited.flags.writeable
    assert np.array_equal(pixels, before)


def test_shading_can_be_left_out() -> None:
    picture, face = photo("officer")
    inside = edit_mask(picture.pixels.shape, face)
    plain = warp_face(picture.pixels, face, Expression.ANGER, shading=False)
    shaded = warp_face(picture.pixels, face, Expression.ANGER)
    assert plain[inside].mean() > shaded[inside].mean()


def test_no_face_fails_each_request_by_name() -> None:
    empty = Picture("warp grey", np.full((300, 300, 3), 128, np.uint8))
    results = WarpEditor(WarpEditor.Params()).edit(requests(empty, EXPRESSIONS[:2]), SHUT)
    assert [type(result) for result in results] == [ItemFailed, ItemFailed]
    assert all(isinstance(result, ItemFailed) and result.kind is FailureKind.NO_FACE for result in results)
    assert WarpEditor(WarpEditor.Params()).edit([], SHUT) == []


@pytest.mark.parametrize("wrong", [{"intensity": -0.1}, {"intensity": 3.1}, {"strength": 1}])
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        WarpEditor.Params.model_validate(wrong)
