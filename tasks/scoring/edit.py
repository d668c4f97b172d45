"""Edit: an editor's output for every triplet, under its simple or its dense instruction."""

from collections.abc import Iterator, Sequence
from functools import partial

from schemas.expressions import Expression
from schemas.outcomes import FailureKind
from schemas.records import Key
from schemas.score_steps import Made, ScoredSource, TripletFacts
from schemas.scoring import Granularity
from tasks.editors import EDITORS, Edit, EditRequest
from tasks.engine.errors import ItemFailed
from tasks.engine.fingerprint import fingerprint
from tasks.engine.images import Picture
from tasks.engine.stage import Context, Failed
from tasks.generate import problem_of
from tasks.metrics.registration import resized
from tasks.scoring.steps import Step

Answers = list[tuple[Key, Made | Failed]]


def instruction_of(triplet: TripletFacts, granularity: Granularity) -> str:
    """What an editor is told."""
    return triplet.dense if granularity is Granularity.DENSE else triplet.simple


class ScoreEdit(Step[ScoredSource, Made]):
    """Owes an output per triplet. Each is stored under its request key at once, as a build's edits are."""

    name = "score_edit"
    measurement = Made
    output = Made

    def owes(self, row: ScoredSource) -> Sequence[Key]:
        return [triplet.key for triplet in row.triplets]

    def measure(self, rows: Sequence[ScoredSource], ctx: Context) -> Iterator[tuple[Key, Made | Failed]]:
        due = {row.key: [one for one in row.triplets if ctx.due is None or one.key in ctx.due] for row in rows}
        if EDITORS.remote(self.entry.spec.name):
            # Editors outside are asked for all outputs of a shard at a time; a job loads the source it shows.
            jobs = [partial(self._made, row, [one], ctx) for row in rows for one in due[row.key]]
            for answers in ctx.call.gather(jobs):
                yield from answers
            return
        for row in rows:
            yield from self._made(row, due[row.key], ctx)

    def _made(self, row: ScoredSource, triplets: Sequence[TripletFacts], ctx: Context) -> Answers:
        """The outputs for triplets of one source."""
        source, answers = ctx.images.get(row.image), Answers()
        pending: list[tuple[TripletFacts, str, EditRequest]] = []
        for triplet in triplets:
            instruction = instruction_of(triplet, self.entry.granularity)
            if not instruction.strip():
                words = f"the triplet has no {self.entry.granularity} instruction"
                answers.append((triplet.key, Failed(FailureKind.BAD_OUTPUT, words)))
                continue
            target, seed = Expression(triplet.key.target), ctx.seed(triplet.key)
            request = EditRequest(source, row.expression, target, instruction, seed, triplet.key)
            request_key = fingerprint(self.entry.identity, row.image, row.expression, target, instruction, seed)
            known = ctx.images.recall_edit(request_key)
            if known is None:
                pending.append((triplet, request_key, request))
            else:
                answers.append((triplet.key, _row(triplet, request, *known[:2])))
        return answers + (self._edited(source, pending, ctx) if pending else [])

    def _edited(
        self, source: Picture, pending: Sequence[tuple[TripletFacts, str, EditRequest]], ctx: Context
    ) -> Answers:
        editor = EDITORS.get(self.entry.spec.name, self.entry.spec.params)
        results = editor.edit([request for _, _, request in pending], ctx.call)
        for note in editor.notes():
            ctx.log(f"{self.name}: {note}")
        if len(results) != len(pending):  # before one of them is remembered
            raise ValueError(f"{len(results)} results for {len(pending)} requests")
        answers = Answers()
        for (triplet, request_key, request), result in zip(pending, results, strict=True):
            if isinstance(result, ItemFailed):
                answers.append((triplet.key, Failed(result.kind, str(result), result.retryable)))
                continue
            made = Edit.of(result)
            problem = problem_of(made.pixels)
            if problem:
                answers.append((triplet.key, Failed(FailureKind.BAD_OUTPUT, problem)))
                continue
            picture = ctx.images.put(resized(made.pixels, source.pixels.shape))
            raw_size = (made.pixels.shape[0], made.pixels.shape[1])
            ctx.images.remember_edit(request_key, picture.digest, raw_size, source.digest, made.model)
            answers.append((triplet.key, _row(triplet, request, picture, raw_size)))
        return answers


def _row(triplet: TripletFacts, request: EditRequest, picture: Picture, raw_size: tuple[int, int]) -> Made:
    return Made(
        key=triplet.key,
        source_image=request.source.digest,
        truth_image=triplet.truth_image,
        image=picture.digest,
        instruction=request.instruction,
        seed=request.seed,
        raw_width=raw_size[1],
        raw_height=raw_size[0],
    )
