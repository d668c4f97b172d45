"""Pipelines of real size with random weights, made on the device: configs are written, weights never are."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tasks.editors import diffusion_pipeline
from tasks.editors.diffusion_files import index, parts
from tasks.editors.diffusion_settings import Spec
from tests.torch import tiny

# What differs from the tiny ones, by model and part, as the repositories' configs say it.
_QWEN: Final[dict[str, dict[str, Any]]] = {
    "transformer": {"num_layers": 60, "attention_head_dim": 128, "num_attention_heads": 24, "in_channels": 64,
                    "out_channels": 16, "joint_attention_dim": 3584, "axes_dims_rope": [16, 56, 56]},
    "vae": {"base_dim": 96, "z_dim": 16, "dim_mult": [1, 2, 4, 4], "num_res_blocks": 2,
            "latents_mean": [0.0] * 16, "latents_std": [1.0] * 16},
    "text_encoder": {
        "text_config": {"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
                        "num_attention_heads": 28, "num_key_value_heads": 4, "layer_types": ["full_attention"] * 28,
                        "rope_parameters": {"mrope_section": [16, 24, 24], "rope_type": "default", "rope_theta": 1e6}},
        "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                          "out_hidden_size": 3584, "fullatt_block_indexes": [7, 15, 23, 31]},
    },
}  # fmt: skip
_KONTEXT: Final[dict[str, dict[str, Any]]] = {
    "transformer": {"num_layers": 19, "num_single_layers": 38, "attention_head_dim": 128, "num_attention_heads": 24,
                    "in_channels": 64, "joint_attention_dim": 4096, "pooled_projection_dim": 768,
                    "axes_dims_rope": [16, 56, 56]},
    "vae": {"block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, "latent_channels": 16,
            "norm_num_groups": 32},
    "text_encoder": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
                     "num_hidden_layers": 12},
    "text_encoder_2": {"d_model": 4096, "d_ff": 10240, "d_kv": 64, "num_heads": 64, "num_layers": 24,
                       "feed_forward_proj": "gated-gelu", "is_gated_act": True, "dense_act_fn": "gelu_new"},
}  # fmt: skip
_DEPTHS: Final = ("num_layers", "num_single_layers", "num_hidden_layers", "depth")


def write(model: str, folder: Path, layers: int | None = None) -> None:
    """A pipeline's folder with configs of real size and no weights.

    Args:
        model: A Qwen-Image-Edit-Plus or FLUX.1 Kontext of the table.
        folder: It appears.
        layers: Of each network at most, for trying it out.
    """
    kontext = "kontext" in model
    (tiny.kontext if kontext else tiny.qwen)(folder)
    for part, changes in (_KONTEXT if kontext else _QWEN).items():
        for weights in (folder / part).glob("*.safetensors"):
            weights.unlink()
        path = folder / part / "config.json"
        path.write_text(json.dumps(_merged(json.loads(path.read_text()), changes, layers)))


def _merged(values: dict[str, Any], changes: dict[str, Any], layers: int | None) -> dict[str, Any]:
    merged = dict(values)
    for name, value in changes.items():
        if isinstance(value, dict) and name != "rope_parameters":
            merged[name] = _merged(values.get(name, {}), value, layers)
        elif layers and name in _DEPTHS:
            merged[name] = min(value, layers)
        elif layers and name in ("layer_types", "fullatt_block_indexes"):
            merged[name] = [each for place, each in enumerate(value) if place < layers]
        else:
            merged[name] = value
    return merged


def install(device: str) -> None:
    """Have pipelines loaded without weights: their networks are made at random, on the device."""

    def models(spec: Spec, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        import diffusers
        import torch
        import transformers

        torch.set_default_dtype(options["dtype"])
        for name, (library, cls) in parts(index(Path(spec.folder))).items():
            found: Any = getattr({"diffusers": diffusers, "transformers": transformers}[library], cls)
            if not issubclass(found, torch.nn.Module):
                continue
            torch.manual_seed(0)
            folder = Path(spec.folder) / name
            with torch.device(device):
                if library == "diffusers":
                    model = found.from_config(found.load_config(folder))
                else:
                    model = found(found.config_class.from_pretrained(folder))
            yield name, model.eval()
        torch.set_default_dtype(torch.float32)

    diffusion_pipeline._models = models
