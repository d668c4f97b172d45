"""Judges: who scores an edit from 0 to 10. Each score is asked for alone, and sees only what it needs."""

from typing import Protocol

from schemas.answers import Score
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.engine.registry import Registry


class Judge(Protocol):
    """Scores with reasons; an abstention where there is no score. Nothing is clamped, imputed or drawn.

    All three raise `ItemFailed` (`PROVIDER`, retryable) where a model outside could not be reached.
    """

    def quality(self, output: Picture, call: Calls) -> Score:
        """PQ: how good the picture is, seen alone."""
        ...

    def consistency(
        self, source: Picture, output: Picture, instruction: str, call: Calls, *, swapped: bool = False
    ) -> Score:
        """SC: how well the output does what the instruction asks of the source; `swapped` shows the output first."""
        ...

    def alignment(self, output: Picture, ground_truth: Picture, call: Calls, *, swapped: bool = False) -> Score:
        """GTA: how closely the output's expression comes to the ground truth's; `swapped` shows the latter first."""
        ...


JUDGES: Registry[Judge] = Registry("judge", {"mllm": "tasks.judges.mllm:MllmJudge"})
