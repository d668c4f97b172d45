"""Editors: who changes the expression of the face in a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.expressions import Expression
from schemas.records import Key
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.engine.registry import Registry

NO_KEY: Final = Key("", "")


@dataclass(frozen=True)
class EditRequest:
    """One edit to make.

    Attributes:
        source: The photo.
        source_expression: What it shows now.
        target: What it shall show.
        instruction: The sentence an instructed editor gets.
        seed: Non-negative, independent of batch and worker.
        key: Of the candidate, for editors that look their answer up; empty outside a data set.
    """

    source: Picture
    source_expression: Expression
    target: Expression
    instruction: str
    seed: int
    key: Key = NO_KEY


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit with more than its picture.

    Attributes:
        pixels: RGB (H, W, 3) uint8.
        model: Who made it, as its provider says: a dated name, where it has one.
    """

    pixels: NDArray[np.uint8]
    model: str = ""

    @classmethod
    def of(cls, result: Any) -> "Edit":
        """An editor's result that is no failure, bare or not."""
        return result if isinstance(result, cls) else cls(result)


class ImageEditor(Protocol):
    """Makes the candidates of one source."""

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[NDArray[np.uint8] | Edit | ItemFailed]:
        """One result per request, in order; all requests share one source.

        Args:
            requests: The edits to make; where the pipeline can, all at once.
            call: The door to models outside; local editors leave it shut.

        Returns:
            RGB arrays (H, W, 3) uint8, bare or as an `Edit`, or the `ItemFailed` of that request (returned, not
            raised).
        """
        ...

    def notes(self) -> list[str]:
        """As `Adapter.notes`."""
        ...


EDITORS: Registry[ImageEditor] = Registry(
    "editor",
    {
        "api": "tasks.editors.api:ApiEditor",
        "copy": "tasks.editors.copy:CopyEditor",
        "diffusion": "tasks.editors.diffusion:DiffusionEditor",
        "outputs": "tasks.editors.outputs:OutputsEditor",
        "random_identity": "tasks.editors.random_identity:RandomIdentityEditor",
        "warp": "tasks.editors.warp:WarpEditor",
    },
)
