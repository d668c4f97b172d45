"""Around the people: what a run asks them, what they said, and what that amounts to."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from schemas.expressions import POLARITY, Expression
from schemas.records import Ballots
from schemas.reviews import Answer, ExtraKind, Question
from tasks.boards import collecting
from tasks.boards.access import read_access
from tasks.boards.answers import Answers, answers_for, changed_since_final, final_of, heard
from tasks.boards.collecting import Collected
from tasks.boards.daily import board
from tasks.boards.gold import scores
from tasks.boards.projects import Desk, Opened, Tell
from tasks.boards.questions import asked
from tasks.boards.statistics import statistics
from tasks.boards.votes import verdict
from tasks.engine.errors import ConfigError
from tasks.extras import audit_found, audits_of, golds
from tasks.metrics.interval import Share
from tasks.pipeline import Run
from tasks.waiting import in_review, sample_found


@dataclass(frozen=True)
class Review:
    """A run's review.

    Attributes:
        run: The run, opened for looking.
        asked: Its questions and the answers that count, in plan order.
        answers: All answers that count for it.
    """

    run: Run
    asked: list[tuple[Question, tuple[Answer, ...]]]
    answers: Answers


def review_of(run: Run) -> Review:
    """What people are asked of a run, as far as it is built.

    Raises:
        ConfigError: Nobody is asked, or there is nothing to ask yet.
    """
    if not run.config.review.asks_people:
        raise ConfigError(
            f"run '{run.config.name}' is reviewed by the board '{run.config.review.measure.board.name}', not by people",
            "build it with --set review.measure.board=label_studio",
        )
    answers = answers_for(run.store, run.config)
    asked = [(q, answers.to(q.digest)) for q in in_review(run.executor, run.executor.commits())]
    if not asked:
        whom = f"in the sample ({share:g}) " if (share := run.config.review.cut.sample) < 1 else ""
        raise ConfigError(f"no source {whom}of run '{run.config.name}' has come to review yet", "build it first")
    return Review(run, asked, answers)


def standing(run: Run) -> dict[str, Any] | None:
    """`told` of the answers that a run rests on; None where it asks people nothing (yet)."""
    if not run.config.review.asks_people:
        return None
    asked = [(q, run.answers.to(q.digest)) for q in in_review(run.executor, run.executor.commits())]
    return told(Review(run, asked, run.answers)) if asked else None


def open_review(review: Review, tell: Tell) -> list[Opened]:
    """Make the projects, and the tasks that are not there."""
    run = review.run
    access = read_access(run.store)
    answers: dict[str, list[Answer]] = defaultdict(list)
    for one in heard(run.store).values():
        if not one.gone:
            answers[one.question].append(one)
    done, real = run.executor.commits(), [question for question, _ in review.asked]
    beside = {
        gold.extra.beside: (gold, answers[gold.digest])
        for gold in golds(run.executor, run.config, done, real, access.key)
        if gold.extra
    }
    audited = [(one, answers[one.digest]) for one in audits_of(run.executor, run.config, done)]
    desk = Desk(run.store, access, run.config.name, run.config.review.cut, tell, run.config.review.address_days)
    return desk.open([*review.asked, *audited], beside)


def _extras(review: Review) -> dict[str, Question]:
    """The gold tasks and audits of a run that were asked, by digest."""
    real, sources = (
        {q.digest for q, _ in review.asked},
        {source.key for shard in review.run.executor.shards for source in shard.sources},
    )
    return {
        digest: one
        for digest, one in asked(review.run.store).items()
        if one.extra and (one.extra.beside in real if one.extra.beside else one.key in sources)
    }


def _work_left(review: Review, extras: Mapping[str, Question], given_extras: Sequence[Answer]) -> dict[str, Any]:
    """How many answers are owed, and people's hours for them: at the measured median, or as the config says."""
    cut, owed = review.run.config.review.cut, 0
    audited = [one for one in extras.values() if one.extra and one.extra.kind is ExtraKind.AUDIT]
    said: dict[str, list[Answer]] = defaultdict(list)
    for one in given_extras:
        said[one.question].append(one)
    for answers in [*(answers for _, answers in review.asked), *(said[one.digest] for one in audited)]:
        if verdict(answers, cut).usable is None:
            given = sum(one.annotator in (*cut.annotators, *cut.former) for one in answers)
            owed += max(1, cut.votes - given)
    timed = [one.seconds for _, answers in review.asked for one in answers if one.seconds is not None]
    seconds = median(timed) if timed else review.run.config.forecast.annotator_seconds
    return {
        "answers": owed,
        "seconds": seconds,
        "basis": "measured" if timed else "assumed",
        "hours": owed * seconds / 3600,
    }


def collect_review(review: Review) -> Collected:
    """Fetch what people have answered since."""
    run = review.run
    return collecting.collect(run.store, read_access(run.store), run.config.name, run.config.review.cut)


def told(review: Review) -> dict[str, Any]:
    """What the answers amount to, as plain values; those that came after publication are counted apart."""
    run = review.run
    found = statistics([question for question, _ in review.asked], review.answers, run.config.review.cut)
    changed = changed_since_final(run.store, run.config.name, run.config.edition, review.answers)
    final = final_of(run.store, run.config.name, run.config.edition).questions
    commits, extras = run.executor.commits(), _extras(review)
    sample, audit = (found_(run.executor, run.config, commits) for found_ in (sample_found, audit_found))
    said = [one for one in heard(run.store).values() if one.question in extras and not one.gone]
    names = [*run.config.review.cut.annotators, *run.config.review.cut.former]
    left = _work_left(review, extras, said)
    published = sum(question.digest in final for question, _ in review.asked)
    return found | {
        "sample": sample.model_dump() if sample else None,
        "audit": audit.model_dump() if audit else None,
        "gold": scores(said, extras, names) if extras else {},
        "left": left,
        "daily": board(
            [question for question, _ in review.asked],
            review.answers,
            extras,
            said,
            cut=run.config.review.cut,
            owed=left["answers"],
        ),
        "voters": _voters(review),
        "published": published,
        "changed_since_published": len(changed),
    }


def _voters(review: Review) -> dict[str, Any]:
    """By voter: of the finalists that it found right, and of those it did not, how many people found usable.

    The finalist that lost to another may be usable: it counts nowhere.
    """
    run, cut = review.run, review.run.config.review.cut
    human: dict[Any, bool] = {}
    for question, answers in review.asked:
        usable = verdict(answers, cut).usable
        if usable is not None:
            human |= {one.key: one.image in usable for one in question.finalists if not usable or one.image in usable}
    counts: dict[str, dict[bool, list[bool]]] = defaultdict(lambda: {True: [], False: []})
    for shard, commits in zip(run.executor.shards, run.executor.commits(), strict=True):
        if "generate" not in commits:
            continue
        ballots = run.executor.measured("verify", shard, run.executor.kept("generate", shard, commits))
        for key, ballot in ballots.items():
            if key in human and isinstance(ballot, Ballots):
                for vote in ballot.votes:
                    right = vote.polarity is POLARITY[Expression(key.target)]
                    counts[vote.voter][right].append(human[key])
    return {
        voter: {
            "approved_usable": Share(sum(by[True]), len(by[True])).plain(),
            "doubted_usable": Share(sum(by[False]), len(by[False])).plain(),
        }
        for voter, by in sorted(counts.items())
    }
