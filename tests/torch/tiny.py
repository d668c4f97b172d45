"""Tiny models of the true classes with random weights, made of code alone: no hub, no files."""

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
    import diffusers
    import torch

    torch.manual_seed(0)
    text, tokenizer = clip()
    text_2, tokenizer_2 = t5()
    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=4 * CHANNELS,  # the pipeline packs 2 × 2 latents into one token
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=WIDTH,
        axes_dims_rope=[4, 4, 8],
        guidance_embeds=True,
    )
    diffusers.FluxKontextPipeline(
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
    import diffusers

    return diffusers.AutoencoderKL(
        block_out_channels=(8, 8, 8, 8),
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        latent_channels=CHANNELS,
        norm_num_groups=4,
        use_quant_conv=False,
        use_post_quant_conv=False,
        shift_factor=0.1,
        scaling_factor=0.4,
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
        image_processor=Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=56 * 56),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT,
    )
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(vocab),
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 8192,
            "rope_parameters": {"mrope_section": [2, 3, 3], "rope_type": "default", "rope_theta": 1e4},
            "bos_token_id": None,
            "eos_token_id": vocab["<|im_end|>"],
            "pad_token_id": vocab["<|endoftext|>"],
        },
        vision_config={
            "depth": 1,
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [0],
        },
        image_token_id=vocab["<|image_pad|>"],
        video_token_id=vocab["<|video_pad|>"],
        vision_start_token_id=vocab["<|vision_start|>"],
        vision_end_token_id=vocab["<|vision_end|>"],
    )
    return Qwen2_5_VLForConditionalGeneration(config).eval(), processor
