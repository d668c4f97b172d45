"""What a worker is given, and how jobs go on in rounds where some of them ask in batches."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from schemas.config import BuildConfig
from tasks.engine.calls import Calls
from tasks.engine.lineage import Lineage
from tasks.engine.rows import Commit
from tasks.engine.shards import Shard


@dataclass(frozen=True)
class Job:
    """One shard's share of a segment; all a worker needs, and all of it can be pickled.

    `taken` is the run's lineage, and `heard` how many snapshots of people's answers count: an edition that is published
    and answers that come in meanwhile change nothing for its workers.
    """

    workspace: str
    config: BuildConfig
    segment: tuple[str, ...]
    shard: Shard
    done: dict[str, Commit]
    taken: Lineage | None
    heard: int = 0


Mapper = Callable[[Sequence[Job]], Iterable[tuple[Job, dict[str, Commit]]]]


def settled(calls: Calls, mapper: Mapper, jobs: Sequence[Job]) -> list[tuple[Job, dict[str, Commit]]]:
    """Do jobs; where some ask in batches, send those of all jobs together, wait, and do again what waited.

    Raises:
        BatchesWaiting: Batches are in flight, and the config says that nobody waits for them.
    """
    finished: list[tuple[Job, dict[str, Commit]]] = []
    calls.postpones = True
    try:
        while jobs:
            done = list(mapper(jobs))
            again = calls.finish_batches()
            finished += [(job, commits) for job, commits in done if not again or job.segment[-1] in commits]
            jobs = [replace(job, done=commits) for job, commits in done if again and job.segment[-1] not in commits]
    finally:
        calls.postpones = False
    return finished
