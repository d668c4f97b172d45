"""Batches for Qwen-Image-Edit and its plus editions, whose own calls take one prompt at a time.

Every prompt is encoded alone with its picture, as the pipeline itself does it; the embeddings are padded to one
length, with masks that say where each ends, and denoised together. The plus edition refuses even that, so its batch
goes through the call of the plain one: both are made of the same parts, and differ in how they encode alone.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()


class Embeds:
    """Edits of one source at once.

    Args:
        pipe: A QwenImageEditPipeline or QwenImageEditPlusPipeline, loaded.
        reference_area: Pixels at which the VAE is shown the source; 0 for the pipeline's own 1 MP.
    """

    def __init__(self, pipe: Any, reference_area: int) -> None:
        from diffusers import QwenImageEditPipeline, QwenImageEditPlusPipeline

        self._pipe = pipe
        self._plus = isinstance(pipe, QwenImageEditPlusPipeline)
        self._denoiser = QwenImageEditPipeline(**pipe.components) if self._plus else pipe
        self._denoiser.set_progress_bar_config(disable=True)
        self._area = reference_area

    def edit(self, source: Any, prompts: Sequence[str], noise: Sequence[Any], call: dict[str, Any]) -> Any:
        """What the pipeline's call returns, one picture per prompt.

        Args:
            source: PIL picture, RGB.
            prompts: The instructions.
            noise: A torch.Generator each.
            call: Further arguments; a negative prompt is encoded once for all.
        """
        with _lock, _reference(self._area):
            return self._edit(source, prompts, noise, call)

    def _edit(self, source: Any, prompts: Sequence[str], noise: Sequence[Any], call: dict[str, Any]) -> Any:
        from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as plain
        from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus

        area = plus.CONDITION_IMAGE_SIZE if self._plus else 1024 * 1024
        sides = (plus if self._plus else plain).calculate_dimensions(area, source.width / source.height)
        shown = self._pipe.image_processor.resize(source, sides[1], sides[0])
        pictures = [shown] if self._plus else shown

        def encoded(prompt: str) -> Any:
            return self._pipe.encode_prompt(prompt, image=pictures, device=self._pipe._execution_device)[0]

        call = dict(call)
        negative = call.pop("negative_prompt", None)
        rows, mask = _padded([encoded(prompt) for prompt in prompts])
        call |= {"prompt_embeds": rows, "prompt_embeds_mask": mask}
        if negative is not None and (call.get("true_cfg_scale") or 0) > 1:
            rows, mask = _padded([encoded(negative)] * len(prompts))
            call |= {"negative_prompt_embeds": rows, "negative_prompt_embeds_mask": mask}
        try:
            return self._denoiser(image=source, generator=list(noise), **call)
        finally:
            self._pipe.maybe_free_model_hooks()


def _padded(rows: Sequence[Any]) -> tuple[Any, Any]:
    """Embeddings of (1, length, D) each as one (N, longest, D), and the (N, longest) mask of what is not padding."""
    import torch

    longest = max(row.shape[1] for row in rows)
    pads = [(0, longest - row.shape[1]) for row in rows]
    embeds = torch.cat([torch.nn.functional.pad(row, (0, 0, *pad)) for row, pad in zip(rows, pads, strict=True)])
    ones = [torch.ones(1, row.shape[1], dtype=torch.long, device=row.device) for row in rows]
    return embeds, torch.cat([torch.nn.functional.pad(one, pad) for one, pad in zip(ones, pads, strict=True)])


@contextmanager
def _reference(area: int) -> Iterator[None]:
    """Have the pipeline's call show the source at `area` pixels, which it has no argument for; not for two threads."""
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as plain

    own = plain.calculate_dimensions
    if area:
        plain.calculate_dimensions = lambda _, ratio: own(area, ratio)
    try:
        yield
    finally:
        plain.calculate_dimensions = own
