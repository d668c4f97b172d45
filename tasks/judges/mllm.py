"""A multimodal model that scores edits."""

from collections.abc import Sequence

from schemas.answers import Score
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.providers.answers import read_score
from tasks.providers.asking import REPAIR, Mllm


class MllmJudge(Mllm):
    """One question a score, with its own pictures: what one score sees cannot colour another."""

    version = 1
    prompts = ("pq", "sc", "sc_swapped", "gta", "gta_swapped", REPAIR)
    role = "judge"
    shows = 2

    def quality(self, output: Picture, call: Calls) -> Score:
        return self._score(call, "pq", (output,))

    def consistency(
        self, source: Picture, output: Picture, instruction: str, call: Calls, *, swapped: bool = False
    ) -> Score:
        return self._score(call, "sc", (source, output), swapped=swapped, instruction=instruction)

    def alignment(self, output: Picture, ground_truth: Picture, call: Calls, *, swapped: bool = False) -> Score:
        return self._score(call, "gta", (output, ground_truth), swapped=swapped)

    def _score(
        self, call: Calls, prompt: str, pictures: Sequence[Picture], *, swapped: bool = False, **values: str
    ) -> Score:
        asked, shown = (f"{prompt}_swapped", pictures[::-1]) if swapped else (prompt, pictures)
        told = self._ask(call, asked, shown, read_score, **values)
        value, reason = told.heard.value or (None, "")
        return Score(
            value=value,
            reason=reason,
            abstained=told.heard.abstained,
            raw=told.raw,
            model=told.model,
            repaired=told.repaired,
        )
