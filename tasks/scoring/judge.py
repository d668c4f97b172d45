"""Judge: PQ, SC and GTA of every output by every judge of the run, in both orders of the pictures, every time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from schemas.records import Key
from schemas.score_config import ScoreJudging
from schemas.score_steps import JudgedParts, Made
from schemas.scoring import JudgeScore, Part
from schemas.sections import Adapter, Adapters, Section
from tasks.engine.errors import ItemFailed
from tasks.engine.stage import Context, Failed
from tasks.judges import JUDGES
from tasks.scoring.steps import Step

PARTS: Final = (Part.PQ, Part.SC, Part.GTA)
APART: Final = 1000  # between the numbers of one question and of its repeat


class Judges(Section):
    """Who judges, and how they are asked."""

    judges: Adapters
    judging: ScoreJudging


@dataclass(frozen=True, slots=True)
class Question:
    """One question about an output.

    Attributes:
        part: What is asked.
        swapped: Whether the two pictures are shown the other way round.
        repeat: Which time, from 0: the same question asked again is another one, with an answer of its own.
    """

    part: Part
    swapped: bool
    repeat: int


def questions(judging: ScoreJudging) -> list[Question]:
    """What every judge is asked about every output. PQ shows one picture, which has no order."""
    orders = (False, True) if judging.orders == "both" else (False,)
    return [
        Question(part, swapped, repeat)
        for part in PARTS
        for swapped in (orders if part is not Part.PQ else orders[:1])
        for repeat in range(judging.repeats)
    ]


def again(judge: Adapter, repeat: int) -> Adapter:
    """A judge that is asked the same for the n-th time, from 0. Judges that differ by their `repeat` stay apart."""
    own = judge.params.get("repeat", 0)
    return judge if not repeat else Adapter(name=judge.name, params=judge.params | {"repeat": own + APART * repeat})


class ScoreJudge(Step[Made, JudgedParts]):
    """Each question is asked alone. A judge that cannot be reached fails the row: a later run asks only that one."""

    name = "score_judge"
    measurement = JudgedParts
    output = JudgedParts
    ignores = frozenset({"seed", "raw_width", "raw_height"})
    measure_params: Judges

    def identities(self) -> list[Any]:
        return [JUDGES.identity(judge.name, judge.params) for judge in self.measure_params.judges]

    def measure(self, rows: Sequence[Made], ctx: Context) -> Iterator[tuple[Key, JudgedParts | Failed]]:
        judges, asked = self.measure_params.judges, questions(self.measure_params.judging)
        jobs = [partial(ask, judge, one, row, ctx) for row in rows for judge in judges for one in asked]
        answers = ctx.call.gather(jobs) if jobs else []
        each = len(judges) * len(asked)
        for place, row in enumerate(rows):
            yield row.key, _together(answers[place * each : (place + 1) * each])


def ask(judge: Adapter, question: Question, row: Made, ctx: Context) -> JudgeScore | ItemFailed:
    """A job: it loads the pictures it shows.

    Returns:
        The answer, an abstention included, or why the judge could not be reached.
    """
    spec = again(judge, question.repeat)
    adapter, output, swapped = JUDGES.get(spec.name, spec.params), ctx.images.get(row.image), question.swapped
    try:
        if question.part is Part.PQ:
            score = adapter.quality(output, ctx.call)
        elif question.part is Part.SC:
            source = ctx.images.get(row.source_image)
            score = adapter.consistency(source, output, row.instruction, ctx.call, swapped=swapped)
        else:
            score = adapter.alignment(output, ctx.images.get(row.truth_image), ctx.call, swapped=swapped)
    except ItemFailed as error:
        return ItemFailed(error.kind, f"judge {judge.label}: {error}", retryable=error.retryable)
    return JudgeScore(
        judge=judge.label,
        family=JUDGES.family(judge.name, judge.params),
        part=question.part,
        value=score.value,
        abstained=score.abstained,
        reason=score.reason,
        model=score.model,
        repaired=score.repaired,
        swapped=swapped,
        repeat=question.repeat,
    )


def _together(answers: Sequence[JudgeScore | ItemFailed]) -> JudgedParts | Failed:
    failed = [answer for answer in answers if isinstance(answer, ItemFailed)]
    if failed:
        # One that will never answer decides, for asking the others again would not help.
        first = min(failed, key=lambda error: error.retryable)
        return Failed(first.kind, str(first), first.retryable)
    return JudgedParts(scores=tuple(answer for answer in answers if isinstance(answer, JudgeScore)))
