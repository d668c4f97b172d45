"""The limit on accidents: a stage that fails too often stops the build."""

from collections import Counter
from collections.abc import Sequence

from schemas.outcomes import FailureKind, Status
from tasks.engine.errors import TooManyFailures
from tasks.engine.rows import Commit
from tasks.engine.store import Store


def check_failures(store: Store, max_failed: float, name: str, done: Sequence[dict[str, Commit]]) -> None:
    """Judge a whole stage. Refusals are not counted, and one failure is forgiven.

    Args:
        store: The workspace.
        max_failed: Share of failures that is allowed, 0..1.
        name: The stage.
        done: Per shard, its commits.

    Raises:
        TooManyFailures: It failed more often.
    """
    owed = sum(commits[name].owed for commits in done)
    failed = sum(commits[name].statuses.get(Status.FAILED, 0) for commits in done)
    failed -= sum(commits[name].reasons.get(FailureKind.REFUSED, 0) for commits in done)
    if failed > max(1, max_failed * owed):
        kinds = Counter[str]()
        for commits in done:
            kinds.update({kind: count for kind, count in commits[name].reasons.items() if kind in list(FailureKind)})
        told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(3))
        crashes = store.path("crashes.log")
        raise TooManyFailures(
            f"stage '{name}' failed on {failed} of {owed} rows ({told}), more than max_failed={max_failed:g} allows",
            f"see `fedbench status` and `fedbench explain`{f' and {crashes}' if crashes.exists() else ''}",
        )
