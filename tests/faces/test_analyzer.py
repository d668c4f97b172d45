"""Faces in real photos: how many, where, turned which way; and the same from any thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tasks.faces import ANALYZERS, Face, analyzer
from tasks.faces.geometry import BLENDSHAPES
from tests.photos import photo, picture, turned


def faces_of(name: str, **params: float) -> tuple[Face, ...]:
    return ANALYZERS.get("mediapipe", params).analyze(photo(name))


@pytest.mark.parametrize(
    ("name", "count"), [("astronaut", 1), ("hopper", 1), ("six_people", 6), ("five_people", 5), ("landscape", 0)]
)
def test_counts(name: str, count: int) -> None:
    assert len(faces_of(name)) == count


def test_a_face_is_measured_in_picture_pixels() -> None:
    (face,) = faces_of("astronaut")
    assert face.landmarks.shape == (478, 3)
    assert face.landmarks.dtype == np.float32
    assert face.box.shape == (4,)
    assert face.box.dtype == np.float32
    x, y, width, height = face.box
    nose = face.landmarks[1]
    assert x < nose[0] < x + width
    assert y < nose[1] < y + height
    assert set(face.blendshapes) == {"_neutral", *BLENDSHAPES}
    assert all(0 <= value <= 1 for value in face.blendshapes.values())
    assert not face.landmarks.flags.writeable
    assert not face.box.flags.writeable


def test_the_largest_comes_first() -> None:
    areas = [float(face.box[2] * face.box[3]) for face in faces_of("six_people")]
    assert areas == sorted(areas, reverse=True)


def test_every_face_of_a_group_is_its_own() -> None:
    noses = np.array([face.landmarks[1, :2] for face in faces_of("six_people")])
    apart = np.linalg.norm(noses[:, None] - noses[None], axis=2) + np.eye(len(noses)) * 1e9
    assert apart.min() > 40


def test_limits() -> None:
    assert len(faces_of("six_people", max_faces=2)) == 2
    assert faces_of("six_people", min_size=0.2) == ()


def test_signs_of_the_pose() -> None:
    shown = photo("turned_left")
    analyze = ANALYZERS.get("mediapipe", {}).analyze
    (left,) = analyze(shown)
    (right,) = analyze(picture(shown.pixels[:, ::-1]))
    assert -50 < left.yaw < -30
    assert 30 < right.yaw < 50
    (hopper,) = faces_of("hopper")
    (leaning,) = analyze(turned(photo("hopper"), 20))
    assert leaning.roll - hopper.roll == pytest.approx(20, abs=3)
    assert faces_of("surprised")[0].pitch > faces_of("happy")[0].pitch  # she looks up


def test_a_face_that_fills_the_picture_is_found() -> None:
    shown = photo("smiling")
    analyze = ANALYZERS.get("mediapipe", {}).analyze
    (face,) = analyze(shown)
    x, y, width, height = (int(value) for value in face.box)
    assert len(analyze(picture(shown.pixels[y : y + height, x : x + width]))) == 1


def test_the_same_from_one_and_four_threads() -> None:
    names = ["astronaut", "hopper", "five_people", "surprised", "happy", "angry"] * 2

    def flat(name: str) -> bytes:
        return b"".join(
            face.box.tobytes() + face.landmarks.tobytes() + repr((face.blendshapes, face.yaw, face.score)).encode()
            for face in faces_of(name)
        )

    analyzer.forget()
    alone = [flat(name) for name in names]
    analyzer.forget()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(flat, names)) == alone


def test_a_picture_is_analysed_once() -> None:
    assert faces_of("hopper")[0] is faces_of("hopper")[0]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: faces_of("hopper")[0]).result() is faces_of("hopper")[0]
