"""Registration: planted motions are found on real photos whose faces changed, and nothing is made up."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from schemas.expressions import Expression
from schemas.records import Motion
from tasks.editors.warp import warp_face
from tasks.faces import ANALYZERS
from tasks.faces.geometry import face_mask
from tasks.metrics.background import background_rmse, registered_rmse
from tasks.metrics.registration import STILL, is_still, register, resized, undone
from tests.photos import jpeg, photo, picture

NAMES = ("astronaut", "hopper", "happy", "smiling", "six_people")
Pixels = NDArray[np.uint8]


def moved(
    pixels: Pixels, dx: float, dy: float, zoom: float = 1.0, *, stretch: float = 1.0, turn: float = 0.0
) -> Pixels:
    """The picture moved about its centre."""
    height, width = pixels.shape[:2]
    centre, angle = np.array([(width - 1) / 2, (height - 1) / 2]), np.radians(turn)
    linear = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    linear = linear @ np.diag([zoom * stretch**0.5, zoom / stretch**0.5])
    matrix = np.column_stack([linear, centre - linear @ centre + (dx, dy)])
    found = cv2.warpAffine(pixels, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(found, np.uint8)


def edited(name: str, target: Expression = Expression.SURPRISE, intensity: float = 1.0) -> Pixels:
    shown = photo(name)
    return warp_face(shown.pixels, ANALYZERS.get("mediapipe", {}).analyze(shown)[0], target, intensity)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("dx", "dy", "zoom"), [(0, 0, 1), (0.5, -0.3, 1), (4, 3, 1.01), (-20, 0, 0.95), (7, -18, 1.05), (0, 0, 1.02)]
)
def test_a_planted_motion_is_found_though_the_face_changed(name: str, dx: float, dy: float, zoom: float) -> None:
    source = photo(name).pixels
    for intensity in (1.0, 2.0):
        output = jpeg(picture(moved(edited(name, intensity=intensity), dx, dy, zoom)), 90).pixels
        found = register(source, output)
        assert found is not None
        assert np.hypot(found.dx - dx, found.dy - dy) < 0.5
        assert found.zoom == pytest.approx(zoom, abs=0.003)
        assert found.stretch == pytest.approx(1, abs=0.003)
        assert found.turn == pytest.approx(0, abs=0.1)
        assert 0.2 <= found.confidence <= 1


def test_turn_and_stretch_are_told_apart_from_zoom() -> None:
    source = photo("hopper").pixels
    found = register(source, moved(edited("hopper"), 3, -2, 1.03, stretch=1.04, turn=2.5))
    assert found is not None
    assert (found.dx, found.dy) == pytest.approx((3, -2), abs=0.3)
    assert (found.zoom, found.stretch) == pytest.approx((1.03, 1.04), abs=0.003)
    assert found.turn == pytest.approx(2.5, abs=0.1)


def test_light_tone_and_encoding_move_nothing() -> None:
    shown = photo("astronaut")
    still = Motion(dx=0, dy=0, zoom=1, stretch=1, turn=0, confidence=1)
    assert register(shown.pixels, shown.pixels.copy()) == still
    grey = np.repeat(cv2.cvtColor(shown.pixels, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)
    for output in (np.clip(shown.pixels.astype(int) + 30, 0, 255), shown.pixels // 2, grey, jpeg(shown, 50).pixels):
        found = register(shown.pixels, np.asarray(output, np.uint8))
        assert found is not None
        assert is_still(found, shown.pixels.shape)


def test_where_nothing_can_be_told_nothing_is_said() -> None:
    shown = photo("astronaut").pixels
    noise = np.random.default_rng(0).integers(0, 256, shown.shape, np.uint8)
    strangers = [resized(photo(name).pixels, shown.shape) for name in ("hopper", "happy", "six_people")]
    for output in (np.zeros_like(shown), noise, 255 - shown, np.ascontiguousarray(shown[:, ::-1]), *strangers):
        assert register(shown, output) is None
        assert register(output, shown) is None
    for shape in ((16, 16, 3), (1, 1, 3), (2, 900, 3)):
        assert register(np.full(shape, 90, np.uint8), np.full(shape, 90, np.uint8)) is None
    with pytest.raises(ValueError, match="shapes differ"):
        register(shown, shown[:-1])


def test_another_shape_is_stretched_whole_and_what_was_cut_off_shows_as_stretch() -> None:
    source = photo("astronaut").pixels
    height, width = source.shape[:2]
    assert resized(source, source.shape) is source
    squeezed = cv2.resize(source, (width * 3 // 4, height), interpolation=cv2.INTER_AREA)
    found = register(source, resized(np.asarray(squeezed, np.uint8), source.shape))
    assert found is not None
    assert found.stretch == pytest.approx(1, abs=0.003)
    cut = np.ascontiguousarray(source[:, width // 16 : width - width // 16])
    found = register(source, resized(cut, source.shape))
    assert found is not None
    assert found.stretch == pytest.approx(8 / 7, abs=0.01)


@pytest.mark.parametrize("name", ["astronaut", "hopper", "happy"])
def test_the_registered_background_is_free_of_the_motion(name: str) -> None:
    source, output = photo(name).pixels, moved(edited(name), 6, -4, 1.03)
    faces = [ANALYZERS.get("mediapipe", {}).analyze(picture(each))[0] for each in (source, output)]
    masks = [face_mask(source.shape, face, 0.35) for face in faces]
    found = register(source, output)
    assert found is not None
    raw = background_rmse(source, output, masks[0] | masks[1])
    registered = registered_rmse(source, output, masks[0], masks[1], found)
    assert registered < raw / 3
    assert registered < 5
    damaged = np.clip(output.astype(int) + np.random.default_rng(0).integers(-40, 41, output.shape), 0, 255)
    found = register(source, damaged.astype(np.uint8))
    assert found is not None
    assert registered_rmse(source, damaged.astype(np.uint8), masks[0], masks[1], found) > 18, "damage stays"


def test_a_still_picture_is_not_resampled() -> None:
    source = photo("astronaut").pixels
    output = jpeg(photo("astronaut"), 80).pixels
    nothing = np.zeros(source.shape[:2], np.bool_)
    motion = Motion(dx=STILL / 2, dy=0, zoom=1, stretch=1, turn=0, confidence=1)
    assert registered_rmse(source, output, nothing, nothing, motion) == background_rmse(source, output, nothing)
    assert not is_still(motion.model_copy(update={"zoom": 1.001}), source.shape)


def test_what_left_the_picture_is_said() -> None:
    source = photo("astronaut").pixels
    motion = Motion(dx=30, dy=0, zoom=1, stretch=1, turn=0, confidence=1)
    back, inside = undone(moved(source, 30, 0), motion)
    assert not inside[:, -30:].any()
    assert inside[:, :-33].all()
    assert np.abs(back.astype(int) - source)[inside].max() <= 1
