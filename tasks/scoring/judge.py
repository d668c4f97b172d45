"""Judge: PQ, SC and GTA of every output by every judge of the run."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from schemas.records import Key
from schemas.score_steps import JudgedParts, Made
from schemas.scoring import JudgeScore, Part
from schemas.sections import Adapter, Adapters, Section
from tasks.engine.errors import ItemFailed
from tasks.engine.stage import Context, Failed
from tasks.judges import JUDGES
from tasks.scoring.steps import Step

PARTS: Final = (Part.PQ, Part.SC, Part.GTA)  # one question each


class Judges(Section):
    """Who judges."""

    judges: Adapters


class ScoreJudge(Step[Made, JudgedParts]):
    """Each judge scores each part alone. One that cannot be reached fails the row: a later run asks only that one."""

    name = "score_judge"
    measurement = JudgedParts
    output = JudgedParts
    ignores = frozenset({"seed", "raw_width", "raw_height"})
    measure_params: Judges

    def identities(self) -> list[Any]:
        return [JUDGES.identity(judge.name, judge.params) for judge in self.measure_params.judges]

    def measure(self, rows: Sequence[Made], ctx: Context) -> Iterator[tuple[Key, JudgedParts | Failed]]:
        judges = self.measure_params.judges
        jobs = [partial(_ask, judge, part, row, ctx) for row in rows for judge in judges for part in PARTS]
        answers = ctx.call.gather(jobs) if jobs else []
        each = len(judges) * len(PARTS)
        for place, row in enumerate(rows):
            yield row.key, _together(answers[place * each : (place + 1) * each])


def _ask(judge: Adapter, part: Part, row: Made, ctx: Context) -> JudgeScore | ItemFailed:
    """A job: it loads the pictures it shows."""
    adapter, output = JUDGES.get(judge.name, judge.params), ctx.images.get(row.image)
    try:
        if part is Part.PQ:
            score = adapter.quality(output, ctx.call)
        elif part is Part.SC:
            score = adapter.consistency(ctx.images.get(row.source_image), output, row.instruction, ctx.call)
        else:
            score = adapter.alignment(output, ctx.images.get(row.truth_image), ctx.call)
    except ItemFailed as error:
        return ItemFailed(error.kind, f"judge {judge.label}: {error}", retryable=error.retryable)
    return JudgeScore(
        judge=judge.label,
        family=JUDGES.family(judge.name, judge.params),
        part=part,
        value=score.value,
        abstained=score.abstained,
        reason=score.reason,
        model=score.model,
        repaired=score.repaired,
    )


def _together(answers: Sequence[JudgeScore | ItemFailed]) -> JudgedParts | Failed:
    failed = [answer for answer in answers if isinstance(answer, ItemFailed)]
    if failed:
        # One that will never answer decides, for asking the others again would not help.
        first = min(failed, key=lambda error: error.retryable)
        return Failed(first.kind, str(first), first.retryable)
    return JudgedParts(scores=tuple(answer for answer in answers if isinstance(answer, JudgeScore)))
