"""Around the people: what a run asks them, what they said, and what that amounts to."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from schemas.expressions import POLARITY, Expression
from schemas.records import Ballots
from schemas.reviews import Answer, Question
from tasks.boards import collecting
from tasks.boards.access import read_access
from tasks.boards.answers import Answers, answers_for, changed_since_final, final_of, heard
from tasks.boards.collecting import Collected
from tasks.boards.gold import gold_of, scores
from tasks.boards.projects import Desk, Opened, Tell
from tasks.boards.statistics import statistics
from tasks.boards.votes import verdict
from tasks.engine.errors import ConfigError
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
    board = run.config.review.measure.board.name
    if board != "label_studio":
        raise ConfigError(
            f"run '{run.config.name}' is reviewed by the board '{board}', not by people",
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
    if run.config.review.measure.board.name != "label_studio":
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
    golds = {beside: (gold, answers[gold.digest]) for beside, gold in _golds(review, access.key).items()}
    return Desk(run.store, access, run.config.name, run.config.review.cut, tell).open(review.asked, golds)


def _golds(review: Review, key: bytes) -> dict[str, Question]:
    """The run's gold tasks, by the digest of the question that each is hidden beside."""
    made = {question.digest: gold_of(key, question, review.run.config.review.gold) for question, _ in review.asked}
    return {beside: gold for beside, gold in made.items() if gold is not None}


def _gold_scores(review: Review) -> dict[str, Any]:
    config = review.run.config.review
    if not config.gold:
        return {}
    golds = {gold.digest: gold for gold in _golds(review, read_access(review.run.store).key).values()}
    return scores(heard(review.run.store).values(), golds, [*config.cut.annotators, *config.cut.former])


def _work_left(review: Review) -> dict[str, Any]:
    """How many answers are owed, and people's hours for them: at the measured median, or as the config says."""
    cut, owed = review.run.config.review.cut, 0
    for _, answers in review.asked:
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
    sample = sample_found(run.executor, run.config, run.executor.commits())
    published = sum(question.digest in final for question, _ in review.asked)
    return found | {
        "sample": sample.model_dump() if sample else None,
        "gold": _gold_scores(review),
        "left": _work_left(review),
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
