"""Where people's part begins and ends: a build stops while too few sources are decided; what is published is final."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from schemas.config import BuildConfig
from schemas.outcomes import Status
from schemas.records import Finalist, Key
from schemas.reviews import Question
from tasks.boards.answers import make_final
from tasks.boards.questions import question_of
from tasks.engine.errors import WaitingForReview
from tasks.engine.execute import Executor
from tasks.engine.rows import Commit


def in_review(executor: Executor, done: Sequence[dict[str, Commit]]) -> Iterator[tuple[Question, bool]]:
    """Every source with finalists that went to review: its question, and whether that is decided, in plan order."""
    for shard, commits in zip(executor.shards, done, strict=True):
        if "review" not in commits:
            continue
        finalists: dict[Key, list[Finalist]] = defaultdict(list)
        for row in executor.kept("caption", shard, commits):
            finalists[row.key.source()].append(row)
        waiting = {row.key.source() for row in _waiting(executor, shard, commits)}
        for source, rows in finalists.items():
            yield question_of(rows), source not in waiting


def _waiting(executor: Executor, shard: Any, commits: dict[str, Commit]) -> list[Any]:
    if not commits["review"].statuses.get(Status.WAITING):
        return []
    return [row for row in executor.decided("review", shard, commits["review"]) if row.status is Status.WAITING]


def check_waiting(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]]) -> None:
    """Stop where people have yet to decide more than `review.enough` allows; what is made stays.

    Raises:
        WaitingForReview: How many wait, and what to do.
    """
    if not any(commits["review"].statuses.get(Status.WAITING) for commits in done):
        return
    decided = [is_decided for _, is_decided in in_review(executor, done)]
    if sum(decided) < config.review.enough * len(decided):
        raise WaitingForReview(
            f"waiting for review: people have yet to decide {len(decided) - sum(decided)} of {len(decided)} sources of "
            f"run '{config.name}'",
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
        decided = [question.digest for question, is_decided in in_review(executor, done) if is_decided]
        make_final(executor.store, config.name, config.edition, decided, taken)
