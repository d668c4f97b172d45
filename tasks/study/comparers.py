"""The usual metrics of edited pictures, each a named adapter: an output against its source, ground truth or text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel

from tasks.engine.errors import ConfigError
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter, Registry
from tasks.study.agreement import Better

Area = Literal["whole", "face"]
Against = Literal["source", "truth", "text", "ratio"]


class Comparer(Adapter):
    """One metric. It compares one output at a time, so that no number depends on its neighbours.

    Attributes:
        label: What tables call it, unless `params.name` says otherwise.
        better: Which of two numbers is.
        areas: What is shown of the pictures: all of them, or the source's face box cut out of each.
        against: What outputs are compared with. "ratio" is the distance to the source over the ground truth's, which
            has none where that is under `least`.
        aligns: Whether it finds the faces itself, so that it is shown whole pictures under the name of the face.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """How it is called; the label of its kind if empty, so two models of a kind need one."""

        name: str = ""

    local: tuple[str, ...] = ("name",)
    label: ClassVar[str]
    better: ClassVar[Better] = "higher"
    areas: ClassVar[tuple[Area, ...]] = ("whole", "face")
    against: ClassVar[tuple[Against, ...]] = ("source", "truth")
    least: ClassVar[float] = 0.0
    aligns: ClassVar[bool] = False

    def compare(self, output: Picture, other: Picture | str) -> float | None:
        """The number, in the units that the class names; None where there is none, as without a face.

        Args:
            output: What an editor made, or a crop of it.
            other: The source or the ground truth, of the same size; or the instruction, for those against text.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Number:
    """One column of numbers that a comparer gives: "CLIP-I", "CLIP-I_GT", "CLIP-I_F", "CLIP-I_F,GT"."""

    metric: str
    area: Area
    against: Against
    better: Better


COMPARERS: Final[Registry[Comparer]] = Registry(
    "metric",
    {
        "arcface": "tasks.study.plain:ArcFace",
        "clip_i": "tasks.study.networks:ClipPictures",
        "clip_t": "tasks.study.networks:ClipText",
        "dino": "tasks.study.networks:Dino",
        "l1": "tasks.study.plain:L1",
        "lpips": "tasks.study.plain:LpipsAlex",
        "lpips_squeeze": "tasks.study.plain:LpipsSqueeze",
        "lpips_vgg": "tasks.study.plain:LpipsVgg",
        "psnr": "tasks.study.plain:Psnr",
        "sface": "tasks.study.plain:SFace",
        "ssim": "tasks.study.plain:Ssim",
    },
)


def numbers(name: str, params: dict[str, Any]) -> list[Number]:
    """The columns that a comparer gives; loads no model."""
    kind = COMPARERS.adapter_class(name)
    assert issubclass(kind, Comparer)
    parsed: Any = COMPARERS.parse(name, params)
    return [
        Number(_title(parsed.name or kind.label, area, against), area, against, _better(kind, against))
        for area in kind.areas
        for against in kind.against
        if against != "ratio" or area == "face"
    ]


def _title(label: str, area: Area, against: Against) -> str:
    marks = [mark for mark, holds in (("F", area == "face"), ("GT", against == "truth")) if holds]
    middle = "-Ratio" if against == "ratio" else ""
    return f"{label}{middle}{'_' if marks else ''}{','.join(marks)}"


def _better(kind: type[Comparer], against: Against) -> Better:
    return "near one" if against == "ratio" else kind.better


def check_all(chosen: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Better]:
    """Which number of each column is better.

    Raises:
        ConfigError: A name or parameter is unknown, or two of them would be called the same.
    """
    found: dict[str, Better] = {}
    for name, params in chosen:
        for one in numbers(name, params):
            if one.metric in found:
                raise ConfigError(f"two metrics are called '{one.metric}'", f"give one another: {name}:name=OTHER")
            found[one.metric] = one.better
    return found
