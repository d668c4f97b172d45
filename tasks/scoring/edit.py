"""Edit: an editor's output for every triplet, under its simple or its dense instruction."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

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
from tasks.scoring.steps import Entry, Step

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
        asked: list[tuple[TripletFacts, EditRequest]] = []
        for triplet in triplets:
            instruction = instruction_of(triplet, self.entry.granularity)
            if not instruction.strip():
                words = f"the triplet has no {self.entry.granularity} instruction"
                answers.append((triplet.key, Failed(FailureKind.BAD_OUTPUT, words)))
                continue
            target, seed = Expression(triplet.key.target), ctx.seed(triplet.key)
            asked.append((triplet, EditRequest(source, row.expression, target, instruction, seed, triplet.key)))
        outputs = edited(self.entry, [request for _, request in asked], ctx, self.name)
        for (triplet, request), output in zip(asked, outputs, strict=True):
            answers.append((triplet.key, output if isinstance(output, Failed) else _row(triplet, request, *output)))
        return answers


def edited(
    entry: Entry, requests: Sequence[EditRequest], ctx: Context, step: str
) -> list[tuple[Picture, tuple[int, int]] | Failed]:
    """An editor's outputs for requests of one source, at the source's size, with the (height, width) it gave.

    Those of an earlier run are taken from the store; a new one is stored under its request key at once.

    Args:
        entry: The editor.
        requests: What is asked of it.
        ctx: Pictures, calls, the log.
        step: Who asks, for the log.
    """
    results: dict[str, tuple[Picture, tuple[int, int]] | Failed] = {}
    keys = [_request_key(entry, request) for request in requests]
    for key in keys:
        if known := ctx.images.recall_edit(key):
            results[key] = known[:2]
    pending = [(key, request) for key, request in zip(keys, requests, strict=True) if key not in results]
    if pending:
        editor = EDITORS.get(entry.spec.name, entry.spec.params)
        made = editor.edit([request for _, request in pending], ctx.call)
        for note in editor.notes():
            ctx.log(f"{step}: {note}")
        if len(made) != len(pending):  # before one of them is remembered
            raise ValueError(f"{len(made)} results for {len(pending)} requests")
        for (key, request), result in zip(pending, made, strict=True):
            results[key] = _kept(key, request, result, ctx)
    return [results[key] for key in keys]


def _request_key(entry: Entry, request: EditRequest) -> str:
    shown = (request.source_expression, request.target, request.instruction, request.seed)
    return fingerprint(entry.identity, request.source.digest, *shown)


def _kept(key: str, request: EditRequest, result: Any, ctx: Context) -> tuple[Picture, tuple[int, int]] | Failed:
    if isinstance(result, ItemFailed):
        return Failed(result.kind, str(result), result.retryable)
    made = Edit.of(result)
    problem = problem_of(made.pixels)
    if problem:
        return Failed(FailureKind.BAD_OUTPUT, problem)
    picture = ctx.images.put(resized(made.pixels, request.source.pixels.shape))
    raw_size = (made.pixels.shape[0], made.pixels.shape[1])
    ctx.images.remember_edit(key, picture.digest, raw_size, request.source.digest, made.model)
    return picture, raw_size


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
