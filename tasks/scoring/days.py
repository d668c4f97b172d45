"""On which days the judges of a run answered about its outputs, as the answer store has it."""

from collections.abc import Iterator
from datetime import date

import prompts
from schemas.judging import JudgedOn
from schemas.score_steps import JudgedParts, Made
from schemas.scoring import Part
from schemas.sections import Adapter
from tasks.engine.answer_days import AnswerDay, answer_days, waiting
from tasks.judges import JUDGES
from tasks.scoring.judge import APART, Question, questions
from tasks.scoring.run import Scoring

ANSWERS = "answers.sqlite"
# Checks are numbered by their day, far beyond any repeat.
_CHECKS = date(2000, 1, 1).toordinal()


class Days:
    """The days of a run's judgements.

    Attributes:
        checks: By judge, the days whose checks have answers, or wait for them.
    """

    def __init__(self, run: Scoring) -> None:
        self._questions = questions(run.config.judging)
        self._days: dict[str, dict[int, int]] = {judge.label: {} for judge in run.config.judges}
        self.checks: dict[str, set[date]] = {judge.label: set() for judge in run.config.judges}
        for one in answer_days(run.store.root / ANSWERS, "judge"):
            for judge in run.config.judges:
                if _is_of(judge, one.provider, one.model, one.repeat):
                    self._take(judge.label, one)
        for asked in waiting(run.store.root / ANSWERS, "judge"):
            for judge in run.config.judges:
                if _is_of(judge, *asked) and asked[2] // APART >= _CHECKS:
                    self.checks[judge.label].add(date.fromordinal(asked[2] // APART))

    def _take(self, judge: str, one: AnswerDay) -> None:
        number = one.repeat // APART
        if number >= _CHECKS:
            self.checks[judge].add(date.fromordinal(number))
        else:
            # Hashes, for there may be a million: a clash would move a day, no score.
            key = hash((one.prompt_sha256, one.images))
            self._days[judge][key] = max(one.day.toordinal(), self._days[judge].get(key, 0))

    def of(self, judge: str, made: Made) -> tuple[date, date] | None:
        """The first and the last day of a judge's answers about an output; None where the store has none."""
        held = self._days[judge]
        keys = (hash((_prompt(one), _pictures(one, made))) for one in self._questions)
        found = [day for key in keys if (day := held.get(key)) is not None]
        return (date.fromordinal(min(found)), date.fromordinal(max(found))) if found else None


def judged_on(run: Scoring, days: Days) -> Iterator[JudgedOn]:
    """From when to when every judge answered about every editor's outputs."""
    for place, entry in enumerate(run.entries):
        outputs = [made for made, _ in judged_outputs(run, place)]
        for judge in run.config.judges:
            found = [of for made in outputs if (of := days.of(judge.label, made))]
            if found:
                yield JudgedOn(
                    editor=entry.called,
                    granularity=entry.granularity,
                    judge=judge.label,
                    first=min(first for first, _ in found).isoformat(),
                    last=max(last for _, last in found).isoformat(),
                    outputs=len(found),
                )


def judged_outputs(run: Scoring, entry: int) -> Iterator[tuple[Made, JudgedParts]]:
    """The outputs of an entry that were judged."""
    measurer = run.measurers[entry]
    for shard, sources in run.benchmark.shards:
        made = measurer.measured("score_edit", shard, sources)
        outputs = [one for one in made.values() if isinstance(one, Made)]
        judged = measurer.measured("score_judge", shard, outputs)
        for output in outputs:
            if isinstance(said := judged.get(output.key), JudgedParts):
                yield output, said


def _is_of(judge: Adapter, provider: str, model: str, repeat: int) -> bool:
    params = JUDGES.parse(judge.name, judge.params)
    routes = {(route.provider, route.model) for route in getattr(params, "routes", ())}
    return (provider, model) in routes and repeat % APART == getattr(params, "repeat", 0) % APART


def _prompt(question: Question) -> str:
    return prompts.sha256_of(f"{question.part}_swapped" if question.swapped else str(question.part))


def _pictures(question: Question, made: Made) -> tuple[str, ...]:
    """What a judge is shown, in that order."""
    shown = {
        Part.PQ: (made.image,),
        Part.SC: (made.source_image, made.image),
        Part.GTA: (made.image, made.truth_image),
    }[question.part]
    return shown[::-1] if question.swapped else shown
