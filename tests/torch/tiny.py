"""Tiny models and editing pipelines of the true classes with random weights, made of code alone: no hub, no files."""

import string
from pathlib import Path
from typing import Any, Final

CHANNELS: Final = 4  # of the latents
WIDTH: Final = 32  # of every text embedding


def alphabet() -> list[str]:
    """The 256 stand-ins for bytes of byte-level tokenizers, in a fixed order."""
    from tokenizers.pre_tokenizers import ByteLevel

    return sorted(ByteLevel.alphabet())


def kontext(folder: Path) -> Path:
    """A FluxKontextPipeline as `save_pretrained` leaves it: the real one's parts, an eighth scale VAE, < 1 MB."""
    return _flux("FluxKontextPipeline", folder, 4 * CHANNELS)  # the pipeline packs 2 × 2 latents into one token


def fill(folder: Path) -> Path:
    """A FluxFillPipeline: it sees noise, what is around the mask, and the mask's 8 × 8 pixels a latent."""
    return _flux("FluxFillPipeline", folder, 8 * CHANNELS + 4 * 8 * 8, 4 * CHANNELS)


def _flux(cls: str, folder: Path, in_channels: int, out_channels: int | None = None) -> Path:
    import diffusers
    import torch

    torch.manual_seed(0)
    (text, tokenizer), (text_2, tokenizer_2) = clip(), t5()
    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=in_channels,
        out_channels=out_channels,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=WIDTH,
        axes_dims_rope=[4, 4, 8],
        guidance_embeds=True,
    )
    getattr(diffusers, cls)(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=flux_vae(),
        text_encoder=text,
        tokenizer=tokenizer,
        text_encoder_2=text_2,
        tokenizer_2=tokenizer_2,
        transformer=transformer,
    ).save_pretrained(folder)
    return folder


def flux_vae() -> Any:
    """A VAE of FLUX.1's kind: an eighth of the scale."""
    return _vae(use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1, scaling_factor=0.4)


def _vae(**more: Any) -> Any:
    import diffusers

    return diffusers.AutoencoderKL(
        block_out_channels=[8, 8, 8, 8],
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        latent_channels=CHANNELS,
        norm_num_groups=4,
        **more,
    )


def clip() -> tuple[Any, Any]:
    """A CLIP text model and its tokenizer: a letter is a token."""
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    words = ["<|startoftext|>", "<|endoftext|>", *alphabet(), *(f"{letter}</w>" for letter in alphabet())]
    tokenizer = CLIPTokenizer(vocab={word: place for place, word in enumerate(words)}, merges=[], model_max_length=77)
    config = CLIPTextConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        num_attention_heads=2,
        num_hidden_layers=1,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return CLIPTextModel(config), tokenizer


def clip_both(folder: Path) -> Path:
    """A CLIP of pictures and texts with its processors, as `save_pretrained` leaves it."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    torch.manual_seed(0)
    text, tokenizer = clip()
    small = {"hidden_size": WIDTH, "intermediate_size": WIDTH, "num_attention_heads": 2, "num_hidden_layers": 1}
    vision = {"image_size": 32, "patch_size": 8, "projection_dim": 16} | small
    config = CLIPConfig(text_config=text.config.to_dict(), vision_config=vision, projection_dim=16)
    CLIPModel(config).save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def dino(folder: Path) -> Path:
    """A DINOv2 with its processor."""
    import torch
    from transformers import BitImageProcessor, Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    Dinov2Model(
        Dinov2Config(hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14)
    ).save_pretrained(folder)
    BitImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}).save_pretrained(folder)
    return folder


def t5() -> tuple[Any, Any]:
    """A T5 encoder and its tokenizer."""
    from transformers import T5Config, T5EncoderModel, T5Tokenizer

    letters = string.ascii_letters + string.digits + string.punctuation
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0), *((letter, -3.0) for letter in letters)]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=512)
    config = T5Config(vocab_size=len(pieces), d_model=WIDTH, d_ff=WIDTH, d_kv=16, num_heads=2, num_layers=1)
    return T5EncoderModel(config), tokenizer


CHAT: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% for part in message.content %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' if part.type == 'image' else part.text }}{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_MARKS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
                 "<|image_pad|>", "<|video_pad|>")  # fmt: skip


def qwen_tokenizer() -> tuple[Any, dict[str, int]]:
    """Qwen's tokenizer with a byte for a token, and its vocabulary."""
    from transformers import Qwen2Tokenizer

    vocab = {word: place for place, word in enumerate((*alphabet(), *_MARKS))}
    tokenizer = Qwen2Tokenizer(vocab=vocab, merges=[], extra_special_tokens=list(_MARKS[1:]), eos_token="<|im_end|>")
    return tokenizer, vocab


def vlm() -> tuple[Any, Any]:
    """A Qwen2.5-VL and its processor: a byte is a token, 28 × 28 pixels are one."""
    text = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 8192}
    return _qwen_vl(64, 32, ends="<|im_end|>", theta=1e4, text=text, min_pixels=28 * 28, max_pixels=56 * 56)


def _qwen_vl(
    width: int, vision: int, *, ends: str, theta: float, text: dict[str, Any], **pixels: int
) -> tuple[Any, Any]:
    """A Qwen2.5-VL of so many hidden units, and its processor."""
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
        image_processor=Qwen2VLImageProcessor(**pixels),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT,
    )
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(vocab),
            "hidden_size": width,
            "intermediate_size": width,
            "num_hidden_layers": 2,
            "rope_parameters": {"mrope_section": [2, 3, 3], "rope_type": "default", "rope_theta": theta},
            "bos_token_id": None,
            "eos_token_id": vocab[ends],
            "pad_token_id": vocab["<|endoftext|>"],
            **text,
        },
        vision_config={
            "depth": 1,
            "hidden_size": vision,
            "intermediate_size": vision,
            "num_heads": 2,
            "out_hidden_size": width,
            "fullatt_block_indexes": [0],
        },
        image_token_id=vocab["<|image_pad|>"],
        video_token_id=vocab["<|video_pad|>"],
        vision_start_token_id=vocab["<|vision_start|>"],
        vision_end_token_id=vocab["<|vision_end|>"],
    )
    return Qwen2_5_VLForConditionalGeneration(config).eval(), processor


def qwen(folder: Path, cls: str = "QwenImageEditPlusPipeline") -> Path:
    """A QwenImageEditPlusPipeline or QwenImageEditPipeline. Its weights are large enough for a prompt to matter."""
    import diffusers

    text = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 4096}
    encoder, processor = _qwen_vl(WIDTH, 16, ends="<|endoftext|>", theta=1e6, text=text)
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
        tokenizer=processor.tokenizer,
        processor=processor,
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
    diffusers.StableDiffusionInstructPix2PixPipeline(
        vae=_vae(),
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
