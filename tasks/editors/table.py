"""The table of open editors: what ships under a name, with licence, memory and quirks. Data in `table.yaml`."""

from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import Field

from schemas.sections import Section

_FILE: Final = Path(__file__).parent / "table.yaml"
Dtype = Literal["bfloat16", "float16", "float32"]
Batching = Literal["prompts", "repeat", "embeds", "no"]


class Lora(Section):
    """Weights on top of an editor's own: a LoRA of one safetensors file, fused into it.

    The file lies in the hub's cache (`repository` at `revision`), or in the editor's `lora_folder`.
    """

    repository: str = Field(default="", description="Id at the hub; of one in a folder, what you call it.")
    revision: str = Field(default="", description="Commit at the hub, 40 hexadecimal digits, or the file's sha256.")
    file: str = Field(default="pytorch_lora_weights.safetensors", pattern=r"\.safetensors$")
    scale: float = Field(default=1.0, description="How strongly it is fused.")


class ShippedEditor(Section):
    """One row: an open editor by its name.

    Attributes:
        name: What a config calls it.
        runs: "here" in this process through diffusers; "server" in its own repository's code, which a user serves
            by URL (see docs/editors.md).
        repository: Its id at the hub.
        revision: The commit at the hub; empty where none is known to us, so that the config must give it.
        pipeline: The class of diffusers; empty for one that runs on a server.
        call: Arguments of the pipeline's call, its default steps and guidance among them.
        scheduler: Values of the scheduler's config that differ from the repository's.
        loras: Weights on top.
        dtype: In which it is run on a GPU.
        multiple: Height and width must be multiples of this, in px.
        area: About so many pixels an edit has.
        prompt: The instruction as this model wants it told; `{instruction}` stands for it.
        picture: The argument that takes the source.
        sized: Whether the call takes `height` and `width`; otherwise the source is resized before it.
        mask: "face" where it paints only into a mask, which is then made of the source's face.
        batching: How several targets of one source are edited at once: a list of "prompts"; with source and mask
            "repeat"ed; prompts encoded one by one and their "embeds" padded, with true masks; or "no": one by one.
        family: Of models, as roles name it: what vouches for its edits should be of another.
        licence: Of the weights, as their page states it.
        memory_gb: Of the accelerator, for the weights in `dtype`, estimated from their sizes; pictures come on top.
        notes: Quirks worth knowing.
    """

    name: str
    runs: Literal["here", "server"] = "here"
    repository: str
    revision: str = ""
    pipeline: str = ""
    call: dict[str, Any] = Field(default={})
    scheduler: dict[str, Any] = Field(default={})
    loras: tuple[Lora, ...] = ()
    dtype: Dtype = "bfloat16"
    multiple: int = Field(default=16, ge=1)
    area: int = Field(default=1024 * 1024, ge=64 * 64)
    prompt: str = Field(default="{instruction}", pattern=r"\{instruction\}")
    picture: str = "image"
    sized: bool = True
    mask: Literal["", "face"] = ""
    batching: Batching = "no"
    family: str = ""
    licence: str
    memory_gb: float | None = Field(default=None, gt=0)
    notes: str = ""

    @property
    def steps(self) -> int | None:
        """Steps of one edit by default."""
        return self.call.get("num_inference_steps")

    @property
    def guidance(self) -> float | None:
        """Strength of the instruction by default, by whichever argument the pipeline calls it."""
        return self.call.get("true_cfg_scale", self.call.get("guidance_scale"))


class _Table(Section):
    editors: dict[str, dict[str, Any]]


@cache
def shipped() -> tuple[ShippedEditor, ...]:
    """All rows, those that run here first."""
    table = _Table.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))
    return tuple(ShippedEditor.model_validate({"name": name} | row) for name, row in table.editors.items())


def row(name: str) -> ShippedEditor | None:
    """The row of a name, or None."""
    return next((each for each in shipped() if each.name == name), None)
