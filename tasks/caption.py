"""Caption: each finalist that somebody will look at gets its expression in words."""

from collections.abc import Iterator, Sequence

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
        spec = self.measure_params.describer
        describer = DESCRIBERS.get(spec.name, spec.params)
        for row in rows:
            try:
                yield row.key, CaptionText(text=describer.caption(ctx.images.get(row.image)))
            except ItemFailed as error:
                yield row.key, Failed(error.kind, str(error), error.retryable)

    def cut(self, items: Sequence[Item[Finalist, CaptionText]]) -> Iterator[tuple[Key, Outcome]]:
        for item in items:
            yield item.key, Kept(item.row.model_copy(update={"caption": item.measurement.text}))
