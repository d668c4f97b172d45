"""A voter that is a multimodal model behind an address: a provider's, or a server's on this machine."""

from typing import Any, Literal

from schemas.answers import Ballot
from schemas.expressions import Expression, Polarity
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.providers.answers import Heard, read_expression, read_polarity
from tasks.providers.asking import REPAIR, Mllm


class MllmVoter(Mllm):
    """Shown one picture and asked for a word; the prompt is the same for all pictures and targets."""

    class Params(Mllm.Params, extra="forbid", frozen=True):
        """As its base, and `granularity`: "fine" asks for one of seven expressions, "coarse" for a polarity."""

        granularity: Literal["fine", "coarse"] = "coarse"

    params: Params
    version = 1
    prompts = ("vote_coarse", "vote_fine", REPAIR)
    role = "voter"

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self.granularity: str = params.granularity

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        """The model's answer, or its abstention, with what it said.

        Raises:
            ItemFailed: `PROVIDER`, retryable: it could not be reached.
        """
        fine = self.params.granularity == "fine"
        read: Any = read_expression if fine else read_polarity
        told = self._ask(call, "vote_fine" if fine else "vote_coarse", (picture,), read)
        heard: Heard[Expression | Polarity] = told.heard
        return Ballot(
            answer=heard.value, abstained=heard.abstained, raw=told.raw, model=told.model, repaired=told.repaired
        )
