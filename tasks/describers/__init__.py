"""Describers: who puts an expression, or the difference of two, into words."""

from typing import Protocol

from tasks.engine.images import Picture
from tasks.engine.registry import Registry


class Describer(Protocol):
    """Writes captions and dense instructions. Raises `ItemFailed` where it cannot."""

    def caption(self, picture: Picture) -> str:
        """What the face in the picture does, in one or two sentences; says no target and no class it was not shown."""
        ...

    def instruct(self, source: Picture, ground_truth: Picture) -> str:
        """A dense instruction: what must move from `source` to `ground_truth`, and what must stay.

        Empty where the two faces do not differ by anything that can be told.
        """
        ...


DESCRIBERS: Registry[Describer] = Registry(
    "describer", {"blendshapes": "tasks.describers.blendshapes:BlendshapeDescriber"}
)
