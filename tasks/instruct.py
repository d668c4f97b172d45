"""Instruct: source and ground truth compared into a dense instruction, kept beside the simple one."""

from collections.abc import Iterator, Sequence

from schemas.config import DescriberMeasure
from schemas.outcomes import Reason
from schemas.records import DenseText, GroundTruth, Key, Triplet
from tasks.describers import DESCRIBERS
from tasks.engine.errors import ItemFailed
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Stage

# No model of another family can read a text offline; a row never claims a check that nobody made.
NOT_CHECKED = "not_checked"


class Instruct(Stage[GroundTruth, DenseText]):
    """The return path of FED-Bench: what must move, and what must not."""

    name = "instruct"
    measurement = DenseText
    output = Triplet
    ignores = frozenset({"rank", "caption", "mode", "note"})
    measure_params: DescriberMeasure

    def identities(self) -> list[object]:
        describer = self.measure_params.describer
        return [DESCRIBERS.identity(describer.name, describer.params)]

    def measure(self, rows: Sequence[GroundTruth], ctx: Context) -> Iterator[tuple[Key, DenseText | Failed]]:
        spec = self.measure_params.describer
        describer = DESCRIBERS.get(spec.name, spec.params)
        for row in rows:
            try:
                text = describer.instruct(ctx.images.get(row.source_image), ctx.images.get(row.image))
                yield row.key, DenseText(text=text, back_check=NOT_CHECKED)
            except ItemFailed as error:
                yield row.key, Failed(error.kind, str(error), error.retryable)

    def cut(self, items: Sequence[Item[GroundTruth, DenseText]]) -> Iterator[tuple[Key, Outcome]]:
        for item in items:
            row = item.row
            if not item.measurement.text:
                words = "nothing that can be told moved between source and ground truth"
                yield item.key, Rejected(Reason.NO_DIFFERENCE, words)
                continue
            yield (
                item.key,
                Kept(
                    Triplet(
                        key=row.key,
                        source_image=row.source_image,
                        source_expression=row.source_expression,
                        image=row.image,
                        instruction=row.instruction,
                        dense_instruction=item.measurement.text,
                        back_check=item.measurement.back_check,
                        caption=row.caption,
                        rank=row.rank,
                        mode=row.mode,
                        note=row.note,
                    )
                ),
            )
