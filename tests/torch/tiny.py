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
    clip, clip_tokenizer = _clip()
    t5, t5_tokenizer = _t5()
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
    vae = diffusers.AutoencoderKL(
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
    diffusers.FluxKontextPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=vae,
        text_encoder=clip,
        tokenizer=clip_tokenizer,
        text_encoder_2=t5,
        tokenizer_2=t5_tokenizer,
        transformer=transformer,
    ).save_pretrained(folder)
    return folder


def _clip() -> tuple[Any, Any]:
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


def _t5() -> tuple[Any, Any]:
    from transformers import T5Config, T5EncoderModel, T5Tokenizer

    letters = string.ascii_letters + string.digits + string.punctuation
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0), *((letter, -3.0) for letter in letters)]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=512)
    config = T5Config(vocab_size=len(pieces), d_model=WIDTH, d_ff=WIDTH, d_kv=16, num_heads=2, num_layers=1)
    return T5EncoderModel(config), tokenizer
