"""Descriptions from measurements: true of the pictures at hand, opposite when swapped, never a class name."""

import re
from dataclasses import replace

import cv2
import numpy as np
import pytest

from schemas.expressions import EXPRESSIONS
from schemas.outcomes import FailureKind
from tasks.describers import DESCRIBERS, blendshapes
from tasks.describers.blendshapes import BlendshapeDescriber, departures, measure, movements
from tasks.describers.phrases import AT_REST, MOVEMENTS, MUST_STAY, ON_SIDE
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, Face
from tests import nasty
from tests.doors import SHUT

DESCRIBER = BlendshapeDescriber(BlendshapeDescriber.Params())
STUDIO = {"surprise": "0-f1-su-ph", "happy": "0-f15-hao-ph", "anger": "15-f13-anc-ph"}


def studio(name: str) -> Picture:
    return Picture(f"describer {name}", np.asarray(nasty.photo("feat", f"tests/data/{STUDIO[name]}.jpg")))


def analyzed(picture: Picture) -> Face:
    return ANALYZERS.get("mediapipe", {}).analyze(picture)[0]


@pytest.fixture
def face() -> Face:
    return analyzed(studio("happy"))


def moved(face: Face, offsets: dict[int, tuple[float, float]]) -> Face:
    """The face with some landmarks moved by shares of the distance between the eyes."""
    landmarks = face.landmarks.copy()
    unit = np.linalg.norm(landmarks[[33, 133], :2].mean(axis=0) - landmarks[[263, 362], :2].mean(axis=0))
    for row, offset in offsets.items():
        landmarks[row, :2] += np.float32(unit) * np.array(offset, np.float32)
    return replace(face, landmarks=landmarks)


def told(source: Face, truth: Face, monkeypatch: pytest.MonkeyPatch) -> str:
    faces = iter([source, truth])
    monkeypatch.setattr(blendshapes, "_face", lambda _: next(faces))
    picture = Picture("unused", np.zeros((1, 1, 3), np.uint8))
    return DESCRIBER.instruct(picture, picture, SHUT)


def test_it_is_registered_and_its_identity_loads_no_model() -> None:
    assert DESCRIBERS.adapter_class("blendshapes") is BlendshapeDescriber
    assert set(BlendshapeDescriber.weights) == {"yunet", "face_landmarker"}


def test_captions_say_what_can_be_seen() -> None:
    assert "mouth is wide open" in DESCRIBER.caption(studio("surprise"), SHUT)
    assert "lip corners are pulled far up" in DESCRIBER.caption(studio("happy"), SHUT)
    assert "brows are lowered" in DESCRIBER.caption(studio("anger"), SHUT)


def test_an_instruction_says_what_moves_and_what_stays() -> None:
    text = DESCRIBER.instruct(studio("anger"), studio("surprise"), SHUT)
    assert "Let the jaw drop wide open" in text
    assert re.search(r"[Rr]aise the brows", text)
    assert text.endswith(MUST_STAY)


@pytest.mark.parametrize(("one", "other"), [("happy", "anger"), ("happy", "surprise"), ("anger", "surprise")])
def test_swapped_pictures_swap_the_words(one: str, other: str) -> None:
    there = movements(analyzed(studio(one)), analyzed(studio(other)))
    back = movements(analyzed(studio(other)), analyzed(studio(one)))
    assert there
    assert {(m.movement.measure, m.side, -m.steps) for m in there} == {
        (m.movement.measure, m.side, m.steps) for m in back
    }
    assert DESCRIBER.instruct(studio(one), studio(other), SHUT) != DESCRIBER.instruct(studio(other), studio(one), SHUT)


def test_the_same_face_again_is_no_instruction() -> None:
    picture = studio("happy")
    again = cv2.imdecode(cv2.imencode(".jpg", picture.pixels, [cv2.IMWRITE_JPEG_QUALITY, 80])[1], cv2.IMREAD_COLOR)
    smaller = cv2.resize(picture.pixels, None, fx=0.8, fy=0.8, interpolation=cv2.INTER_AREA)
    for number, pixels in enumerate((picture.pixels, again, smaller)):
        assert DESCRIBER.instruct(picture, Picture(f"describer again {number}", pixels), SHUT) == ""


def test_no_face_fails() -> None:
    blank = Picture("describer blank", np.full((256, 256, 3), 127, np.uint8))
    for describe in (lambda: DESCRIBER.caption(blank, SHUT), lambda: DESCRIBER.instruct(studio("happy"), blank, SHUT)):
        with pytest.raises(ItemFailed) as caught:
            describe()
        assert caught.value.kind is FailureKind.NO_FACE


def test_strength_follows_the_distance(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (61, 291)
    for rise, phrase in ((0.05, "Lift the lip corners slightly"), (0.1, "Raise the lip corners"), (0.2, "far up")):
        assert phrase in told(face, moved(face, dict.fromkeys(rows, (0.0, -rise))), monkeypatch)


def test_one_side_is_named_as_the_picture_shows_it(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    left = face.landmarks[61, 0] < face.landmarks[291, 0]
    assert left
    text = told(face, moved(face, {61: (0.0, -0.12)}), monkeypatch)
    assert "lip corner" + ON_SIDE["left"] in text
    assert ON_SIDE["right"] not in text
    turned = replace(face, yaw=30.0)
    assert "side of the picture" not in told(turned, replace(moved(face, {61: (0.0, -0.12)}), yaw=30.0), monkeypatch)


def test_closing_is_said_where_it_ends_closed(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    landmarks = face.landmarks.copy()
    landmarks[13] = landmarks[14] = face.landmarks[[13, 14]].mean(axis=0)
    closed = replace(face, landmarks=landmarks)
    assert "Close the mouth" in told(face, closed, monkeypatch)
    assert "Close the mouth" not in told(closed, face, monkeypatch)


def test_a_tilted_head_measures_like_a_straight_one(face: Face) -> None:
    turn = cv2.Rodrigues(np.array([0.3, -0.4, 0.5]))[0]
    turned = replace(face, landmarks=(face.landmarks @ turn.T * 1.7 + 40).astype(np.float32))
    for name, value in measure(face).items():
        np.testing.assert_allclose(measure(turned)[name], value, atol=1e-4, err_msg=name)


def test_a_face_at_rest_says_so(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = {movement.measure: np.full(2, movement.rest) for movement in MOVEMENTS}
    monkeypatch.setattr(blendshapes, "measure", lambda _: rest)
    assert departures(face) == []
    assert DESCRIBER.caption(studio("happy"), SHUT) == AT_REST


def test_no_phrase_names_a_class() -> None:
    words = {str(expression) for expression in EXPRESSIONS} | {"smil", "frown", "angr", "disgust", "fear", "afraid"}
    texts = [AT_REST, MUST_STAY]
    for movement in MOVEMENTS:
        texts += [*movement.more, *movement.less, *movement.is_more, *movement.is_less, movement.close]
    for text in texts:
        assert not any(word in text.lower() for word in words), text


def test_every_measure_has_its_table_entry_and_opposites_differ(face: Face) -> None:
    assert {movement.measure for movement in MOVEMENTS} == set(measure(face))
    for movement in MOVEMENTS:
        assert len({*movement.more, *movement.less}) == 6
