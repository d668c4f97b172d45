"""A source that was only saved anew is told from the faintest edit."""

import cv2
import numpy as np
import pytest

from schemas.config import GenerateCut
from schemas.expressions import EXPRESSIONS, Expression
from tasks.editors.warp import warp_face
from tasks.faces import ANALYZERS
from tasks.metrics.unchanged import changed_pixels, local_change
from tests.photos import jpeg, photo, picture

LEAST = GenerateCut().min_local_change


@pytest.mark.parametrize("name", ["astronaut", "hopper", "happy", "smiling"])
def test_the_default_lies_between_reencoding_and_a_faint_edit(name: str) -> None:
    shown = photo(name)
    height, width = shown.pixels.shape[:2]
    large = cv2.resize(shown.pixels, (width * 2, height * 2), interpolation=cv2.INTER_LANCZOS4)
    again = np.asarray(cv2.resize(large, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    for copy in (jpeg(shown, 95).pixels, jpeg(shown, 90).pixels, jpeg(shown, 75).pixels, again):
        assert local_change(shown.pixels, copy) < LEAST
    face = ANALYZERS.get("mediapipe", {}).analyze(shown)[0]
    for target in EXPRESSIONS:
        if target is not Expression.NEUTRAL:
            edit = picture(warp_face(shown.pixels, face, target, 0.3))
            assert local_change(shown.pixels, jpeg(edit, 90).pixels) > LEAST, target


def test_known_values() -> None:
    source = np.full((40, 60, 3), 100, np.uint8)
    assert changed_pixels(source, source + np.uint8(2)) == 0
    assert changed_pixels(source, source + np.uint8(3)) == 1
    assert local_change(source, source) == 0
    assert local_change(source, source - np.uint8(50)) == pytest.approx(50)


def test_the_share_of_pixels_does_not_see_a_reencoded_source() -> None:
    shown = photo("astronaut")
    assert changed_pixels(shown.pixels, jpeg(shown, 90).pixels) > 100 * GenerateCut().min_changed_pixels
