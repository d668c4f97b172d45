"""What a pipeline of diffusers is told by a config, and the refusal of what it does not know."""

import dataclasses
import inspect
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tasks.editors.diffusion_files import index, parts
from tasks.engine.errors import ConfigError

# Arguments that the editor itself gives, and what in the config decides them.
_OURS: Final = {
    "prompt": "prompt",
    "height": "area",
    "width": "area",
    "max_area": "area",
    "mask_image": "mask",
    "generator": "the seed of the request",
    "latents": "the seed of the request",
    "num_images_per_prompt": "generate.measure.attempts",
    "output_type": "nothing",
    "return_dict": "nothing",
}
OFFLOADS: Final = ("", "model", "sequential")
# Their calls take embeddings with masks, and one of them takes several prompts that way.
QWEN: Final = ("QwenImageEditPipeline", "QwenImageEditPlusPipeline")


@dataclass(frozen=True)
class Spec:
    """All that makes a loaded pipeline what it is; equal specs share one.

    Attributes:
        name: What messages call it.
        folder: Where it lies, as `save_pretrained` leaves it.
        revisions: Of it, and of the LoRAs.
        pipeline: Class of diffusers; empty for the one that the folder names.
        loras: (file, scale), in order.
        settings: JSON of the parameters of `DiffusionEditor` that loading and calling need.
    """

    name: str
    folder: str
    revisions: tuple[str, ...]
    pipeline: str
    loras: tuple[tuple[str, float], ...]
    settings: str

    @cached_property
    def told(self) -> dict[str, Any]:
        """The settings, read."""
        values: dict[str, Any] = json.loads(self.settings)
        return values

    def pipeline_class(self) -> Any:
        """The class of diffusers.

        Raises:
            ConfigError: There is none of that name.
        """
        import diffusers

        name = self.pipeline or index(Path(self.folder)).get("_class_name")
        found = getattr(diffusers, name, None) if isinstance(name, str) else None
        if not (isinstance(found, type) and issubclass(found, diffusers.DiffusionPipeline)):
            raise ConfigError(
                f"the editor '{self.name}' is a {name}, which is no pipeline of diffusers {diffusers.__version__}",
                "code of a repository is never run here; serve it and use the api editor",
            )
        return found

    def scheduler_class(self) -> Any:
        """The class of the scheduler that the settings ask for, or that the folder names.

        Raises:
            ConfigError: There is none of that name.
        """
        import diffusers

        name = self.told["scheduler"].get("class") or parts(index(Path(self.folder))).get("scheduler", ("", ""))[1]
        found = getattr(diffusers, str(name), None)
        if not (isinstance(found, type) and issubclass(found, diffusers.SchedulerMixin)):
            raise ConfigError(f"the editor '{self.name}': scheduler: diffusers has no {name}")
        return found

    def step_cache(self) -> Any:
        """The step cache's config, or None.

        Raises:
            ConfigError: There is none of that name, or it takes no such argument.
        """
        values = dict(self.told["step_cache"])
        if not values:
            return None
        from diffusers import hooks

        name = values.pop("class", "")
        found = getattr(hooks, name, None) if str(name).endswith("Config") else None
        if found is None:
            raise ConfigError(
                f"the editor '{self.name}': step_cache: no class '{name}'",
                "choose one of: FirstBlockCacheConfig, MagCacheConfig, TaylorSeerCacheConfig, SeaCacheConfig, ...",
            )
        _known(self.name, "step_cache", values, {field.name for field in dataclasses.fields(found)}, name)
        return found(**values)


def accepted(pipeline_class: Any) -> set[str]:
    """The arguments of a pipeline's call by name; a catch-all takes nothing."""
    named = inspect.signature(pipeline_class.__call__).parameters.values()
    return {each.name for each in named if each.kind is not inspect.Parameter.VAR_KEYWORD} - {"self"}


def refuse_unknown(spec: Spec) -> None:
    """Refuse settings that the pipeline does not know, without loading it; imports diffusers.

    Raises:
        ConfigError: Names the first.
    """
    told, found = spec.told, spec.pipeline_class()
    takes = accepted(found)
    ours = {name: by for name, by in _OURS.items() if name in told["call"]} | {
        name: "the editor"
        for name in told["call"]
        if name == told["picture"] or name.endswith("_embeds") or name.endswith("_mask") or name.startswith("callback")
    }
    if ours:
        name = min(ours)
        raise ConfigError(f"the editor '{spec.name}': call.{name} is not for you to set", f"decided by: {ours[name]}")
    _known(spec.name, "call", told["call"], takes, found.__name__)
    needed = {
        told["picture"]: "picture",
        **({"height": "sized", "width": "sized"} if told["sized"] else {}),
        **({"mask_image": "mask"} if told["mask"] else {}),
    }
    for argument, field in needed.items():
        if argument not in takes:
            raise ConfigError(
                f"the editor '{spec.name}': {field}: {found.__name__} takes no {argument}", f"it takes: {_list(takes)}"
            )
    if told["batching"] == "embeds" and found.__name__ not in QWEN:
        raise ConfigError(f"the editor '{spec.name}': batching: 'embeds' is for {' and '.join(QWEN)} alone")
    if told["scheduler"]:
        scheduler = spec.scheduler_class()
        known = set(inspect.signature(scheduler.__init__).parameters) - {"self"} | {"class"}
        _known(spec.name, "scheduler", told["scheduler"], known, scheduler.__name__)
    spec.step_cache()
    _refuse_device(spec)


def _refuse_device(spec: Spec) -> None:
    import torch
    from diffusers.models.attention_dispatch import AttentionBackendName

    told = spec.told
    device, offload, attention = told["device"], told["offload"], told["attention"]
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", device):
        raise ConfigError(f"the editor '{spec.name}': device: no '{device}'", "auto, cpu, cuda, cuda:1, ...")
    if offload not in OFFLOADS:
        raise ConfigError(f"the editor '{spec.name}': offload: no '{offload}'", "model, sequential, or empty")
    gpu = torch.cuda.is_available()
    if (device.startswith("cuda") or offload) and not gpu:
        raise ConfigError(f"the editor '{spec.name}' is to use a GPU, and torch sees none here", "device: cpu")
    backends = sorted(each.value for each in AttentionBackendName)
    if attention and attention not in backends:
        raise ConfigError(f"the editor '{spec.name}': attention: no '{attention}'", f"one of: {', '.join(backends)}")


def _known(name: str, where: str, values: dict[str, Any], known: set[str], by: str) -> None:
    unknown = sorted(values.keys() - known)
    if unknown:
        raise ConfigError(f"the editor '{name}': {where}: {by} takes no {unknown[0]}", f"it takes: {_list(known)}")


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))
