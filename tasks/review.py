"""Review: between the finalists of a source somebody names the ground truth, or nobody does and the row says so."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from schemas.config import ReviewCut, ReviewMeasure
from schemas.outcomes import Reason
from schemas.records import Finalist, GroundTruth, Key, Opinion
from tasks.boards import BOARDS
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Scope, Stage, Waiting


class Review(Stage[Finalist, Opinion]):
    """The board's opinions, made into at most `keep_per_source` ground truths."""

    name = "review"
    version = 2
    scope = Scope.SOURCE
    measurement = Opinion
    output = GroundTruth
    measure_params: ReviewMeasure
    cut_params: ReviewCut

    def identities(self) -> list[object]:
        board = self.measure_params.board
        return [BOARDS.identity(board.name, board.params)]

    def measure(self, rows: Sequence[Finalist], ctx: Context) -> Iterator[tuple[Key, Opinion | Failed]]:
        spec = self.measure_params.board
        board = BOARDS.get(spec.name, spec.params)
        in_order = sorted(rows, key=lambda row: (row.key.source(), row.rank))
        for _, group in groupby(in_order, key=lambda row: row.key.source()):
            finalists = list(group)
            for finalist, opinion in zip(finalists, board.review(finalists), strict=True):
                yield finalist.key, opinion

    def cut(self, items: Sequence[Item[Finalist, Opinion]]) -> Iterator[tuple[Key, Outcome]]:
        kept = 0
        in_order = sorted(items, key=lambda item: item.row.rank)
        for item in in_order:
            opinion = item.measurement
            if opinion.chosen is None:
                yield item.key, Waiting(opinion.note)
            elif opinion.chosen and kept < self.cut_params.keep_per_source:
                kept += 1
                runner_up = next((other.row.image for other in in_order if other.key != item.key), "")
                yield item.key, Kept(_ground_truth(item.row, opinion, runner_up), opinion.note)
            else:
                yield (
                    item.key,
                    Rejected(Reason.NOT_CHOSEN, f"rank {item.row.rank}; {opinion.mode} review did not choose it"),
                )


def _ground_truth(finalist: Finalist, opinion: Opinion, runner_up: str) -> GroundTruth:
    return GroundTruth(
        key=finalist.key,
        source_image=finalist.source_image,
        source_expression=finalist.source_expression,
        image=finalist.image,
        instruction=finalist.instruction,
        rank=finalist.rank,
        caption=finalist.caption,
        mode=opinion.mode,
        note=opinion.note,
        runner_up=runner_up,
    )
