"""Questions of a run that decide nothing: gold tasks beside real ones, and audits of what was rejected."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from schemas.config import BuildConfig
from schemas.outcomes import Status
from schemas.records import Candidate, Key
from schemas.reviews import AuditReviewed, ExtraKind, Question
from tasks.boards.answers import heard
from tasks.boards.audits import AuditTally, Left, audit_of, audits, drawn, fell
from tasks.boards.blind import share
from tasks.boards.gold import gold_due, gold_of
from tasks.boards.made import Maker
from tasks.boards.questions import asked, current_guide
from tasks.boards.sampling import sampled
from tasks.engine.execute import Executor
from tasks.engine.images import ImageStore
from tasks.engine.rows import Commit
from tasks.faces import ANALYZERS

STAGES: Final = ("verify", "rank", "review")
# Sources among which another person is looked for.
NEAR: Final = 200
Done = Sequence[dict[str, Commit]]


def maker_of(executor: Executor, config: BuildConfig) -> Maker:
    """Makes a run's test pictures, with the face analyzer of its votes."""
    faces = config.verify.measure.faces
    return Maker(executor.store, ImageStore(executor.store), ANALYZERS.get(faces.name, faces.params))


def golds(executor: Executor, config: BuildConfig, done: Done, real: Iterable[Question], key: bytes) -> list[Question]:
    """The gold tasks beside these questions: those that were asked before, and new ones where some are due.

    Args:
        executor: The run's.
        config: Its config.
        done: Per shard, its commits.
        real: The run's questions.
        key: The secret.
    """
    questions = list(real)
    due = [question for question in questions if gold_due(key, question, config.review.gold)]
    before = {one.extra.beside: one for one in asked(executor.store).values() if one.extra and one.extra.beside}
    persons = _persons(executor, done) if any(one.digest not in before for one in due) else {}
    maker = maker_of(executor, config)
    made = []
    for question in due:
        gold = before.get(question.digest)
        if gold is None:
            person, start = persons.get(question.key), int(share(key, "gold near", question.digest) * len(questions))
            near = (questions[start:] + questions[:start])[:NEAR]
            others = [one for other in near if persons.get(other.key) != person for one in other.finalists]
            gold = gold_of(key, question, others, maker)
        made.append(gold)
    return made


def _persons(executor: Executor, done: Done) -> dict[Key, str]:
    """Who a source shows: the first source of the same person."""
    return {
        photo.key: photo.subject
        for shard, commits in zip(executor.shards, done, strict=True)
        if "screen" in commits
        for photo in executor.kept("screen", shard, commits)
    }


def audits_of(executor: Executor, config: BuildConfig, done: Done) -> list[Question]:
    """The questions about the rejected candidates that the coin drew."""
    if not audits(config.review):
        return []
    before = {
        (one.extra.picture, next(each.key for each in one.finalists if each.image == one.extra.picture)): one
        for one in asked(executor.store).values()
        if one.extra and one.extra.kind is ExtraKind.AUDIT and one.guide == current_guide()
    }
    maker, single = maker_of(executor, config), config.rank.cut.top_k == 1
    return [
        before.get((row.image, row.key)) or audit_of(row, maker, single=single)
        for row, steps in _candidates(executor, done)
        if sampled(row.key, config.review.cut) and fell(steps) and drawn(row.key, config.review)
    ]


def audit_found(executor: Executor, config: BuildConfig, done: Done) -> AuditReviewed | None:
    """What people found of the rejected candidates so far; None where they are not asked."""
    if not audits(config.review):
        return None
    tally = audit_tally(executor, config)
    for row, steps in _candidates(executor, done):
        tally.add(row.key, row.image, steps)
    return tally.found()


def audit_tally(executor: Executor, config: BuildConfig) -> AuditTally:
    """A tally that knows what was asked and said, and no candidate yet."""
    if not audits(config.review):
        return AuditTally(config.review)
    return AuditTally(config.review, asked(executor.store).values(), heard(executor.store).values())


def _candidates(executor: Executor, done: Done) -> Iterator[tuple[Candidate, dict[str, Left]]]:
    """Every edit that was made, and how it left the stages behind."""
    for shard, commits in zip(executor.shards, done, strict=True):
        if "generate" not in commits:
            continue
        steps: dict[Key, dict[str, Left]] = {}
        for name in STAGES:
            for row in executor.decided(name, shard, commits[name]) if name in commits else ():
                steps.setdefault(row.key, {})[name] = (Status(row.status), str(row.reason or ""), row.evidence)
        for row in executor.kept("generate", shard, commits):
            yield row, steps.get(row.key, {})
