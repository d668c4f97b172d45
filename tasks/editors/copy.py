"""A baseline that does nothing: the source again. Its identity and background are perfect, and it edits nothing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.editors import EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.registry import Adapter


class CopyEditor(Adapter):
    """Gives the source back, whatever is asked. What ranks it above an editor rewards doing nothing.

    A build rejects all of its edits as `unchanged_picture`; scores are what it is for.
    """

    version = 1
    uses_seed = False
    needs_face = False
    heeds_target = False
    seconds = 0.001

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[NDArray[np.uint8] | ItemFailed]:
        """A copy of the source for each request."""
        return [request.source.pixels.copy() for request in requests]
