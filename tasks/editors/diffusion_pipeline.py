"""A pipeline of diffusers in this process: loaded once, called for several edits of one source at once."""

import contextlib
import gc
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.outcomes import FailureKind
from tasks.editors.diffusion_files import index, parts
from tasks.editors.diffusion_qwen import Embeds
from tasks.editors.diffusion_settings import Spec, accepted
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.engine.loading import first_line, loading

_lock = threading.Lock()
_loaded: dict[Spec, "Pipeline"] = {}
Result = NDArray[np.uint8] | ItemFailed


class OutOfMemory(Exception):
    """The device has not enough memory for so many edits; what was taken is given back."""


@dataclass(frozen=True)
class Editing:
    """Edits of one source, made at once.

    Attributes:
        pixels: The source as it is shown to the pipeline, RGB (H, W, 3) uint8.
        mask: What to paint, (H, W) bool at the same size; None without a mask.
        height, width: Of the edits, px; a pipeline that takes neither makes them of the source's size.
        prompts: One per edit.
        seeds: One per edit, non-negative.
    """

    pixels: NDArray[np.uint8]
    mask: NDArray[np.bool_] | None
    height: int
    width: int
    prompts: Sequence[str]
    seeds: Sequence[int]


class Pipeline:
    """A loaded pipeline; one thread at a time is served.

    Args:
        spec: Which one, and how; it is checked.

    Raises:
        ConfigError: It cannot be loaded, or a LoRA has nothing for it.
    """

    def __init__(self, spec: Spec) -> None:
        import torch
        from diffusers.utils import logging
        from transformers.utils import logging as transformers_logging

        for each in (logging, transformers_logging):
            each.disable_progress_bar()
            each.set_verbosity_error()
        self._torch: Any = torch
        self._lock = threading.Lock()
        self._name, self._proved = spec.name, False
        self._told = told = spec.told
        found = spec.pipeline_class()
        self._takes = accepted(found)
        with loading(f"the editor '{spec.name}'"):
            options = {"dtype": getattr(torch, told["dtype"]), "use_safetensors": True, "local_files_only": True}
            models = dict(_models(spec, options))
            self._pipe: Any = found.from_pretrained(spec.folder, **options, **models)
            self._fuse(spec)
            self._tune(spec)
            self._place()
        self._pipe.set_progress_bar_config(disable=True)
        embeds = told["batching"] == "embeds"
        self._embeds = Embeds(self._pipe, told["reference_area"]) if embeds else None

    def _fuse(self, spec: Spec) -> None:
        for place, (file, scale) in enumerate(spec.loras):
            name = f"lora_{place}"
            path = Path(file)
            self._pipe.load_lora_weights(str(path.parent), weight_name=path.name, adapter_name=name)
            if not any(name in names for names in self._pipe.get_list_adapters().values()):
                raise ConfigError(f"the LoRA {path.name} holds no weights for the editor '{spec.name}'")
            self._pipe.fuse_lora(lora_scale=scale, adapter_names=[name])
            self._pipe.unload_lora_weights()

    def _tune(self, spec: Spec) -> None:
        told, cache = self._told, spec.step_cache()
        values = {name: value for name, value in told["scheduler"].items() if name != "class"}
        if told["scheduler"]:
            config = {**self._pipe.scheduler.config, **values}
            self._pipe.scheduler = spec.scheduler_class().from_config(config)
        denoiser = getattr(self._pipe, "transformer", None) or self._pipe.unet
        if told["attention"]:
            denoiser.set_attention_backend(told["attention"])
        if cache is not None:
            denoiser.enable_cache(cache)
        if told["compile"]:
            denoiser.compile_repeated_blocks()

    def _place(self) -> None:
        device, offload = self._told["device"], self._told["offload"]
        if device == "auto":
            device = "cuda" if self._torch.cuda.is_available() else "cpu"
        if offload == "model":
            self._pipe.enable_model_cpu_offload(device=device)
        elif offload == "sequential":
            self._pipe.enable_sequential_cpu_offload(device=device)
        else:
            self._pipe.to(device)

    def edit(self, editing: Editing) -> list[Result]:
        """One result per prompt, in order.

        Raises:
            OutOfMemory: For so many at once.
        """
        with self._lock:
            full = ""
            try:
                with self._torch.inference_mode():
                    output = self._call(editing)
            except (self._torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if type(error) is RuntimeError and "not enough memory" not in str(error).lower():
                    raise
                full = first_line(error)
            except (ValueError, TypeError, AttributeError) as error:
                if self._proved:
                    raise
                # Settings that no signature shows to be wrong: a scheduler or a step cache that it cannot use.
                raise ConfigError(
                    f"the editor '{self._name}' cannot edit as it is told: {first_line(error)}",
                    "see call, scheduler, step_cache and attention",
                ) from None
            # Not in the handler: the error's frames hold the very tensors that are to go.
            if full:
                self._free()
                raise OutOfMemory(full)
            self._proved = True
        return pictures(output, len(editing.prompts))

    def _call(self, editing: Editing) -> Any:
        from PIL import Image

        count, batching = len(editing.prompts), self._told["batching"]
        # Noise is drawn on the CPU, so that it is the same on every device.
        noise = [self._torch.Generator("cpu").manual_seed(seed) for seed in editing.seeds]
        source = Image.fromarray(editing.pixels)
        call: dict[str, Any] = dict(self._told["call"])
        if self._told["sized"]:
            call |= {"height": editing.height, "width": editing.width}
            if "max_area" in self._takes:  # Kontext makes its own size of it, and of the others only their shape
                call["max_area"] = editing.height * editing.width
        if "output_type" in self._takes:
            call["output_type"] = "np"  # a number that is none would come out black
        if self._embeds is not None:
            return self._embeds.edit(source, editing.prompts, noise, call)
        mask = None if editing.mask is None else Image.fromarray(editing.mask.astype(np.uint8) * 255)
        if batching == "no":
            several = self._told["picture"].endswith("s")
            call |= {"prompt": editing.prompts[0], "generator": noise[0]}
            call |= {self._told["picture"]: [source] if several else source}
            return self._pipe(**call, **({} if mask is None else {"mask_image": mask}))
        call = {
            name: [value] * count if "prompt" in name and isinstance(value, str) else value
            for name, value in call.items()
        }
        call |= {"prompt": list(editing.prompts), "generator": noise}
        if batching == "repeat":
            call |= {self._told["picture"]: [source] * count}
            return self._pipe(**call, **({} if mask is None else {"mask_image": [mask] * count}))
        call |= {self._told["picture"]: source}
        return self._pipe(**call, **({} if mask is None else {"mask_image": mask}))

    def _free(self) -> None:
        with contextlib.suppress(AttributeError):
            self._pipe.maybe_free_model_hooks()  # also resets a step cache that was left halfway
        gc.collect()
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()


def _models(spec: Spec, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The pipeline's networks by name. Loaded here, for a pipeline goes on with random numbers where weights lack."""
    import diffusers
    import torch
    import transformers

    for name, (library, cls) in parts(index(Path(spec.folder))).items():
        found = getattr({"diffusers": diffusers, "transformers": transformers}.get(library), cls, None)
        if isinstance(found, type) and issubclass(found, torch.nn.Module):
            loader: Any = found
            model, told = loader.from_pretrained(Path(spec.folder) / name, output_loading_info=True, **options)
            if told["missing_keys"]:
                lost = ", ".join(sorted(told["missing_keys"])[:3])
                raise ConfigError(f"the part '{name}' of the editor '{spec.name}' lacks weights: {lost}")
            yield name, model


def load(spec: Spec) -> Pipeline:
    """The pipeline, loaded once per process however many threads ask for it."""
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = Pipeline(spec)
        return _loaded[spec]


def pictures(output: Any, count: int) -> list[Result]:
    """What a pipeline gave, as one result per edit; nothing is made up for what it did not give.

    Args:
        output: What its call returned: an object with `images` (and maybe `nsfw_content_detected`), or `frames`.
        count: How many edits were asked for.

    Returns:
        Arrays as they came, floats of 0..1 as uint8; or BAD_OUTPUT (not a picture, not finite) or REFUSED.
    """
    if getattr(output, "images", None) is None and getattr(output, "frames", None) is not None:
        return [_bad("the pipeline made a video, not a picture") for _ in range(count)]
    images = getattr(output, "images", None)
    if images is None:
        return [_bad("the pipeline returned no picture") for _ in range(count)]
    if len(images) != count:
        return [_bad(f"the pipeline returned {len(images)} pictures for {count} edits") for _ in range(count)]
    checked = getattr(output, "nsfw_content_detected", None)
    flags = checked if isinstance(checked, list) and len(checked) == count else [False] * count
    return [
        ItemFailed(FailureKind.REFUSED, "the pipeline's safety checker blackened it") if flag else _picture(image)
        for image, flag in zip(images, flags, strict=True)
    ]


def _picture(image: Any) -> Result:
    if image is None:
        return _bad("the pipeline returned no picture")
    if isinstance(image, list | tuple):
        return _bad(f"the pipeline returned {len(image)} frames of a video, not a picture")
    pixels = np.asarray(image)
    if pixels.ndim == 4:
        return _bad(f"the pipeline returned {len(pixels)} frames of a video, not a picture")
    if pixels.dtype.kind == "f":
        broken = int((~np.isfinite(pixels)).sum())
        if broken:
            return _bad(f"{broken} of {pixels.size} values of the picture are no numbers")
        return np.asarray(np.round(np.clip(pixels, 0, 1) * 255), np.uint8)
    return np.array(pixels)


def _bad(message: str) -> ItemFailed:
    return ItemFailed(FailureKind.BAD_OUTPUT, message)
