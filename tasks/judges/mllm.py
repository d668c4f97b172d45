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
    prompts = ("pq", "sc", "gta", REPAIR)
    role = "judge"
    shows = 2

    def quality(self, output: Picture, call: Calls) -> Score:
        return self._score(call, "pq", (output,))

    def consistency(self, source: Picture, output: Picture, instruction: str, call: Calls) -> Score:
        return self._score(call, "sc", (source, output), instruction=instruction)

    def alignment(self, output: Picture, ground_truth: Picture, call: Calls) -> Score:
        return self._score(call, "gta", (output, ground_truth))

    def _score(self, call: Calls, prompt: str, pictures: Sequence[Picture], **values: str) -> Score:
        told = self._ask(call, prompt, pictures, read_score, **values)
        value, reason = told.heard.value or (None, "")
        return Score(
            value=value,
            reason=reason,
            abstained=told.heard.abstained,
            raw=told.raw,
            model=told.model,
            repaired=told.repaired,
        )
