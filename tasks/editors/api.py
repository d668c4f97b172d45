"""An editor behind an address: a provider's model that draws, or an image-edit server of your own."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field, model_validator

from schemas.hosted import spelled_out
from schemas.outcomes import FailureKind
from schemas.routes import Route
from tasks.editors import Edit, EditRequest
from tasks.engine.blobs import Blobs
from tasks.engine.calls import Calls
from tasks.engine.decode import decode
from tasks.engine.errors import ItemFailed, UnreadableImage
from tasks.providers.drawing import Drawn, Sketch
from tasks.providers.images import check_drawing, draw, drawing_dollars
from tasks.providers.routed import Routed
from tasks.providers.words import is_refusal

TRIES = 2


class ApiEditor(Routed):
    """Sends the photo and the instruction, as it stands, and takes the picture that comes back.

    A refusal, a block or an answer in words is a failure with the model's own words; nothing is made up for it. An
    answer without a picture, or with one that cannot be read, is asked for once more.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which model, and how it is asked. `model: NAME` stands for the row of that name in `hosted_editors.yaml`.

        Attributes:
            name: What people call the model.
            routes: Ways to it, the preferred one first.
            watermark: What its pictures are marked with; goes into every triplet.
            seeded: Whether the providers take a seed.
            side: Pixels of the longer side of the photo that is sent.
        """

        name: str = Field(min_length=1)
        routes: tuple[Route, ...] = Field(min_length=1)
        watermark: str = ""
        seeded: bool = False
        side: int = Field(default=1024, ge=64, le=4096)

        @model_validator(mode="before")
        @classmethod
        def _spelled_out(cls, values: Any) -> Any:
            return spelled_out(values) if isinstance(values, dict) else values

    params: Params
    version = 1
    local = told = ("name", "watermark")
    seconds = 15.0

    @classmethod
    def watermark_of(cls, params: Any) -> str:
        return str(params.watermark)

    @classmethod
    def estimate(cls, route: Route) -> float:
        return drawing_dollars(route)

    @classmethod
    def check(cls, params: Any) -> None:
        check_drawing(params.routes)

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[Edit | ItemFailed]:
        """A picture at the model's own size with the model's dated name, or why there is none.

        That is REFUSED, BAD_OUTPUT or PROVIDER, the last maybe retryable.

        Raises:
            StoppedError: A budget, a key, a quota or an unknown model.
        """
        return [self._edit(request, call) for request in requests]

    def _edit(self, request: EditRequest, call: Calls) -> Edit | ItemFailed:
        params = self.params
        result: Edit | ItemFailed = ItemFailed(FailureKind.BAD_OUTPUT, "it was not asked")
        for again in range(TRIES):
            sketch = Sketch(request.source, request.instruction, request.seed, params.side, params.seeded, again)
            try:
                drawn = draw(call, params.routes, sketch)
            except ItemFailed as error:
                return error
            result = read(drawn, call.blobs)
            if isinstance(result, Edit) or drawn.refusal or (not drawn.picture and is_refusal(drawn.text)):
                return result
        return result


def read(drawn: Drawn, blobs: Blobs) -> Edit | ItemFailed:
    """The picture of an answer, or REFUSED or BAD_OUTPUT with the words that came instead."""
    if drawn.refusal or not drawn.picture:
        # Of a stranger's words nothing that steers a terminal.
        words = "".join(one if one.isprintable() else " " for one in drawn.refusal or drawn.text)
        words = " ".join(words.split())[:200]
        return ItemFailed(FailureKind.REFUSED, f"{drawn.model}: {words or 'no picture, and no word why'}")
    try:
        return Edit(decode(blobs.get(drawn.picture)), drawn.model)
    except UnreadableImage as error:
        return ItemFailed(FailureKind.BAD_OUTPUT, f"{drawn.model}: its picture is {error.reason}: {error}"[:300])
