"""Alignment, masks, crops and distances."""

import math

import cv2
import numpy as np
import pytest
from insightface.utils import face_align

from tasks.faces import ANALYZERS, Face, geometry
from tasks.faces.geometry import Square
from tests.photos import photo, turned


@pytest.fixture(scope="module")
def face() -> Face:
    return ANALYZERS.get("mediapipe", {}).analyze(photo("astronaut"))[0]


def test_similarity_is_recovered() -> None:
    angle, scale = 0.4, 1.7
    matrix = scale * np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = np.array([[0.0, 0.0], [3.0, 1.0], [-2.0, 5.0]])
    found = geometry.similarity(points, points @ matrix.T + [10, -4])
    assert found == pytest.approx(np.hstack([matrix, [[10], [-4]]]))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_alignment_equals_insightface(face: Face) -> None:
    pixels = photo("astronaut").pixels
    points = face.landmarks[geometry.FIVE_POINTS, :2]
    ours = geometry.align(pixels, face)
    theirs = face_align.norm_crop(pixels, points)
    assert ours.shape == (112, 112, 3)
    assert ours.dtype == np.uint8
    assert np.abs(ours.astype(int) - theirs.astype(int)).mean() < 0.1


def test_alignment_undoes_a_rotation() -> None:
    analyze = ANALYZERS.get("mediapipe", {}).analyze
    straight, leaning = photo("hopper"), turned(photo("hopper"), 15)
    one, other = (geometry.align(shown.pixels, analyze(shown)[0])[30:100, 20:92] for shown in (straight, leaning))
    assert np.abs(cv2.blur(one, (5, 5)).astype(int) - cv2.blur(other, (5, 5)).astype(int)).mean() < 6


def test_masks(face: Face) -> None:
    shape = photo("astronaut").pixels.shape
    tight, wide = geometry.face_mask(shape, face), geometry.face_mask(shape, face, 0.3)
    assert tight.shape == shape[:2]
    assert tight.dtype == np.bool_
    assert wide[tight].all()
    assert wide.sum() > tight.sum() * 1.2
    nose = face.landmarks[1, :2].astype(int)
    assert tight[nose[1], nose[0]]
    assert not tight[0, 0]
    grown = int(np.flatnonzero(wide.any(axis=1))[0]), int(np.flatnonzero(tight.any(axis=1))[0])
    assert grown[1] - grown[0] == pytest.approx(0.3 * geometry.inter_eye_distance(face), abs=1)


def test_crops_repeat_the_border() -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    cut = geometry.crop(pixels, Square(-1, -1, 4), 4)
    assert cut.shape == (4, 4, 3)
    assert (cut[0, 0] == pixels[0, 0]).all()
    assert (cut[3, 3] == pixels[1, 1]).all()
    assert geometry.crop(pixels, Square(0, 0, 2), 8).shape == (8, 8, 3)


def test_context_box_is_a_square_around_the_box() -> None:
    assert geometry.context_box(np.array([10, 20, 30, 40], np.float32), 2.0) == Square(-15, 0, 80)


def test_inter_eye_distance_corrects_for_yaw(face: Face) -> None:
    seen = float(np.linalg.norm(face.landmarks[468, :2] - face.landmarks[473, :2]))
    assert geometry.inter_eye_distance(face) == pytest.approx(seen / math.cos(math.radians(face.yaw)))


def test_blendshapes(face: Face) -> None:
    assert tuple(name for name in face.blendshapes if name != "_neutral") == geometry.BLENDSHAPES
    sides = {"jawOpen": 0.5, "mouthSmileLeft": 0.25, "mouthSmileRight": 0.75}
    assert geometry.coefficient(sides, "jawOpen") == geometry.coefficient(sides, "mouthSmile") == 0.5
