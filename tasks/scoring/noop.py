"""No-op: what an editor makes of a source that is to keep its expression. What r counts of it is no edit.

Editors that decode the whole picture anew move every face a little, whatever they are asked; a mean r says less of the
expression where that is much. Asked for as any edit is, with the source's own expression as the target.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import prompts
from schemas.records import Key
from schemas.score_config import ScoreMeasure
from schemas.score_steps import ScoredSource
from schemas.scoring import Unchanged
from tasks.editors import EDITORS, EditRequest
from tasks.engine.stage import Context, Failed
from tasks.faces import ANALYZERS
from tasks.faces.memo import Memo
from tasks.metrics.change import expression_change
from tasks.scoring.edit import edited
from tasks.scoring.parts import face_at, face_distance, used
from tasks.scoring.steps import Step

PROMPT = "simple_instruction"
# Two granularities ask for the same picture, and measure it once.
_measured: Memo[Unchanged] = Memo(4096)


class ScoreNoop(Step[ScoredSource, Unchanged]):
    """Owes a re-encoding per source. One that cannot be had is no failure of the editor's: it is asked for nothing."""

    name = "score_noop"
    measurement = Unchanged
    output = Unchanged
    ignores = frozenset({"triplets"})
    measure_params: ScoreMeasure

    def identities(self) -> list[Any]:
        return [*used(self.measure_params), prompts.sha256_of(PROMPT)]

    def owes(self, row: ScoredSource) -> Sequence[Key]:
        return [row.key]

    def measure(self, rows: Sequence[ScoredSource], ctx: Context) -> Iterator[tuple[Key, Unchanged | Failed]]:
        jobs = [partial(self._unchanged, row, ctx) for row in rows]
        answers = ctx.call.gather(jobs) if EDITORS.remote(self.entry.spec.name) else [job() for job in jobs]
        yield from zip([row.key for row in rows], answers, strict=True)

    def _unchanged(self, row: ScoredSource, ctx: Context) -> Unchanged | Failed:
        source, shown = ctx.images.get(row.image), row.expression
        words = prompts.render(PROMPT, source=str(shown), target=str(shown))
        key = row.key._replace(target=str(shown))
        (made,) = edited(self.entry, [EditRequest(source, shown, shown, words, ctx.seed(key), key)], ctx, self.name)
        if isinstance(made, Failed):
            return made
        output, params = made[0], self.measure_params

        def measured() -> Unchanged:
            analyzer = ANALYZERS.get(params.faces.name, params.faces.params)
            before = next(iter(analyzer.analyze(source)), None)
            if before is None:
                return Unchanged(image=output.digest, lpips=None, au=None)
            after = face_at(before, analyzer.analyze(output))
            return Unchanged(
                image=output.digest,
                lpips=face_distance(params, source, output, before),
                au=expression_change(before.blendshapes, after.blendshapes) if after else None,
            )

        return _measured.get((params.model_dump_json(), source.digest, output.digest), measured)
