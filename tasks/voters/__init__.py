"""Voters: who says which expression a picture shows. A voter sees one picture and nothing else."""

from typing import Protocol

from schemas.answers import Ballot
from tasks.engine.images import Picture
from tasks.engine.registry import Registry


class Voter(Protocol):
    """Names the expression (fine) or polarity (coarse) of the face in a picture."""

    granularity: str

    def vote(self, picture: Picture) -> Ballot:
        """The answer for one picture; an abstention (never an exception) where no answer can be given."""
        ...


VOTERS: Registry[Voter] = Registry(
    "voter",
    {
        "fer": "tasks.voters.expert:FerVoter",
        "blendshapes": "tasks.voters.expert:BlendshapeVoter",
        "vlm": "tasks.voters.vlm:VlmVoter",
    },
)
