"""Tiny editing pipelines of the true classes beside `tiny.kontext`: random weights, made of code alone."""

from pathlib import Path
from typing import Any

from tests.torch.tiny import CHANNELS, WIDTH, clip, flux_vae, qwen_tokenizer, t5


def qwen(folder: Path, cls: str = "QwenImageEditPlusPipeline") -> Path:
    """A QwenImageEditPlusPipeline or QwenImageEditPipeline. Its weights are large enough for a prompt to matter."""
    import diffusers
    import torch
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2VLImageProcessor,
        Qwen2VLProcessor,
        Qwen2VLVideoProcessor,
    )

    tokenizer, vocab = qwen_tokenizer()
    processor = Qwen2VLProcessor(
        image_processor=Qwen2VLImageProcessor(), tokenizer=tokenizer, video_processor=Qwen2VLVideoProcessor()
    )
    torch.manual_seed(0)
    encoder = Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config={
                "vocab_size": len(vocab),
                "hidden_size": WIDTH,
                "intermediate_size": WIDTH,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_key_value_heads": 2,
                "max_position_embeddings": 4096,
                "rope_parameters": {"mrope_section": [2, 3, 3], "rope_type": "default", "rope_theta": 1e6},
                "bos_token_id": None,
                "eos_token_id": vocab["<|endoftext|>"],
                "pad_token_id": vocab["<|endoftext|>"],
            },
            vision_config={
                "depth": 1,
                "hidden_size": 16,
                "intermediate_size": 16,
                "num_heads": 2,
                "out_hidden_size": WIDTH,
                "fullatt_block_indexes": [0],
            },
            image_token_id=vocab["<|image_pad|>"],
            video_token_id=vocab["<|video_pad|>"],
            vision_start_token_id=vocab["<|vision_start|>"],
            vision_end_token_id=vocab["<|vision_end|>"],
        )
    ).eval()
    transformer = diffusers.QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=4 * CHANNELS,
        out_channels=CHANNELS,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        guidance_embeds=False,
        axes_dims_rope=(8, 4, 4),
    )
    loud(transformer)
    vae = diffusers.AutoencoderKLQwenImage(
        base_dim=8,
        z_dim=CHANNELS,
        dim_mult=[1, 1, 1, 1],
        num_res_blocks=1,
        temperal_downsample=[False, True, True],
        latents_mean=[0.0] * CHANNELS,
        latents_std=[1.0] * CHANNELS,
    )
    getattr(diffusers, cls)(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True),
        vae=vae,
        text_encoder=encoder,
        tokenizer=tokenizer,
        processor=processor,
        transformer=transformer,
    ).save_pretrained(folder)
    return folder


def fill(folder: Path) -> Path:
    """A FluxFillPipeline."""
    import diffusers
    import torch

    torch.manual_seed(0)
    (text, tokenizer), (text_2, tokenizer_2) = clip(), t5()
    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=8 * CHANNELS + 4 * 8 * 8,  # noise, what is around the mask, and the mask's 8 × 8 pixels a latent
        out_channels=4 * CHANNELS,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=WIDTH,
        axes_dims_rope=[4, 4, 8],
        guidance_embeds=True,
    )
    diffusers.FluxFillPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=flux_vae(),
        text_encoder=text,
        tokenizer=tokenizer,
        text_encoder_2=text_2,
        tokenizer_2=tokenizer_2,
        transformer=transformer,
    ).save_pretrained(folder)
    return folder


def pix2pix(folder: Path) -> Path:
    """A StableDiffusionInstructPix2PixPipeline without a safety checker."""
    import diffusers
    import torch

    torch.manual_seed(0)
    text, tokenizer = clip()
    unet = diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        sample_size=32,
        in_channels=2 * CHANNELS,
        out_channels=CHANNELS,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=WIDTH,
        norm_num_groups=4,
        attention_head_dim=4,
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=[8, 8, 8, 8],
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        latent_channels=CHANNELS,
        norm_num_groups=4,
    )
    diffusers.StableDiffusionInstructPix2PixPipeline(
        vae=vae,
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=diffusers.EulerAncestralDiscreteScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear"
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)
    return folder


def loud(model: Any) -> None:
    """Weights that keep the size of what goes through them; freshly made ones nearly forget the prompt."""
    import torch

    draw = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        if weight.ndim > 1:
            weight.data = torch.randn(weight.shape, generator=draw) * (1.5 / weight.shape[-1] ** 0.5)
