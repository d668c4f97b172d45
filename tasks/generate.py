"""Generate: six candidates per source, one per other expression, and more for cells that are topped up."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import prompts
from schemas.config import GenerateCut, GenerateMeasure
from schemas.expressions import Expression, others
from schemas.outcomes import FailureKind, Reason
from schemas.records import Candidate, Key, Photo
from schemas.routes import deciding
from tasks.editors import EDITORS, EditRequest
from tasks.engine.errors import ItemFailed
from tasks.engine.fingerprint import canonical, fingerprint
from tasks.engine.images import Picture
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Stage

PROMPT = "simple_instruction"
VISIBLE_LEVELS = 2
SHIFT_SIDE = 256


class Generate(Stage[Photo, Candidate]):
    """Owes a candidate per target and attempt. Every edit is stored under its request key at once."""

    name = "generate"
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
        editors = self.measure_params.editors
        return {name: canonical(deciding(spec.model_dump(mode="json"))).decode() for name, spec in editors.items()}

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
        pending: dict[Key, tuple[str, EditRequest]] = {}
        for key in keys:
            target = Expression(key.target)
            instruction = prompts.render(PROMPT, source=row.expression, target=target)
            request = EditRequest(source, row.expression, target, instruction, ctx.seed(key))
            request_key = fingerprint(identity, row.image, row.expression, target, instruction, request.seed)
            known = ctx.images.recall_edit(request_key)
            if known is None:
                pending[key] = (request_key, request)
            else:
                yield key, _candidate(key, request, source, *known)
        if not pending:
            return
        results = EDITORS.get(spec.name, spec.params).edit([request for _, request in pending.values()], ctx.call)
        for (key, (request_key, request)), result in zip(pending.items(), results, strict=True):
            if isinstance(result, ItemFailed):
                yield key, Failed(result.kind, str(result), result.retryable)
                continue
            problem = _problem(result)
            if problem:
                yield key, Failed(FailureKind.BAD_OUTPUT, problem)
                continue
            picture = ctx.images.put(_resized(result, source.pixels.shape))
            raw_size = (result.shape[0], result.shape[1])
            ctx.images.remember_edit(request_key, picture.digest, raw_size, source.digest)
            yield key, _candidate(key, request, source, picture, raw_size)

    def cut(self, items: Sequence[Item[Photo, Candidate]]) -> Iterator[tuple[Key, Outcome]]:
        for item in items:
            share, least = item.measurement.changed_pixels, self.cut_params.min_changed_pixels
            if share < least:
                yield item.key, Rejected(Reason.UNCHANGED_PICTURE, f"{share:.4%} of pixels changed, needs {least:.4%}")
            else:
                yield item.key, Kept(item.measurement)


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


def _candidate(
    key: Key, request: EditRequest, source: Picture, picture: Picture, raw_size: tuple[int, int]
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
        shift=shift(source.pixels, picture.pixels),
    )


def _problem(pixels: object) -> str:
    if not isinstance(pixels, np.ndarray):
        return f"the editor returned {type(pixels).__name__}, not an array"
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        return f"the editor returned {pixels.dtype} {pixels.shape}, not (H, W, 3) uint8"
    if (pixels == pixels[0, 0]).all():
        return "the editor returned one flat colour"
    return ""


def _resized(pixels: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The picture at the source's size: area averaging down, Lanczos up (our choice)."""
    if pixels.shape == shape:
        return pixels
    method = cv2.INTER_AREA if pixels.shape[0] > shape[0] else cv2.INTER_LANCZOS4
    return np.asarray(cv2.resize(pixels, (shape[1], shape[0]), interpolation=method), np.uint8)


def changed_pixels(source: NDArray[np.uint8], edit: NDArray[np.uint8]) -> float:
    """Share (0..1) of pixels of two (H, W, 3) uint8 pictures that differ by more than 2 levels in any channel."""
    red, green, blue = cv2.split(cv2.absdiff(source, edit))
    largest = cv2.max(cv2.max(red, green), blue)
    return float((largest > VISIBLE_LEVELS).mean())


def shift(source: NDArray[np.uint8], edit: NDArray[np.uint8]) -> float:
    """Translation between two (H, W, 3) uint8 pictures in pixels of the source.

    Phase correlation of the grey pictures at 256 px under a Hanning window (our choice); below half a pixel of that
    size nothing is told from noise, and it reads 0.
    """
    height, width = source.shape[:2]
    small = [
        np.float32(cv2.resize(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), (SHIFT_SIDE, SHIFT_SIDE)))
        for picture in (source, edit)
    ]
    (dx, dy), _ = cv2.phaseCorrelate(small[0], small[1], cv2.createHanningWindow((SHIFT_SIDE, SHIFT_SIDE), cv2.CV_32F))
    if max(abs(dx), abs(dy)) < 0.5:
        return 0.0
    return float(np.hypot(dx * width / SHIFT_SIDE, dy * height / SHIFT_SIDE))
