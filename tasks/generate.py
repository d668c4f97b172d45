"""Generate: six candidates per source, one per other expression, and more for cells that are topped up."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

import prompts
from schemas.config import GenerateCut, GenerateMeasure
from schemas.expressions import Expression, others
from schemas.outcomes import FailureKind, Reason
from schemas.records import Candidate, Key, Motion, Photo
from schemas.routes import deciding
from schemas.sections import Adapter as Spec
from tasks.editors import EDITORS, Edit, EditRequest
from tasks.engine.errors import ItemFailed
from tasks.engine.fingerprint import canonical, fingerprint
from tasks.engine.images import Picture
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Stage
from tasks.metrics.registration import has_other_shape, register, resized
from tasks.metrics.unchanged import changed_pixels, local_change

PROMPT: Final = "simple_instruction"
FLAT: Final = 2.0  # levels: the standard deviation below which a picture is one colour


class Generate(Stage[Photo, Candidate]):
    """Owes a candidate per target and attempt. Every edit is stored under its request key at once."""

    name = "generate"
    version = 2
    measurement = Candidate
    output = Candidate
    ignores = frozenset({"subject", "label_source"})
    measure_params: GenerateMeasure
    cut_params: GenerateCut

    def identities(self) -> list[object]:
        return [*self._editors.values(), prompts.sha256_of(PROMPT)]

    @cached_property
    def _editors(self) -> dict[str, dict[str, Any]]:
        editors = self.measure_params.editors
        return {name: EDITORS.identity(spec.name, spec.params) for name, spec in editors.items()}

    @cached_property
    def _groups(self) -> dict[str, str]:
        """Group by the name that rows call an editor: the editor as the user chose it."""
        return {name: canonical(_chosen(spec)).decode() for name, spec in self.measure_params.editors.items()}

    def choice(self) -> Any:
        """Nothing: how many candidates a row owes, and other editors, change no candidate."""
        return None

    def groups(self) -> dict[str, list[Any]]:
        prompt = prompts.sha256_of(PROMPT)
        return {group: [self._editors[name], prompt] for name, group in self._groups.items()}

    def group(self, key: Key) -> str:
        return self._groups[key.editor]

    def cut_identity(self) -> list[Any]:
        """With everything that says which candidates there are to decide on."""
        return [*super().cut_identity(), deciding(self.measure_params.model_dump(mode="json"))]

    def owes(self, row: Photo) -> Sequence[Key]:
        return owed(self.measure_params, row.key, row.expression)

    def measure(self, rows: Sequence[Photo], ctx: Context) -> Iterator[tuple[Key, Candidate | Failed]]:
        jobs: list[Callable[[], list[tuple[Key, Candidate | Failed]]]] = []
        for row in rows:
            due = [key for key in self.owes(row) if ctx.due is None or key in ctx.due]
            for editor, spec in self.measure_params.editors.items():
                keys = [key for key in due if key.editor == editor]
                if EDITORS.remote(spec.name):
                    jobs += [partial(self._edited, row, editor, key, ctx) for key in keys]
                else:
                    yield from self._candidates(row, editor, keys, ctx)
        # Editors outside are asked for all edits of all sources at a time; a job loads the source it shows.
        for answers in ctx.call.gather(jobs) if jobs else ():
            yield from answers

    def _edited(self, row: Photo, editor: str, key: Key, ctx: Context) -> list[tuple[Key, Candidate | Failed]]:
        return list(self._candidates(row, editor, [key], ctx))

    def _candidates(
        self, row: Photo, editor: str, keys: Sequence[Key], ctx: Context
    ) -> Iterator[tuple[Key, Candidate | Failed]]:
        """What one editor, by the name that rows call it, makes of a source."""
        source = ctx.images.get(row.image)
        spec, identity = self.measure_params.editors[editor], self._editors[editor]
        watermark = EDITORS.watermark(spec.name, spec.params)
        pending: dict[Key, tuple[str, EditRequest]] = {}
        for key in keys:
            target = Expression(key.target)
            instruction = prompts.render(PROMPT, source=row.expression, target=target)
            request = EditRequest(source, row.expression, target, instruction, ctx.seed(key), key)
            request_key = fingerprint(identity, row.image, row.expression, target, instruction, request.seed)
            known = ctx.images.recall_edit(request_key)
            if known is None:
                pending[key] = (request_key, request)
            else:
                picture, raw_size, model = known
                yield key, _candidate(key, request, source, picture, raw_size, model or spec.model, watermark)
        if not pending:
            return
        maker = EDITORS.get(spec.name, spec.params)
        results = maker.edit([request for _, request in pending.values()], ctx.call)
        for note in maker.notes():
            ctx.log(f"generate: {note}")
        if len(results) != len(pending):  # before one of them is remembered
            raise ValueError(f"{len(results)} results for {len(pending)} requests")
        for (key, (request_key, request)), result in zip(pending.items(), results, strict=True):
            if isinstance(result, ItemFailed):
                yield key, Failed(result.kind, str(result), result.retryable)
                continue
            made = Edit.of(result)
            problem = problem_of(made.pixels)
            if problem:
                yield key, Failed(FailureKind.BAD_OUTPUT, problem)
                continue
            picture = ctx.images.put(resized(made.pixels, source.pixels.shape))
            raw_size = (made.pixels.shape[0], made.pixels.shape[1])
            ctx.images.remember_edit(request_key, picture.digest, raw_size, source.digest, made.model)
            yield key, _candidate(key, request, source, picture, raw_size, made.model or spec.model, watermark)

    def cut(self, items: Sequence[Item[Photo, Candidate]]) -> Iterator[tuple[Key, Outcome]]:
        for item in items:
            made, cut = item.measurement, self.cut_params
            share, least = made.changed_pixels, cut.min_changed_pixels
            moved = how_moved(made.motion, cut)
            if share < least:
                yield item.key, Rejected(Reason.UNCHANGED_PICTURE, f"{share:.4%} of pixels changed, needs {least:.4%}")
            elif made.local_change < cut.min_local_change:
                words = f"changed by {made.local_change:.2f} levels at most, needs {cut.min_local_change:g}"
                yield item.key, Rejected(Reason.UNCHANGED_PICTURE, words)
            elif moved and cut.moved == "reject":
                yield item.key, Rejected(Reason.PICTURE_MOVED, moved)
            else:
                yield item.key, Kept(made, "; ".join(filter(None, [moved, _other_shape(made, item.row)])))


def owed(measure: GenerateMeasure, source: Key, expression: Expression) -> list[Key]:
    """The candidates that a source owes, in order: by target, the first editor's attempts before the others'.

    Args:
        measure: Of the run.
        source: Key of the source.
        expression: What it shows.
    """
    keys = []
    for target in others(expression):
        if measure.targets and target not in measure.targets:
            continue
        counts = Counter({measure.editor.name: measure.attempts})
        for entry in measure.top_up:
            if entry.target is target and entry.source in (None, expression):
                counts[entry.called or (entry.editor or measure.editor).name] += entry.attempts
        keys += [Key(*source[:2], target, name, attempt) for name, count in counts.items() for attempt in range(count)]
    return keys


def _chosen(spec: Spec) -> dict[str, Any]:
    """An editor as the user chose it, with the user's files by digest and not by where they lie."""
    adapter = EDITORS.adapter_class(spec.name)
    params = {name: value for name, value in spec.params.items() if name not in set(adapter.local) - set(adapter.told)}
    contents = adapter.contents(EDITORS.parse(spec.name, spec.params))
    values: dict[str, Any] = deciding(spec.model_dump(mode="json") | {"params": params})
    return values | ({"contents": contents} if contents else {})


def how_moved(motion: Motion | None, cut: GenerateCut) -> str:
    """In words, what of a picture's motion is beyond the limits; empty where nothing is, or where nothing is known."""
    if motion is None:
        return ""
    shift = math.hypot(motion.dx, motion.dy)
    beyond = (
        (shift > cut.max_shift, f"shifted by {shift:.1f} px"),
        (abs(motion.zoom - 1) > cut.max_zoom, f"zoomed by {motion.zoom - 1:+.1%}"),
        (abs(motion.stretch - 1) > cut.max_zoom, f"stretched by {motion.stretch - 1:+.1%}"),
        (abs(motion.turn) > cut.max_turn, f"turned by {motion.turn:+.1f}°"),
    )
    words = ", ".join(said for far, said in beyond if far)
    return f"the whole picture is {words}" if words else ""


def _other_shape(made: Candidate, photo: Photo) -> str:
    if not has_other_shape((made.raw_height, made.raw_width), (photo.height, photo.width)):
        return ""
    return f"given as {made.raw_width} × {made.raw_height}, another shape than {photo.width} × {photo.height}"


def _candidate(  # noqa: PLR0917 - each is a fact of another kind
    key: Key,
    request: EditRequest,
    source: Picture,
    picture: Picture,
    raw_size: tuple[int, int],
    model: str,
    watermark: str,
) -> Candidate:
    return Candidate(
        key=key,
        source_image=source.digest,
        source_expression=request.source_expression,
        image=picture.digest,
        instruction=request.instruction,
        seed=request.seed,
        raw_width=raw_size[1],
        raw_height=raw_size[0],
        changed_pixels=changed_pixels(source.pixels, picture.pixels),
        local_change=local_change(source.pixels, picture.pixels),
        motion=register(source.pixels, picture.pixels),
        model=model,
        watermark=watermark,
    )


def problem_of(pixels: object) -> str:
    """Why what an editor returned is no picture, in words; empty where it is one."""
    if not isinstance(pixels, np.ndarray):
        return f"the editor returned {type(pixels).__name__}, not an array"
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        return f"the editor returned {pixels.dtype} {pixels.shape}, not (H, W, 3) uint8"
    if float(pixels.std(axis=(0, 1)).max()) < FLAT:
        return "the editor returned one flat colour"
    return ""
