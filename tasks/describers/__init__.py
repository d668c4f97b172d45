"""Describers: who puts an expression, or the difference of two, into words, and who checks the words."""

from collections.abc import Sequence
from typing import Protocol

from schemas.answers import Choice
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.engine.registry import Registry


class Describer(Protocol):
    """Writes captions and dense instructions. Raises `ItemFailed` where it cannot."""

    def caption(self, picture: Picture, call: Calls) -> str:
        """What the face in the picture does, in one or two sentences; says no target and no class it was not shown."""
        ...

    def instruct(self, source: Picture, ground_truth: Picture, call: Calls, mistaken: str = "") -> str:
        """A dense instruction: what must move from `source` to `ground_truth`, and what must stay.

        Args:
            source, ground_truth: The two faces.
            call: The door to models outside.
            mistaken: An earlier text by which somebody chose another picture; who always says the same, says it again.

        Returns:
            The text; empty where the two faces do not differ by anything that can be told.
        """
        ...


class Checker(Protocol):
    """Reads a dense instruction and says which picture it leads to."""

    def pick(self, text: str, pictures: Sequence[Picture], call: Calls) -> Choice:
        """Which of two or three pictures the text describes, from 0; an abstention where there is no answer.

        Raises:
            ItemFailed: `PROVIDER`, retryable: a model outside could not be reached.
        """
        ...


DESCRIBERS: Registry[Describer] = Registry(
    "describer",
    {
        "blendshapes": "tasks.describers.blendshapes:BlendshapeDescriber",
        "mllm": "tasks.describers.mllm:MllmDescriber",
    },
)
CHECKERS: Registry[Checker] = Registry("checker", {"mllm": "tasks.describers.mllm:MllmChecker"})
