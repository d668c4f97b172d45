"""Quality measures move the way a person would say."""

import cv2
import numpy as np

from tasks.faces import ANALYZERS, quality
from tests.photos import photo


def test_measures_of_a_portrait() -> None:
    shown = photo("happy")
    (face,) = ANALYZERS.get("mediapipe", {}).analyze(shown)
    assert quality.sharpness(shown.pixels, face) > 200
    assert max(quality.exposure_shares(shown.pixels, face)) < 0.05


def test_second_face() -> None:
    faces = ANALYZERS.get("mediapipe", {}).analyze(photo("six_people"))
    assert 0.9 < quality.second_face_ratio(faces) <= 1
    assert quality.second_face_ratio(faces[:1]) == quality.second_face_ratio(()) == 0


def test_blur_lowers_sharpness() -> None:
    shown = photo("smiling")
    face = ANALYZERS.get("mediapipe", {}).analyze(shown)[0]
    steps = [
        quality.sharpness(np.asarray(cv2.GaussianBlur(shown.pixels, (0, 0), s), np.uint8), face) for s in (0.5, 1, 2, 4)
    ]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 4 * steps[-1]


def test_exposure_counts_only_the_face() -> None:
    shown = photo("happy")
    face = ANALYZERS.get("mediapipe", {}).analyze(shown)[0]
    white, black = np.full_like(shown.pixels, 250), np.full_like(shown.pixels, 20)
    assert quality.exposure_shares(white, face) == (1, 0)
    assert quality.exposure_shares(black, face) == (0, 1)
