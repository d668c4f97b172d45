"""LPIPS by the authors' package, on backbones from the model registry."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from tasks.distances import DISTANCES
from tasks.engine import weights
from tasks.engine.errors import WorkspaceError
from tests.photos import jpeg, photo

pytestmark = pytest.mark.torch
# Where the three example pictures of the authors' repository lie (imgs/ex_ref.png, ex_p0.png, ex_p1.png).
EXAMPLES = os.environ.get("FEDBENCH_LPIPS_EXAMPLES", "")


def pair() -> tuple[np.ndarray, np.ndarray]:
    shown = photo("astronaut")
    crops = [cv2.resize(one.pixels[40:200, 150:310], (256, 256)) for one in (shown, jpeg(shown, 30))]
    return crops[0], crops[1]


@pytest.fixture(params=["lpips", "lpips_vgg"])
def name(request: pytest.FixtureRequest) -> str:
    (weight,) = DISTANCES.adapter_class(request.param).weights
    if weights.state(weight) == "missing":
        pytest.skip(f"{weight} is not here")
    return str(request.param)


def test_it_is_what_the_package_computes_without_a_download(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    import torch

    def no_connection(*_: object) -> None:
        raise AssertionError("somebody connects")

    monkeypatch.setattr(socket.socket, "connect", no_connection)
    one, other = pair()
    distance = DISTANCES.get(name, {})
    found = distance.between(one, other)
    assert found == distance.between(other, one) == distance.between(one, other) > 0.05
    assert distance.between(one, one) == 0
    tensors = [torch.from_numpy(each.transpose(2, 0, 1)[None].astype(np.float32) / 127.5 - 1) for each in (one, other)]
    assert found == pytest.approx(float(distance._model(*tensors)), abs=1e-6)  # type: ignore[attr-defined]


def test_what_was_measured_before_changes_nothing(name: str) -> None:
    one, other = pair()
    distance = DISTANCES.get(name, {})
    before = distance.between(one, other)
    for shift in range(1, 7):
        distance.between(np.roll(one, shift, axis=0), other)
    assert distance.between(one, other) == before
    with pytest.raises(ValueError, match="shapes differ"):
        distance.between(one, other[:128])


@pytest.mark.skipif(not EXAMPLES, reason="FEDBENCH_LPIPS_EXAMPLES names no folder")
def test_the_authors_examples_to_three_decimals() -> None:
    ref, p0, p1 = (cv2.imread(str(Path(EXAMPLES) / f"ex_{one}.png"))[..., ::-1].copy() for one in ("ref", "p0", "p1"))
    distance = DISTANCES.get("lpips", {})
    assert (round(distance.between(ref, p0), 3), round(distance.between(ref, p1), 3)) == (0.722, 0.138)


def test_an_absent_backbone_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WorkspaceError, match="squeezenet") as caught:
        DISTANCES.check("lpips_squeeze", {})
    assert "squeezenet1_1-b8a52dc0.pth" in caught.value.hint


def test_a_squeezenet_of_another_origin_is_refused_and_the_right_one_measures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import torch
    import torchvision

    from tasks.distances.lpips import LpipsSqueeze

    monkeypatch.setenv("FEDBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".cache/torch/hub/checkpoints/squeezenet1_1-b8a52dc0.pth"
    file.parent.mkdir(parents=True)
    torch.manual_seed(0)
    backbone = torchvision.models.squeezenet1_1(weights=None)
    torch.save(backbone.state_dict(), file)
    with pytest.raises(WorkspaceError, match="is not torchvision's"):
        DISTANCES.check("lpips_squeeze", {})
    # Random weights of the right shape stand for the file, which nothing carries: what is computed of them is checked.
    monkeypatch.setattr(LpipsSqueeze, "starts", weights.hash_file(file)[:8])
    DISTANCES.check("lpips_squeeze", {})
    one, other = pair()
    distance = LpipsSqueeze(LpipsSqueeze.Params())
    found = distance.between(one, other)
    assert distance.between(one, one) == 0
    tensors = [torch.from_numpy(each.transpose(2, 0, 1)[None].astype(np.float32) / 127.5 - 1) for each in (one, other)]
    assert found == pytest.approx(float(distance._model(*tensors)), abs=1e-6)
    mine = dict(distance._model.net.named_parameters())
    assert any(torch.equal(value, backbone.features[0].weight) for value in mine.values())
