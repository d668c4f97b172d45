"""Caption: each finalist that somebody will look at gets its expression in words."""

from collections.abc import Iterator, Sequence
from functools import partial

from schemas.config import DescriberMeasure
from schemas.records import CaptionText, Finalist, Key
from tasks.describers import DESCRIBERS
from tasks.engine.errors import ItemFailed
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Stage


class Caption(Stage[Finalist, CaptionText]):
    """An objective reference for reviewers (FED-Bench)."""

    name = "caption"
    measurement = CaptionText
    output = Finalist
    ignores = frozenset({"rank", "score"})
    measure_params: DescriberMeasure

    def identities(self) -> list[object]:
        describer = self.measure_params.describer
        return [DESCRIBERS.identity(describer.name, describer.params)]

    def measure(self, rows: Sequence[Finalist], ctx: Context) -> Iterator[tuple[Key, CaptionText | Failed]]:
        jobs = [partial(self._caption, row, ctx) for row in rows]
        outside = DESCRIBERS.remote(self.measure_params.describer.name)
        captions = ctx.call.gather(jobs) if outside else (job() for job in jobs)
        yield from zip((row.key for row in rows), captions, strict=True)

    def _caption(self, row: Finalist, ctx: Context) -> CaptionText | Failed:
        spec = self.measure_params.describer
        try:
            describer = DESCRIBERS.get(spec.name, spec.params)
            return CaptionText(text=describer.caption(ctx.images.get(row.image), ctx.call))
        except ItemFailed as error:
            return Failed(error.kind, str(error), error.retryable)

    def cut(self, items: Sequence[Item[Finalist, CaptionText]]) -> Iterator[tuple[Key, Outcome]]:
        for item in items:
            yield item.key, Kept(item.row.model_copy(update={"caption": item.measurement.text}))
