"""CLIP, DINO and LPIPS as metrics of a study, on tiny random models."""

import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.engine import weights
from tasks.engine.errors import ConfigError
from tasks.providers.in_process import digest_of
from tasks.study.comparers import COMPARERS
from tests.contract.test_comparers import keeps
from tests.photos import photo
from tests.torch import tiny

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = tmp_path_factory.mktemp("encoders")
    clip, dino = tiny.clip_both(made / "clip"), tiny.dino(made / "dino")
    return {"clip_i": clip, "clip_t": clip, "dino": dino}


def params(folder: Path, **more: Any) -> dict[str, Any]:
    return {"model": "tiny", "folder": str(folder), "revision": digest_of(folder), "device": "cpu"} | more


@pytest.mark.parametrize("name", ["clip_i", "dino", "lpips", "lpips_vgg"])
def test_it_keeps_the_contract(folders: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if any(weights.state(weight) == "missing" for weight in COMPARERS.adapter_class(name).weights):
        pytest.skip("its backbone is not here")

    def no_connection(*_: object) -> None:
        raise AssertionError("somebody connects")

    monkeypatch.setattr(socket.socket, "connect", no_connection)
    keeps(COMPARERS.get(name, params(folders[name]) if name in folders else {}))


def test_the_numbers_are_those_of_the_models_own_call(folders: dict[str, Path]) -> None:
    import torch
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModel, AutoProcessor, CLIPModel

    one, other, words = photo("happy"), photo("astronaut"), "change the expression from neutral to happy"
    images = [Image.fromarray(shown.pixels) for shown in (one, other)]
    clip = CLIPModel.from_pretrained(folders["clip_i"]).eval()
    with torch.inference_mode():
        told = clip(
            **AutoProcessor.from_pretrained(folders["clip_i"])(text=[words], images=images, return_tensors="pt")
        )
        alike = float(told.image_embeds[0] @ told.image_embeds[1])
        said = float(told.image_embeds[0] @ told.text_embeds[0])
        seen = AutoImageProcessor.from_pretrained(folders["dino"])(images=images, return_tensors="pt")
        tokens = AutoModel.from_pretrained(folders["dino"]).eval()(**seen).last_hidden_state[:, 0]
    assert COMPARERS.get("clip_i", params(folders["clip_i"])).compare(one, other) == pytest.approx(alike, abs=1e-5)
    assert COMPARERS.get("clip_t", params(folders["clip_t"])).compare(one, words) == pytest.approx(said, abs=1e-5)
    cosine = float(torch.nn.functional.cosine_similarity(tokens[0], tokens[1], dim=0))
    assert COMPARERS.get("dino", params(folders["dino"])).compare(one, other) == pytest.approx(cosine, abs=1e-5)


def test_a_long_instruction_is_cut_and_another_text_is_another_number(folders: dict[str, Path]) -> None:
    metric, shown = COMPARERS.get("clip_t", params(folders["clip_t"])), photo("happy")
    long = "raise both mouth corners " * 40
    assert metric.compare(shown, long) == metric.compare(shown, long + "and frown")
    assert metric.compare(shown, "smile") != metric.compare(shown, "frown")


def test_what_cannot_be_loaded_is_one_line(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not those of revision"):
        COMPARERS.check("dino", params(folders["dino"]) | {"revision": "0" * 64})
    with pytest.raises(ConfigError, match="can move"):
        COMPARERS.check("dino", {"model": "some/where", "revision": "main"})
    with pytest.raises(ConfigError, match=r"it is no CLIP|cannot be loaded"):
        COMPARERS.get("clip_i", params(folders["dino"]))
    torn = shutil.copytree(folders["dino"], tmp_path / "torn")
    (torn / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        COMPARERS.get("dino", params(torn))
    pickled = shutil.copytree(folders["dino"], tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        COMPARERS.get("dino", params(pickled))


def test_both_clips_load_one_model(folders: dict[str, Path]) -> None:
    one, other = (COMPARERS.get(name, params(folders[name])) for name in ("clip_i", "clip_t"))
    assert one._encoder is other._encoder  # type: ignore[attr-defined]
    assert np.linalg.norm(one._encoder.text("smile")) == pytest.approx(1)  # type: ignore[attr-defined]
