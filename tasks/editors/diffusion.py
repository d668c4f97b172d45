"""The editor that is a pipeline of diffusers in this process, on a GPU where there is one."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, model_validator

from schemas.outcomes import FailureKind
from tasks.editors import EditRequest
from tasks.editors.diffusion_files import lora_file, packages, pipeline_folder
from tasks.editors.diffusion_pipeline import Editing, OutOfMemory, Pipeline, load
from tasks.editors.diffusion_settings import Spec, refuse_unknown
from tasks.editors.table import Batching, Dtype, Lora, row
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, ContractError, ItemFailed
from tasks.engine.registry import Adapter
from tasks.faces import ANALYZERS
from tasks.faces.geometry import face_mask

# Of a row of the table, what a config may say otherwise; `call` is merged key by key.
_OF_A_ROW: Final = (
    "repository", "revision", "pipeline", "scheduler", "loras", "dtype", "multiple", "area", "prompt", "picture",
    "sized", "mask", "batching",
)  # fmt: skip
# What loading and calling need to know.
_SETTINGS: Final = {
    "call", "scheduler", "dtype", "device", "offload", "reference_area", "picture", "sized", "mask", "batching",
    "attention", "compile", "step_cache",
}  # fmt: skip


class DiffusionEditor(Adapter):
    """Edits as the instruction says; one noise per request, whatever its batch.

    In float32, edits of one request differ by at most 2 of 255 between batch sizes; `batch: 1` rules that out too.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which pipeline, and how it is called. What a shipped name's row says is the default, and is spelled out.

        Attributes:
            model: A name of the table (`tasks/editors/table.yaml`), an id at the hub, or of a pipeline in `folder` what
                you call it.
            repository: Its id at the hub; `model` itself if not given.
            revision: The commit at the hub; of a folder, its digest, which the error names if it is another.
            folder: Where the pipeline lies, if not in the hub's cache.
            pipeline: Class of diffusers; the one that the pipeline's index names if not given.
            call: Arguments of the pipeline's call, verbatim.
            scheduler: Values of the scheduler's config to change; `class` changes the scheduler itself.
            loras: Fused into the weights, in order.
            lora_folder: Where LoRAs lie whose revision is the sha256 of their file.
            dtype: Of all weights, on whatever device. On a CPU float32 is faster.
            device: "auto" is a GPU if there is one, else the CPU.
            offload: "model" or "sequential" keeps in the GPU's memory only the part that is at work.
            area: About so many pixels an edit has, in the source's shape.
            multiple: Height and width are multiples of this, in px.
            reference_area: Pixels at which the source is shown to it; 0 leaves that to the pipeline (Qwen) or takes
                `area` (all others).
            prompt: The instruction as this model wants it told.
            picture, sized, mask, batching: As in the table, for pipelines that are not in it.
            mask_dilation: Widening of the face's oval, in inter-eye distances (ours).
            batch: Edits at once, at most; halved where memory does not suffice.
            attention: Backend of diffusers for attention ("flash", "sage", ...); empty for the default.
            compile: Whether the denoiser's repeated blocks are compiled.
            step_cache: A step cache of diffusers: `class` (FirstBlockCacheConfig, ...) and its arguments.
        """

        model: str = Field(min_length=1)
        repository: str = ""
        revision: str = ""
        folder: str = ""
        pipeline: str = ""
        call: dict[str, Any] = Field(default={})
        scheduler: dict[str, Any] = Field(default={})
        loras: tuple[Lora, ...] = ()
        lora_folder: str = ""
        dtype: Dtype = "bfloat16"
        device: str = "auto"
        offload: str = ""
        area: int = Field(default=1024 * 1024, ge=64 * 64, le=4096 * 4096)
        multiple: int = Field(default=16, ge=1, le=256)
        reference_area: int = Field(default=0, ge=0, le=4096 * 4096)
        prompt: str = Field(default="{instruction}", pattern=r"\{instruction\}")
        picture: str = Field(default="image", min_length=1)
        sized: bool = True
        mask: Literal["", "face"] = ""
        mask_dilation: float = Field(default=0.2, ge=0, le=2)
        batching: Batching = "no"
        batch: int = Field(default=6, ge=1, le=64)
        attention: str = ""
        compile: bool = False
        step_cache: dict[str, Any] = Field(default={})

        @model_validator(mode="before")
        @classmethod
        def _as_the_table_says(cls, values: Any) -> Any:
            known = row(str(values.get("model"))) if isinstance(values, dict) else None
            if known is None:
                return values
            told = {field: getattr(known, field) for field in _OF_A_ROW}
            call = values.get("call", {})
            return told | values | {"call": known.call | call if isinstance(call, dict) else call}

    params: Params
    version = 1
    local = ("folder", "lora_folder", "device", "offload")
    device = "gpu"  # for forecasts

    @classmethod
    def family_of(cls, params: Any) -> str:
        """The family of the table's row; empty for a model that is not in it."""
        known = row(params.model)
        return known.family if known else ""

    @classmethod
    def check(cls, params: Any) -> None:
        _spec(params)

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self._pipeline: Pipeline = load(_spec(params))
        self._room: dict[int, int] = {}
        self._said: list[str] = []

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[NDArray[np.uint8] | ItemFailed]:
        """One edit per request, `batch` at a time.

        A picture that is not one (numbers that are none, no picture, frames of a video) fails with BAD_OUTPUT, one
        that the pipeline's own checker blackened with REFUSED, and one for which even alone there is no memory with
        OUT_OF_MEMORY. Pictures of another shape or of one colour are returned as they are, for the stage to judge.

        Raises:
            ContractError: A seed that is no non-negative integer.
        """
        if not requests:
            return []
        for request in requests:
            if isinstance(request.seed, bool) or not isinstance(request.seed, int) or not 0 <= request.seed < 2**64:
                raise ContractError(f"an edit's seed is no non-negative integer: {request.seed!r}")
        source = requests[0].source
        mask = None
        if self.params.mask:
            faces = ANALYZERS.get("mediapipe", {}).analyze(source)
            if not faces:
                return [ItemFailed(FailureKind.NO_FACE, "no face to mask in the photo") for _ in requests]
            mask = face_mask(source.pixels.shape, faces[0], self.params.mask_dilation)
        made: list[NDArray[np.uint8] | ItemFailed] = []
        while len(made) < len(requests):
            few = requests[len(made) : len(made) + self._at_once(source.pixels)]
            try:
                made += self._pipeline.edit(self._editing(source.pixels, mask, few))
            except OutOfMemory as error:
                if len(few) == 1:
                    made.append(ItemFailed(FailureKind.OUT_OF_MEMORY, str(error), retryable=True))
                else:
                    self._halve(source.pixels, len(few))
        return made

    def notes(self) -> list[str]:
        """What is to be said of the edits made since it was asked last; one line each."""
        said, self._said = self._said, []
        return said

    def _at_once(self, pixels: NDArray[np.uint8]) -> int:
        """How many edits of a source of this size are tried at once: pictures as large have shown what fits."""
        if self.params.batching == "no":
            return 1
        return min([self.params.batch, *(few for area, few in self._room.items() if area <= pixels[..., 0].size)])

    def _halve(self, pixels: NDArray[np.uint8], tried: int) -> None:
        self._room[pixels[..., 0].size] = few = tried // 2
        height, width = pixels.shape[:2]
        self._said.append(
            f"{self.params.model}: out of memory for {tried} edits at once of a source of {width} x {height} px; "
            f"goes on with {few}"
        )

    def _editing(
        self, pixels: NDArray[np.uint8], mask: NDArray[np.bool_] | None, requests: Sequence[EditRequest]
    ) -> Editing:
        params = self.params
        height, width = size(pixels.shape, params.area, params.multiple)
        shown = pixels
        if params.batching != "embeds":  # Qwen's pipelines resize the source by their own rule
            shown = _resized(pixels, size(pixels.shape, params.reference_area or params.area, params.multiple))
            mask = None if mask is None else _resized(mask.astype(np.uint8), shown.shape) > 0
        return Editing(
            shown,
            mask,
            height,
            width,
            [params.prompt.replace("{instruction}", request.instruction) for request in requests],
            [request.seed for request in requests],
        )


def _spec(params: DiffusionEditor.Params) -> Spec:
    """Everything found and looked at that loading needs.

    Raises:
        ConfigError: Something is missing, unpinned, or unknown to diffusers.
    """
    known = row(params.model)
    if known is not None and known.runs == "server":
        raise ConfigError(
            f"'{params.model}' is not in diffusers and runs in its own repository's code",
            f"serve it and ask it by URL: {{name: api, params: {{model: {params.model}}}}}; see docs/hosted.md",
        )
    packages(params.model, ("torch", "transformers", "diffusers", *(("peft",) if params.loras else ())))
    folder = pipeline_folder(params.repository or params.model, params.revision, params.folder)
    spec = Spec(
        name=params.model,
        folder=str(folder),
        revisions=(params.revision, *(lora.revision for lora in params.loras)),
        pipeline=params.pipeline,
        loras=tuple((str(lora_file(lora, params.lora_folder)), lora.scale) for lora in params.loras),
        settings=params.model_dump_json(include=_SETTINGS),
    )
    refuse_unknown(spec)
    return spec


def size(shape: tuple[int, ...], area: int, multiple: int) -> tuple[int, int]:
    """Height and width in px of about `area` pixels in the shape of a picture (H, W, ...), multiples of `multiple`."""
    scale = (area / (shape[0] * shape[1])) ** 0.5
    height, width = (max(multiple, round(side * scale / multiple) * multiple) for side in shape[:2])
    return height, width


def _resized(pixels: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The picture at another size: area averaging down, Lanczos up; a mask by its nearest pixels."""
    if pixels.shape[:2] == tuple(shape[:2]):
        return pixels
    method = cv2.INTER_AREA if pixels.shape[0] > shape[0] else cv2.INTER_LANCZOS4
    method = cv2.INTER_NEAREST if pixels.ndim == 2 else method
    return np.asarray(cv2.resize(pixels, (shape[1], shape[0]), interpolation=method), np.uint8)
