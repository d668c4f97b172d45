"""Cosines in the spaces of CLIP and DINO, by models of transformers in this process."""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, Field

from tasks.engine.images import Picture
from tasks.providers.in_process import Place
from tasks.study.comparers import Against, Comparer
from tasks.study.encoders import Encoder, load


class Network(Comparer):
    """A model of the hub's cache, or of a folder; nothing is downloaded."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which model.

        Attributes:
            name: What tables call the metric; the label of its kind if empty.
            model: Its id on the hub, of which it must lie in the hub's cache; of a model in `folder`, what you call it.
            revision: The commit at the hub; of a folder, its digest, which the error names if it is another.
            folder: Where the model lies, if not in the hub's cache.
            device: "auto" is a GPU if there is one.
        """

        name: str = ""
        model: str = Field(min_length=1)
        revision: str = Field(min_length=1)
        folder: str = ""
        device: str = "auto"

    params: Params
    version = 1
    local = ("name", "folder", "device")
    device = "gpu"  # for forecasts: it also runs on a CPU
    seconds = 0.2
    space: ClassVar[Literal["joint", "class token"]] = "joint"

    @classmethod
    def check(cls, params: Any) -> None:
        _place(params).check()

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self._encoder: Encoder = load(_place(params), self.space)

    def compare(self, output: Picture, other: Picture | str) -> float | None:
        """Cosine, −1..1, to six digits: the last bits of a network's numbers are the machine's."""
        wanted = self._encoder.text(other) if isinstance(other, str) else self._encoder.picture(other)
        return round(float(np.dot(self._encoder.picture(output), wanted)), 6)


class ClipPictures(Network):
    """CLIP-I: cosine of CLIP's image vectors (Radford et al. 2021)."""

    label = "CLIP-I"


class ClipText(Network):
    """CLIP-T: cosine of the output's image vector and the instruction's text vector, cut at the model's last token."""

    label = "CLIP-T"
    against: ClassVar[tuple[Against, ...]] = ("text",)


class Dino(Network):
    """DINO: cosine of the class tokens of a self-supervised vision transformer (DINO, DINOv2, DINOv3)."""

    label = "DINO"
    space: ClassVar[Literal["joint", "class token"]] = "class token"


def _place(params: Any) -> Place:
    return Place(params.model, params.revision, params.folder, "float32", params.device)
