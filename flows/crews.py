"""Who works on the parts of a segment that need not stay in the coordinator: nobody else, processes, or Ray."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows import ray_cluster, ray_worker
from flows.parts import Part, Where, parts, request
from flows.processes import processes
from tasks.engine.rows import Commit
from tasks.pipeline import CANDIDATES, SCREENING, Run
from tasks.rounds import Job

Work = Callable[[Job], dict[str, Commit]]
Watching = Callable[[int], AbstractContextManager[None]]


@dataclass(frozen=True)
class Crew:
    """How parts elsewhere are worked on.

    Attributes:
        runner: Prefect's way there; entered anew by every sub-flow.
        bound: What a task run calls, of the work and its job.
        asking: Within it, what is submitted asks for what the part needs.
        watching: Within it, what befell a shard's worker is told in our words.
    """

    runner: TaskRunner[Any]
    bound: Callable[[Work, Job], Callable[[], dict[str, Commit]]] = partial
    asking: Callable[[Part], AbstractContextManager[Any]] = lambda _: nullcontext()
    watching: Watching = lambda _: nullcontext()


@contextmanager
def crew(run: Run) -> Iterator[Crew]:
    """The crew that a run's config asks for, for as long as the context lasts: its models stay loaded in between.

    Raises:
        FedbenchError: It cannot be had; see `flows.ray_cluster`.
    """
    config = run.config
    if config.runner == "threads":
        yield Crew(ThreadPoolTaskRunner(max_workers=config.workers))
    elif config.runner == "processes":
        with processes(config.workers) as held:
            # A thread waits for each process.
            runner: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=config.workers)
            yield Crew(runner, lambda work, job: partial(held.do, partial(work, job)))
    else:
        with _on_ray(run) as found:
            yield found


@contextmanager
def _on_ray(run: Run) -> Iterator[Crew]:
    config = run.config
    every = [part for segment in (SCREENING, CANDIDATES) for part in parts(segment, config, run.executor.stages)]
    with ray_cluster.connected(config, [request(part, config) for part in every if part.where is not Where.HERE]):
        from prefect_ray import RayTaskRunner
        from prefect_ray.context import remote_options

        def asking(part: Part) -> AbstractContextManager[Any]:
            asked = request(part, config)
            # max_calls=0: Ray would end a GPU's worker after every task, and load its model for every shard.
            options: AbstractContextManager[Any] = remote_options(
                num_cpus=asked.cpus,
                num_gpus=asked.gpus,
                memory=int(asked.memory_gb * 1e9),
                max_calls=0,
                max_retries=config.ray.tries,
            )
            return options

        yield Crew(RayTaskRunner(), _for_node, asking, ray_cluster.in_words)


def _for_node(work: Work, job: Job) -> Callable[[], dict[str, Commit]]:
    return partial(ray_worker.on_node, work, ray_worker.program(), job)
