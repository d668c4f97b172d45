"""The same person is nearer than another one; where a model is missing a line says so."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tasks.engine import weights
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, EMBEDDERS, identity
from tasks.metrics.identity import cosine
from tests.photos import frame, jpeg, photo


def embed(shown: Picture) -> np.ndarray:
    face = ANALYZERS.get("mediapipe", {}).analyze(shown)[0]
    return EMBEDDERS.get("sface", {}).embed(shown, face)


def test_vectors_have_length_one() -> None:
    vector = embed(photo("astronaut"))
    assert vector.shape == (128,)
    assert vector.dtype == np.float32
    assert not vector.flags.writeable
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-6)


def test_same_person_and_different_people() -> None:
    man = [embed(frame(number)) for number in (0, 30, 60)]
    others = [embed(photo(name)) for name in ("astronaut", "hopper", "surprised", "happy", "angry")]
    same = min(cosine(man[0], other) for other in man[1:])
    different = max(cosine(man[0], other) for other in others)
    assert same > 0.75
    assert different < 0.363


def test_a_jpeg_copy_is_the_same_person() -> None:
    assert cosine(embed(photo("smiling")), embed(jpeg(photo("smiling"), 60))) > 0.95


def test_the_same_from_one_and_four_threads() -> None:
    names = ["astronaut", "hopper", "surprised", "happy"] * 2
    identity.forget()
    alone = [embed(photo(name)).tobytes() for name in names]
    identity.forget()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda name: embed(photo(name)).tobytes(), names)) == alone


def test_buffalo_is_never_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WorkspaceError, match="buffalo_l"):
        EMBEDDERS.get("buffalo_l", {})
    assert not list(tmp_path.iterdir())


def test_a_torn_file_whose_hash_nobody_knows_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".insightface/models/buffalo_l/w600k_r50.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(weights.path("sface").read_bytes()[:5000])
    with pytest.raises(ConfigError, match=r"the model 'buffalo_l' cannot be loaded: .*fetch it anew") as caught:
        EMBEDDERS.get("buffalo_l", {})
    assert "\n" not in str(caught.value)
