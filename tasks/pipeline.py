"""The pipeline as data: the stages in order, and how a run of them goes from sources to decisions.

Nothing here knows an orchestrator: `build` is given a way to map jobs over shards, and flows give it Prefect's.
"""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from schemas.config import BuildConfig
from schemas.forecasts import PilotFound
from schemas.outcomes import Status
from schemas.records import Source
from schemas.routes import routes_in
from tasks import pilot
from tasks.boards.answers import NONE_YET, Answers, answers_for
from tasks.caption import Caption
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, Postponed
from tasks.engine.execute import Executor
from tasks.engine.fingerprint import fingerprint
from tasks.engine.images import ImageStore
from tasks.engine.lineage import editions, lineage
from tasks.engine.places import in_bucket, look_again, place
from tasks.engine.rows import Commit
from tasks.engine.shards import Shard, order, plan
from tasks.engine.stage import Context, Stage
from tasks.engine.store import Store, disk
from tasks.engine.tombstones import NOBODY, Withdrawn, check_finished
from tasks.failures import check_failures
from tasks.generate import Generate
from tasks.instruct import Instruct
from tasks.leakage.compare import Guard
from tasks.leakage.eye import Eye
from tasks.leakage.places import note_screening
from tasks.leakage.sides import Excluded, excluded
from tasks.outside import check_adapters, check_outside
from tasks.providers.routes import check_routes
from tasks.publish import Core, Publish, core_of
from tasks.rank import Rank
from tasks.review import Review
from tasks.rounds import Job, Mapper, settled
from tasks.screen import Screen
from tasks.sources import POOLS, SourcePool
from tasks.verify import Verify
from tasks.waiting import check_sample, check_waiting

# Runs of stages without a barrier. The first ends in one over all sources; `publish` is one over all triplets.
SCREENING: Final = ("screen",)
CANDIDATES: Final = ("generate", "verify", "rank", "caption", "review", "instruct")


@dataclass(frozen=True)
class Run:
    """An opened run: workspace, config and executor, what the config excludes, its core, and what its pools list.

    `core_end` says how many of its first shards hold all sources of the core; `listed` is in the plan's order.
    """

    config: BuildConfig
    store: Store
    images: ImageStore
    executor: Executor
    excluded: Excluded | None = None
    core: Core | None = None
    core_end: int = 0
    listed: tuple[Source, ...] = ()
    answers: Answers = NONE_YET

    @property
    def folder(self) -> str:
        return f"runs/{self.config.name}"

    def job(self, segment: tuple[str, ...], shard: Shard, done: dict[str, Commit]) -> Job:
        return Job(self.store.where, self.config, segment, shard, done, self.executor.taken, self.answers.taken)


def make_stages(
    config: BuildConfig,
    pools: dict[str, SourcePool],
    guard: Guard | None = None,
    withdrawn: Withdrawn = NOBODY,
    core: Core | None = None,
    *,
    answers: Answers | None = None,
) -> list[Stage[Any, Any]]:
    """The stages of a run, in the order the data flows."""
    return [
        Screen(config.screen.measure, config.screen.cut, pools, guard, withdrawn),
        Generate(config.generate.measure, config.generate.cut),
        Verify(config.verify.measure, config.verify.cut),
        Rank(config.rank.measure, config.rank.cut),
        Caption(config.caption.measure, config.caption.cut),
        Review(config.review.measure, config.review.cut, answers),
        Instruct(config.instruct.measure, config.instruct.cut),
        Publish(config.publish.measure, config.publish.cut, core),
    ]


def open_pools(config: BuildConfig) -> dict[str, SourcePool]:
    """The pools of a run, by the name their sources carry."""
    pools: dict[str, SourcePool] = {}
    for spec in config.pools:
        name = str(getattr(POOLS.parse(spec.name, spec.params), "pool", spec.name))
        if name in pools:
            raise ConfigError(f"two pools are called '{name}'", "give one another `pool` in its params")
        pools[name] = POOLS.get(spec.name, spec.params)
    return pools


def open_run(workspace: Path, config: BuildConfig, *, extend: bool = True) -> Run:
    """Open a run: list its sources and plan its shards.

    Args:
        workspace: Where everything lies.
        config: What to build.
        extend: Whether sources that are new get shards now; a mere look leaves the plan as it is.

    Raises:
        ConfigError: A pool, an adapter or a parameter is wrong.
        WorkspaceError: The workspace cannot be used, or a withdrawal has to be finished first.
    """
    if not extend:
        look_again(workspace)
    withdrawn = Withdrawn.of(Store(workspace))
    pools = open_pools(config)
    known = editions(Store(workspace), f"runs/{config.name}")
    taken = lineage(known, config.edition, make_stages(config, pools), config.seed) if config.mode == "replay" else None
    answers = answers_for(Store(workspace), config)
    executor, images = _worker(str(workspace), config.model_dump_json(), withdrawn, json.dumps(taken), answers.taken)
    if extend:
        check_finished(executor.store)
    check_outside(config, executor.stages.values())
    if extend and not config.calls.replay_only:
        check_routes(list(routes_in(config.model_dump(mode="json"))))
    if extend:
        check_adapters(executor.stages.values())
    kept_out = excluded(config, executor.store)
    core = core_of(workspace, config)
    # Workers decide neither what is screened nor what is published, so theirs need no guard and no core.
    stages = list(executor.stages.values())
    if kept_out or core:
        stages = make_stages(config, pools, kept_out.guard if kept_out else None, withdrawn, core, answers=answers)
    listed = (withdrawn.left_of(source) for pool in pools.values() for source in pool.list())
    sources = order(config.seed, listed)
    # With the roots: a pool that lies elsewhere holds other photos, and so is planned anew.
    identity = fingerprint(config.seed, [spec.model_dump() for spec in config.pools])
    folder = f"runs/{config.name}/plan-{identity[:16]}"
    shards = plan(executor.store, folder, sources, config.shard_size, config.limit, extend=extend)
    path, values = f"runs/{config.name}/config.json", config.model_dump(mode="json")
    if extend and executor.store.read_json(path) != values:
        executor.store.write_json(path, values)
    executor = Executor(executor.store, stages, shards, executor.context, taken)
    end = core.end(shards) if core else 0
    return Run(config, executor.store, images, executor, kept_out, core, end, tuple(sources), answers)


@lru_cache(maxsize=4)
def _worker(root: str, config_json: str, withdrawn: Withdrawn, taken: str, heard: int) -> tuple[Executor, ImageStore]:
    """What a process needs to work for a run; made once, so that its threads share decoded pictures and one ledger."""
    config = BuildConfig.model_validate_json(config_json)
    store = Store(Path(root))
    images = ImageStore(store)
    calls = Calls(Path(root) / "answers.sqlite", config.calls, config.name)
    log_path = Path(root) / "crashes.log"

    def log(text: str) -> None:
        with disk(log_path), log_path.open("a") as file:
            file.write(text + "\n")

    context = Context(config.seed, images, calls, log)
    stages = make_stages(config, open_pools(config), None, withdrawn, answers=answers_for(store, config, heard))
    return Executor(store, stages, (), context, json.loads(taken)), images


def work(job: Job) -> dict[str, Commit]:
    """Do a job: what a worker runs, in whatever thread, process or machine."""
    root = place(job.workspace, look=False) if in_bucket(job.workspace) else Path(job.workspace)
    withdrawn = Withdrawn.of(Store(root))
    taken = json.dumps(job.taken)
    return do(_worker(str(root), job.config.model_dump_json(), withdrawn, taken, job.heard)[0], job)


def do(executor: Executor, job: Job) -> dict[str, Commit]:
    """Do a job with an executor that is at hand."""
    if job.segment == SCREENING:
        with suppress(Postponed):  # it is done again when the batches are settled
            executor.measure("screen", job.shard, job.shard.sources)
        return job.done
    return executor.run_shard(job.shard, job.segment, job.done)


def build(run: Run, mapper: Mapper, tell: Callable[[PilotFound], None] | None = None) -> list[dict[str, Commit]]:
    """Bring a run up to date, from screening to selection; what is done already costs a look.

    Args:
        run: The opened run.
        mapper: Applies `work` to jobs, in any order and place, and yields each with its commits.
        tell: Is told what the pilot found, where there is one and the build goes on behind it.

    Returns:
        The commits of every shard that was needed, in plan order.

    Raises:
        TooManyFailures: A stage failed more often than the config allows.
        PilotStopped: The first sources differ too much from what was expected.
        WaitingForReview: People have decided on fewer sources than the config calls enough.
        TooManyErrors: In the sample that they looked at, the best rank was wrong too often.
    """
    executor = run.executor
    run.store.others_write(run.config.runner != "threads")
    done = _screened(run, mapper)
    first = pilot.begin(executor, run.config, done)
    end = 0
    while end < len(executor.shards) and not _enough(run, done[:end]):
        if first and end == first:
            found = pilot.check(executor, run.config, done, first)
            if tell:
                tell(found)
        start, end = end, first if first and not end else (end // wave(run) + 1) * wave(run)
        jobs = [
            run.job(CANDIDATES, shard, commits)
            for shard, commits in zip(executor.shards[start:end], done[start:end], strict=True)
            if CANDIDATES[-1] not in commits
        ]
        for job, commits in settled(run.executor.context.call, mapper, jobs):
            done[executor.shards.index(job.shard)] = commits
        run.store.refresh("stages")
    done = narrowed(run, done[:end])
    for name in CANDIDATES:
        check_failures(run.store, run.config.max_failed, name, done)
    check_waiting(executor, run.config, done)
    check_sample(executor, run.config, done)
    if any("publish" not in commits for commits in done):
        for shard, commits in zip(executor.shards, done, strict=True):
            executor.measure("publish", shard, executor.kept("instruct", shard, commits))
        for commits, commit in zip(done, executor.decide_run("publish", done), strict=True):
            commits["publish"] = commit
    return done


def wave(run: Run) -> int:
    """How many shards are worked on before a build asks whether they meet the target; all of them without one."""
    return max(1, len(run.executor.shards)) if run.config.publish.cut.target is None else 4 * run.config.workers


def _screened(run: Run, mapper: Mapper) -> list[dict[str, Commit]]:
    executor = run.executor
    done = executor.commits(retry=SCREENING)
    due = [shard for shard, commits in zip(executor.shards, done, strict=True) if "screen" not in commits]
    if due:
        settled(run.executor.context.call, mapper, [run.job(SCREENING, shard, {}) for shard in due])
        run.store.refresh("stages")
        executor.decide_run("screen", done)
    done = executor.commits(retry=CANDIDATES)
    note_screening(executor, run.config.name, Eye.of(run.config.screen.measure), done)
    check_failures(run.store, run.config.max_failed, "screen", done)
    return done


def narrowed(run: Run, done: list[dict[str, Commit]]) -> list[dict[str, Commit]]:
    """Leave out the shards behind the first ones that meet the target, and their commits; all stay without a target.

    Args:
        run: The run; its executor's shards are cut.
        done: The commits of its shards, or of the first ones if the others are not wanted.

    Returns:
        The commits that hold for the shards that stay.
    """
    end = next((place for place in range(1, len(done) + 1) if _enough(run, done[:place])), len(done))
    if end == len(run.executor.shards):
        return done
    del run.executor.shards[end:]
    return run.executor.commits()


def _enough(run: Run, done: Sequence[dict[str, Commit]]) -> bool:
    """Whether the sources of these shards meet the target; False without one, or where a shard is not done."""
    cut = run.config.publish.cut
    if cut.target is None or len(done) < run.core_end or any("instruct" not in commits for commits in done):
        return False
    kept = sum(commits["instruct"].statuses.get(Status.KEPT, 0) for commits in done)
    # A source that waits counts as kept: what people reject, the next build makes up for.
    kept += sum(commits["review"].statuses.get(Status.WAITING, 0) for commits in done) // 2
    return kept >= math.ceil(cut.target * cut.margin)
