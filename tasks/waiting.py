"""Where people's part begins and ends: a build stops while too few sources are decided; what is published is final."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from schemas.config import BuildConfig
from schemas.outcomes import Status
from schemas.records import Finalist, Key
from schemas.reviews import Question
from tasks.boards.answers import make_final
from tasks.boards.questions import question_of
from tasks.engine.errors import WaitingForReview
from tasks.engine.execute import Executor
from tasks.engine.rows import Commit


def in_review(executor: Executor, done: Sequence[dict[str, Commit]]) -> Iterator[Question]:
    """The question of every source that has come to review, in plan order."""
    for shard, commits in zip(executor.shards, done, strict=True):
        finalists: dict[Key, list[Finalist]] = defaultdict(list)
        for row in executor.kept("caption", shard, commits) if "caption" in commits else ():
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


def settle_reviewed(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]], taken: int) -> None:
    """Before an edition is published: what people decided for it is final, whatever they answer later.

    Args:
        executor: The run's.
        config: Its config.
        done: Per shard, its commits.
        taken: How many snapshots of answers the decisions rest on.
    """
    if config.review.measure.board.name == "label_studio":
        waiting = waiting_sources(executor, done)
        decided = [one.digest for one in in_review(executor, done) if one.key not in waiting]
        make_final(executor.store, config.name, config.edition, decided, taken)
