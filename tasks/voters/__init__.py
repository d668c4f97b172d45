"""Voters: who says which expression a picture shows. A voter sees one picture and nothing else."""

from typing import Protocol

from schemas.answers import Ballot
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.engine.registry import Registry


class Voter(Protocol):
    """Names the expression (fine) or polarity (coarse) of the face in a picture."""

    granularity: str

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        """The answer for one picture; an abstention where no answer can be given.

        Args:
            picture: All it is shown.
            call: The door to models outside; local voters leave it shut.

        Raises:
            ItemFailed: `PROVIDER`, retryable: a model outside could not be reached. A local voter never raises it.
        """
        ...


VOTERS: Registry[Voter] = Registry(
    "voter",
    {
        "fer": "tasks.voters.expert:FerVoter",
        "blendshapes": "tasks.voters.expert:BlendshapeVoter",
        "vlm": "tasks.voters.vlm:VlmVoter",
        "mllm": "tasks.voters.mllm:MllmVoter",
    },
)
