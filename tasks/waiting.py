"""Where people's part begins and ends: a build stops while too few sources are decided; what is published is final."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from schemas.config import BuildConfig
from schemas.outcomes import Status
from schemas.records import Finalist, Key
from schemas.reviews import Question, SampleReviewed
from tasks.boards.answers import make_final
from tasks.boards.questions import question_of
from tasks.boards.sampling import SampleTally, sampled, samples
from tasks.engine.errors import TooManyErrors, WaitingForReview
from tasks.engine.execute import Executor
from tasks.engine.rows import Commit


def in_review(executor: Executor, done: Sequence[dict[str, Commit]]) -> Iterator[Question]:
    """The question of every source that has come to review and that people are to decide, in plan order."""
    cut = executor.stages["review"].cut_params
    for shard, commits in zip(executor.shards, done, strict=True):
        finalists: dict[Key, list[Finalist]] = defaultdict(list)
        for row in executor.kept("caption", shard, commits) if "caption" in commits else ():
            if sampled(row.key, cut):
                finalists[row.key.source()].append(row)
        yield from map(question_of, finalists.values())


def waiting_sources(executor: Executor, done: Sequence[dict[str, Commit]]) -> set[Key]:
    """The sources on which people have yet to decide; all shards must be through review."""
    return {
        row.key.source()
        for shard, commits in zip(executor.shards, done, strict=True)
        if commits["review"].statuses.get(Status.WAITING)
        for row in executor.decided("review", shard, commits["review"])
        if row.status is Status.WAITING
    }


def check_waiting(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]]) -> None:
    """Stop where people have yet to decide more than `review.enough` allows; what is made stays.

    Raises:
        WaitingForReview: How many wait, and what to do.
    """
    waiting = len(waiting_sources(executor, done))
    total = sum(1 for _ in in_review(executor, done)) if waiting else 0
    if waiting and total - waiting < config.review.enough * total:
        raise WaitingForReview(
            f"waiting for review: people have yet to decide {waiting} of {total} sources of run  '{config.name}'",
            "`fedbench review open` asks them, `fedbench review collect` fetches their answers, the same build goes "
            "on; review.enough=0 publishes what is decided",
        )


def sample_found(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]]) -> SampleReviewed | None:
    """How often people found the best rank wrong, so far; None where they do not look at a sample."""
    if not samples(config.review):
        return None
    tally = SampleTally(config.review)
    for shard, commits in zip(executor.shards, done, strict=True):
        steps: dict[Key, list[tuple[Status, str]]] = defaultdict(list)
        for row in executor.decided("review", shard, commits["review"]) if "review" in commits else ():
            steps[row.key.source()].append((row.status, row.evidence))
        for key, found in steps.items():
            tally.add(key, found)
    return tally.found()


def check_sample(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]]) -> None:
    """Stop where people, who look at a sample, find the best rank wrong more often than the config allows.

    Raises:
        TooManyErrors: How often, and what can be done; or that nobody knows, as nothing of the sample is decided.
    """
    limit = config.review.max_error
    found = sample_found(executor, config, done) if limit < 1 else None
    if found is None or not found.sources:
        return
    where = f"run '{config.name}'"
    if found.error_rate is None:
        raise TooManyErrors(
            f"how often the best rank of {where} is wrong is not known: people have decided 0 of {found.sampled} "
            f"sources in the sample (of {found.sources} in review)",
            "a larger review.cut.sample asks about more; review.max_error=1 publishes unseen",
        )
    if found.error_rate > limit:
        raise TooManyErrors(
            f"the best rank of {where} was wrong on {found.wrong} of {found.decided} sources that people looked at "
            f"({found.error_rate:.1%}, 95 % interval {found.low:.1%} to {found.high:.1%}); review.max_error allows "
            f"{limit:g}",
            "nothing is published; `fedbench review status` shows what they found. Stricter verify.cut or rank.cut "
            "(`fedbench recut` compares), review.cut.sample=1 has people decide all, or a higher review.max_error",
        )


def settle_reviewed(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]], taken: int) -> None:
    """Before an edition is published: what people decided for it is final, whatever they answer later.

    Args:
        executor: The run's.
        config: Its config.
        done: Per shard, its commits.
        taken: How many snapshots of answers the decisions rest on.
    """
    if config.review.asks_people:
        waiting = waiting_sources(executor, done)
        decided = [one.digest for one in in_review(executor, done) if one.key not in waiting]
        make_final(executor.store, config.name, config.edition, decided, taken)
