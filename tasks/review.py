"""Review: between the finalists of a source somebody names the ground truth, or nobody does and the row says so."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from schemas.outcomes import Reason
from schemas.ratings import RatingMean
from schemas.records import Finalist, GroundTruth, Key, Opinion, Source
from schemas.reviewing import ReviewCut, ReviewMeasure
from schemas.reviews import Answer
from tasks.boards import BOARDS
from tasks.boards.answers import Answers
from tasks.boards.questions import question_of
from tasks.boards.ratings import means_of
from tasks.boards.sampling import PEOPLE, sampled
from tasks.boards.votes import verdict
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Scope, Stage, Waiting


class Review(Stage[Finalist, Opinion]):
    """The board's opinions, or people's answers where it has none yet, made into at most `keep_per_source` truths.

    Args:
        measure_params, cut_params: As every stage has them.
        answers: What people have answered so far; the cut takes them beside the measurements.
    """

    name = "review"
    version = 3
    scope = Scope.SOURCE
    measurement = Opinion
    output = GroundTruth
    measure_params: ReviewMeasure
    cut_params: ReviewCut

    def __init__(self, measure_params: ReviewMeasure, cut_params: ReviewCut, answers: Answers | None = None) -> None:
        super().__init__(measure_params, cut_params)
        self.answers = answers or Answers()

    def told(self, sources: Sequence[Source]) -> list[str]:
        return self.answers.about({source.key for source in sources})

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
        people = self._people(items)
        in_order = sorted(items, key=lambda item: item.row.rank)
        for item, opinion in zip(in_order, self._opinions(in_order), strict=True):
            if opinion.chosen is None:
                yield item.key, Waiting(opinion.note)
            elif opinion.chosen and kept < self.cut_params.keep_per_source:
                kept += 1
                runner_up = next((other.row.image for other in in_order if other.key != item.key), "")
                ratings = means_of(item.row.image, people, self.cut_params) if opinion.mode in PEOPLE else ()
                yield item.key, Kept(_ground_truth(item.row, opinion, runner_up, ratings), opinion.note)
            else:
                why = f" ({opinion.note})" if opinion.mode in PEOPLE else ""
                words = f"rank {item.row.rank}; {opinion.mode} review did not choose it{why}"
                yield item.key, Rejected(Reason.NOT_CHOSEN, words)

    def _people(self, items: Sequence[Item[Finalist, Opinion]]) -> tuple[Answer, ...]:
        """What people answered about one source."""
        return self.answers.to(question_of([item.row for item in items]).digest)

    def _opinions(self, in_order: Sequence[Item[Finalist, Opinion]]) -> list[Opinion]:
        """The board's opinions on one source, completed by what people have answered."""
        opinions = [item.measurement for item in in_order]
        if all(opinion.chosen is not None for opinion in opinions):
            return opinions
        if not sampled(in_order[0].key, self.cut_params):
            note = "best rank; not in the sample that people review"
            return [Opinion(mode="auto", chosen=True, note=note) for _ in opinions]
        mode = {"mode": "sample"} if self.cut_params.sample < 1 else {}
        decided = verdict(self._people(in_order), self.cut_params)
        return [
            opinion.model_copy(
                update=mode
                | {
                    "chosen": None if decided.usable is None else item.row.image in decided.usable,
                    "note": decided.note,
                }
            )
            for item, opinion in zip(in_order, opinions, strict=True)
        ]


def _ground_truth(finalist: Finalist, opinion: Opinion, runner_up: str, ratings: tuple[RatingMean, ...]) -> GroundTruth:
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
        ratings=ratings,
    )
