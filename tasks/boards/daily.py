"""The daily board: who did how much on which day, how fast and how well, and when all of it will be done.

Nothing here looks at a clock: days are those of the answers (UTC), so the same answers give the same board.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from statistics import median
from typing import Any, Final

from schemas.reviewing import ReviewCut
from schemas.reviews import Answer, ExtraKind, Question
from tasks.boards.answers import Answers
from tasks.boards.gold import scores
from tasks.boards.votes import verdict
from tasks.metrics.interval import Share

# Who takes less looked at hardly more than one picture (ours).
SPEEDER_SECONDS: Final = 5.0
# Days with answers that the pace is taken from (ours).
PACE_DAYS: Final = 7


def board(
    questions: Sequence[Question],
    answers: Answers,
    extras: Mapping[str, Question],
    said: Sequence[Answer],
    *,
    cut: ReviewCut,
    owed: int,
) -> dict[str, Any]:
    """Days, pace and the day on which nothing is owed any more.

    Args:
        questions: The run's.
        answers: Those that count.
        extras: Its gold tasks and audits, by digest.
        said: The answers to them.
        cut: Who counts, and how.
        owed: Answers that are still owed at least.

    Returns:
        `days`: a row per day and person that answered, oldest first. `per_day`: answers of all people per calendar
        day, gold tasks left out, over the last seven days with answers. `finish`: the date on which `owed` is reached
        at that pace; None where nothing is owed, or nobody can tell.
    """
    names = [*cut.annotators, *cut.former, *cut.adjudicators]
    counted = [one for q in questions for one in answers.to(q.digest) if one.annotator in names]
    decided = {q.digest: verdict(answers.to(q.digest), cut).usable for q in questions}
    rows: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for one in [*counted, *(one for one in said if one.annotator in names)]:
        rows[day_of(one), one.annotator].append(one)
    audited = [one for one in said if _kind(extras[one.question]) is ExtraKind.AUDIT and one.annotator in names]
    pace = _pace([*counted, *audited])
    return {
        "days": [_row(day, name, found, decided, extras) for (day, name), found in sorted(rows.items())],
        "per_day": pace[0] if pace else None,
        "finish": _finish(pace, owed) if pace and owed else None,
    }


def day_of(answer: Answer) -> str:
    """The day on which an answer was given, as YYYY-MM-DD (UTC); empty where nobody says."""
    return answer.given[:10]


def _kind(question: Question) -> ExtraKind | None:
    return question.extra.kind if question.extra else None


def _row(
    day: str,
    name: str,
    found: Sequence[Answer],
    decided: Mapping[str, Sequence[str] | None],
    extras: Mapping[str, Question],
) -> dict[str, Any]:
    seconds = [one.seconds for one in found if one.seconds is not None]
    judged = [one for one in found if decided.get(one.question) is not None]
    gold = scores(found, extras, [name])[name]
    return {
        "day": day,
        "annotator": name,
        "answers": sum(one.question in decided for one in found),
        "extra": sum(one.question in extras for one in found),
        "median_seconds": median(seconds) if seconds else None,
        "speeders": Share(sum(one < SPEEDER_SECONDS for one in seconds), len(seconds)).plain(),
        "as_decided": Share(sum(one.usable == decided[one.question] for one in judged), len(judged)).plain(),
        "gold": {part: gold[part] for part in ("hits", "of", "value", "low", "high")},
    }


def _pace(answers: Iterable[Answer]) -> tuple[float, date] | None:
    """Answers per calendar day, and the last day; None where no answer has a day."""
    counts: dict[date, int] = defaultdict(int)
    for one in answers:
        if day_of(one):
            counts[date.fromisoformat(day_of(one))] += 1
    days = sorted(counts)[-PACE_DAYS:]
    if not days:
        return None
    return sum(counts[day] for day in days) / ((days[-1] - days[0]).days + 1), days[-1]


def _finish(pace: tuple[float, date], owed: int) -> str:
    return (pace[1] + timedelta(days=math.ceil(owed / pace[0]))).isoformat()
