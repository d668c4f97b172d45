"""An export trains: steps of a LoRA on a tiny FLUX.1 Kontext, saved and loaded by diffusers' own functions.

The steps are those of diffusers' `train_dreambooth_lora_flux_kontext.py`, which is no part of its wheel: the noised
ground truth and the source go side by side into the transformer, whose answer for the first half is compared with
`noise - ground truth`. That all works is what is shown; a model this small learns nothing of faces.
"""

from pathlib import Path
from typing import Any

import pytest

from tasks.dataset.export import Prompt, export
from tests import fakes
from tests.torch import tiny

pytestmark = pytest.mark.torch
SIDE = 64  # of the pictures, px


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of drawn photos; its simple and dense instructions differ."""
    fakes.install()
    made = fakes.build(tmp_path_factory.mktemp("lora"), fakes.config(sources=12))
    assert made.published is not None
    return made.published.folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.kontext(tmp_path_factory.mktemp("kontext"))


def load(model: Path) -> Any:
    from diffusers import FluxKontextPipeline

    pipeline = FluxKontextPipeline.from_pretrained(model)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def rows(full: Path, prompt: Prompt, tmp_path: Path) -> list[dict[str, Any]]:
    """The export as the training script loads it."""
    import datasets

    export(full, "diffusers", tmp_path / "export", prompt)
    return list(datasets.load_dataset(str(tmp_path / "export"), cache_dir=str(tmp_path / "cache"))["train"])


def loss_of(pipeline: Any, row: dict[str, Any]) -> Any:
    """The flow-matching loss of one row, halfway between picture and noise; the same noise each time."""
    import torch

    def packed(picture: Any) -> Any:
        pixels = pipeline.image_processor.preprocess(picture.convert("RGB"), height=SIDE, width=SIDE)
        latents = pipeline.vae.encode(pixels).latent_dist.mode()
        latents = (latents - pipeline.vae.config.shift_factor) * pipeline.vae.config.scaling_factor
        return pipeline._pack_latents(latents, *latents.shape)

    with torch.no_grad():
        source, target = packed(row["input_image"]), packed(row["edited_image"])
        words, pooled, text_ids = pipeline.encode_prompt(row["edit_prompt"], None, max_sequence_length=512)
    across = SIDE // pipeline.vae_scale_factor // 2
    ids = pipeline._prepare_latent_image_ids(1, across, across, "cpu", torch.float32)
    source_ids = ids.clone()
    source_ids[..., 0] = 1
    noise = torch.randn(target.shape, generator=torch.Generator().manual_seed(0))
    (answer,) = pipeline.transformer(
        hidden_states=torch.cat([(target + noise) / 2, source], dim=1),
        timestep=torch.tensor([0.5]),
        guidance=torch.tensor([2.5]),
        pooled_projections=pooled,
        encoder_hidden_states=words,
        txt_ids=text_ids,
        img_ids=torch.cat([ids, source_ids]),
        return_dict=False,
    )
    return torch.nn.functional.mse_loss(answer[:, : target.shape[1]], noise - target)


def weights(pipeline: Any) -> dict[str, Any]:
    """A copy of every weight of every part."""
    return {
        f"{part}.{name}": weight.detach().clone()
        for part, module in pipeline.components.items()
        if hasattr(module, "named_parameters")
        for name, weight in module.named_parameters()
    }


def edited(pipeline: Any, row: dict[str, Any]) -> Any:
    """The pipeline's edit of a row, (SIDE, SIDE, 3) float, 0..1; same seed, same picture."""
    import torch

    return pipeline(
        image=row["input_image"],
        prompt=row["edit_prompt"],
        height=SIDE,
        width=SIDE,
        max_area=SIDE * SIDE,
        _auto_resize=False,
        num_inference_steps=2,
        generator=torch.Generator().manual_seed(0),
        output_type="np",
    ).images[0]


@pytest.mark.parametrize("prompt", ["simple", "dense"])
def test_a_lora_trains_on_the_export(full: Path, model: Path, prompt: Prompt, tmp_path: Path) -> None:
    import torch
    from peft import LoraConfig, get_peft_model_state_dict

    data = rows(full, prompt, tmp_path)
    assert len(data) > 1
    pipeline = load(model)
    for part in (pipeline.vae, pipeline.text_encoder, pipeline.text_encoder_2, pipeline.transformer):
        part.requires_grad_(False)
    pipeline.transformer.add_adapter(
        LoraConfig(r=4, lora_alpha=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"])
    )
    before = weights(pipeline)
    lora = {name for name in before if ".lora_" in name}
    trained = [weight for weight in pipeline.transformer.parameters() if weight.requires_grad]
    assert 0 < len(lora) == len(trained)
    optimizer = torch.optim.AdamW(trained, lr=1e-2)

    def changed() -> set[str]:
        return {name for name, weight in weights(pipeline).items() if not torch.equal(weight, before[name])}

    losses = []
    for _ in range(8):
        loss = sum(loss_of(pipeline, row) for row in data[:2]) / 2
        loss.backward()
        if not losses:  # one half of a LoRA starts at 0, and hides the other from the first step's gradient
            moved = {name for name, weight in pipeline.transformer.named_parameters() if weight.grad is not None}
            assert {f"transformer.{name}" for name in moved} == lora
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if len(losses) == 1:
            assert {name for name in lora if ".lora_B." in name} <= changed() <= lora
    assert changed() == lora
    assert all(torch.isfinite(torch.tensor(losses)))
    assert losses[-1] < losses[0]

    pipeline.save_lora_weights(
        tmp_path / "lora", transformer_lora_layers=get_peft_model_state_dict(pipeline.transformer)
    )
    fresh = load(model)
    plain = edited(fresh, data[0])
    fresh.load_lora_weights(tmp_path / "lora")
    with_lora = edited(fresh, data[0])
    assert abs(with_lora - plain).max() > 1e-3
    assert (with_lora == edited(pipeline, data[0])).all()  # as trained
    fresh.unload_lora_weights()
    assert (edited(fresh, data[0]) == plain).all()


def test_each_column_reaches_the_model(full: Path, model: Path, tmp_path: Path) -> None:
    one, *others = rows(full, "dense", tmp_path)
    other = next(row for row in others if row["edit_prompt"] != one["edit_prompt"])
    pipeline = load(model)
    loss = loss_of(pipeline, one).item()
    for column in ("input_image", "edit_prompt", "edited_image"):
        assert loss_of(pipeline, one | {column: other[column]}).item() != loss
