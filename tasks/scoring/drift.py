"""Whether judges still answer as they did: some stored outputs are judged again, and what counts stays as it is."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from schemas.judging import JUDGING, DriftCheck, JudgingRecord
from schemas.score_config import ScoreJudging
from schemas.score_steps import JudgedParts, Made
from schemas.sections import Adapter
from tasks.engine.errors import ItemFailed
from tasks.engine.fingerprint import fingerprint
from tasks.engine.stage import Context
from tasks.judges import JUDGES
from tasks.metrics.drift import Pair, drift_part
from tasks.scoring.days import Days, judged_on, judged_outputs
from tasks.scoring.judge import PARTS, Question, ask, questions
from tasks.scoring.run import Scoring


@dataclass(frozen=True)
class Sampled:
    """A judged output that is judged again, with the days of its stored answers."""

    made: Made
    judged: JudgedParts
    first: date
    last: date


@dataclass(frozen=True)
class Planned:
    """A judge that is asked again, and about which outputs."""

    judge: Adapter
    sample: tuple[Sampled, ...]
    number: int


def planned(run: Scoring, today: date, *, asks: bool) -> list[Planned]:
    """The judges to be asked again, each about its sample; empty where nothing is old, or nobody asks anything new.

    Args:
        run: The opened run.
        today: UTC.
        asks: Whether the run has new questions for judges.
    """
    drift = run.config.drift
    if not run.config.judges or not drift.outputs or drift.when == "never" or not (asks or drift.when == "now"):
        return []
    days, before = Days(run), read_record(run)
    least = 0 if drift.when == "now" else drift.days
    held: dict[str, list[Sampled]] = defaultdict(list)
    for place in range(len(run.entries)):
        for made, judged in judged_outputs(run, place):
            for judge in run.config.judges:
                of = days.of(judge.label, made)
                if of and (today - of[1]).days > least:
                    held[judge.label].append(Sampled(made, judged, *of))
    found = []
    for judge in run.config.judges:
        if _is_fresh(before, judge, today, drift.days) or not held[judge.label]:
            continue
        # A fixed shuffle; the same picture for two instructions is judged once.
        ordered = {one.made.image: one for one in sorted(held[judge.label], key=_shuffled, reverse=True)}
        sample = sorted(ordered.values(), key=_shuffled)[: drift.outputs]
        # A check that was stopped goes on: its answers are paid.
        begun = [day for day in days.checks[judge.label] if (today - day).days <= drift.days]
        found.append(Planned(judge, tuple(sample), max(begun, default=today).toordinal()))
    return found


def questions_again(run: Scoring) -> list[Question]:
    """What is asked again about an output: every question once."""
    return questions(ScoreJudging(orders=run.config.judging.orders))


def check_drift(run: Scoring, plan: Sequence[Planned], today: date) -> list[DriftCheck]:
    """Ask, compare, and record it beside the scores.

    Raises:
        StoppedError: A budget or a key; what was answered is kept.
    """
    context = Context(run.config.seed, run.images, run.call, lambda _: None)
    checks = [_checked(run, one, context, today) for one in plan]
    if checks:
        write_record(run, read_record(run).checks + tuple(checks))
    return checks


def _checked(run: Scoring, one: Planned, context: Context, today: date) -> DriftCheck:
    asked = questions_again(run)
    again = [Question(question.part, question.swapped, one.number) for question in asked]
    jobs = [partial(ask, one.judge, question, held.made, context) for held in one.sample for question in again]
    answers, pairs, abstained, unreached = run.call.gather(jobs), defaultdict[Any, list[Pair]](list), 0, 0
    for place, held in enumerate(one.sample):
        stored = {
            (said.part, said.swapped): said.value
            for said in held.judged.scores
            if said.judge == one.judge.label and said.repeat == 0
        }
        for answer in answers[place * len(asked) : (place + 1) * len(asked)]:
            if isinstance(answer, ItemFailed):
                unreached += 1
            elif answer.value is None:
                abstained += 1
            elif (before := stored.get((answer.part, answer.swapped))) is not None:
                subject = run.benchmark.subjects[held.made.key]
                pairs[answer.part].append(Pair(subject, held.made.image, before, answer.value))
    return DriftCheck(
        judge=one.judge.label,
        identity=_identity(one.judge),
        on=today.isoformat(),
        first=min(held.first for held in one.sample).isoformat(),
        last=max(held.last for held in one.sample).isoformat(),
        outputs=len(one.sample),
        abstained=abstained,
        unreached=unreached,
        parts=tuple(drift_part(part, pairs[part]) for part in PARTS),
    )


def read_record(run: Scoring) -> JudgingRecord:
    """What was recorded of the run's judges; only checks of judges that are still asked so."""
    relative = run.folder.relative_to(run.store.root).as_posix()
    found = run.store.read_as(f"{relative}/{JUDGING}", JudgingRecord)
    mine = {_identity(judge) for judge in run.config.judges}
    checks = tuple(check for check in found.checks if check.identity in mine) if found else ()
    return JudgingRecord(apart=run.config.drift.days, judged=found.judged if found else (), checks=checks)


def write_record(run: Scoring, checks: Sequence[DriftCheck]) -> JudgingRecord:
    """Write `judging.json` with these checks and the days of now."""
    ordered = sorted(checks, key=lambda check: (check.on, check.judge))
    record = JudgingRecord(apart=run.config.drift.days, judged=tuple(judged_on(run, Days(run))), checks=tuple(ordered))
    relative = run.folder.relative_to(run.store.root).as_posix()
    run.store.write_json(f"{relative}/{JUDGING}", record.model_dump(mode="json"))
    return record


def _is_fresh(record: JudgingRecord, judge: Adapter, today: date, days: int) -> bool:
    mine = [check for check in record.checks if check.identity == _identity(judge)]
    return any((today - date.fromisoformat(check.on)).days <= days for check in mine)


def _identity(judge: Adapter) -> str:
    return fingerprint(JUDGES.identity(judge.name, judge.params))


def _shuffled(one: Sampled) -> tuple[str, str]:
    return fingerprint("drift", list(one.made.key), one.made.image), one.made.instruction
