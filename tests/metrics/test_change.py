"""The change test: re-encoding is no change, another expression is one."""

import pytest

from schemas.config import VerifyCut
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS
from tasks.metrics.change import expression_change
from tests.photos import frame, jpeg, photo, picture, turned

CHANGED = VerifyCut().min_change


def shapes(shown: Picture) -> dict[str, float]:
    return ANALYZERS.get("mediapipe", {}).analyze(shown)[0].blendshapes


@pytest.mark.parametrize("name", ["astronaut", "hopper", "happy", "angry", "smiling"])
def test_small_disturbances_are_no_change(name: str) -> None:
    shown = photo(name)
    for other in (shown, jpeg(shown, 80), turned(shown, 2), picture(shown.pixels[2:, 3:])):
        assert expression_change(shapes(shown), shapes(other)) < CHANGED


def test_another_expression_is_a_change() -> None:
    assert expression_change(shapes(frame(0)), shapes(frame(5))) < CHANGED
    assert expression_change(shapes(frame(0)), shapes(frame(30))) > 4 * CHANGED
    assert expression_change(shapes(photo("surprised")), shapes(photo("happy"))) > 4 * CHANGED


def test_gaze_is_no_expression() -> None:
    before = {"eyeLookUpLeft": 0.0, "mouthSmileLeft": 0.0}
    assert expression_change(before, before | {"eyeLookUpLeft": 1.0}) == 0
    assert expression_change(before, before | {"mouthSmileLeft": 1.0}) == 1


def test_names_must_agree() -> None:
    with pytest.raises(ValueError, match="different models"):
        expression_change({"jawOpen": 0.0}, {})
