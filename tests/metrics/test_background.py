"""Background error: what happens inside the mask never counts."""

import math

import numpy as np
import pytest

from tasks.faces import ANALYZERS
from tasks.faces.geometry import face_mask
from tasks.metrics.background import background_rmse
from tests.photos import photo


def test_a_change_inside_the_mask_changes_nothing() -> None:
    shown = photo("astronaut")
    mask = face_mask(shown.pixels.shape, ANALYZERS.get("mediapipe", {}).analyze(shown)[0], 0.1)
    noise = np.random.default_rng(0).integers(-9, 10, shown.pixels.shape)
    output = np.clip(shown.pixels.astype(int) + noise, 0, 255).astype(np.uint8)
    before = background_rmse(shown.pixels, output, mask)
    output[mask] = 255 - output[mask]
    assert background_rmse(shown.pixels, output, mask) == before > 1
    assert background_rmse(shown.pixels, np.where(mask[..., None], output, shown.pixels), mask) == 0


def test_known_values() -> None:
    source, mask = np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), np.bool_)
    assert background_rmse(source, source + np.uint8(5), mask) == 5
    assert background_rmse(source, source + np.uint8(255), mask) == 255  # no wrap-around of 8-bit numbers
    assert math.isnan(background_rmse(source, source, ~mask))


def test_shapes_must_agree() -> None:
    source = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(ValueError, match="shapes differ"):
        background_rmse(source, np.zeros((4, 5, 3), np.uint8), np.zeros((4, 4), np.bool_))
