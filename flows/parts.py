"""Which stages of a segment are worked on together, and where: whatever asks models outside stays in the coordinator.

One process makes all calls: one ledger, one budget, one limiter, one writer of the answer store. So elsewhere, in
processes or on Ray, a segment is cut where it begins or ends to ask outside. The stages and their rows are the same.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any, NamedTuple

from schemas.config import BuildConfig
from schemas.scaling import Needs
from tasks.engine.stage import Stage
from tasks.forecast.asks import adapters_of

_NO_NEEDS = Needs()


class Where(StrEnum):
    """Where a part is worked on: in the coordinator, on any other worker, or on one with a GPU."""

    HERE = "here"
    CPU = "cpu"
    GPU = "gpu"


class Part(NamedTuple):
    """Consecutive stages of a segment that are worked on together."""

    stages: tuple[str, ...]
    where: Where

    @property
    def name(self) -> str:
        """What its task runs are called."""
        return self.stages[0] if len(self.stages) == 1 else f"{self.stages[0]}-to-{self.stages[-1]}"


class Request(NamedTuple):
    """What a part asks of a node: cores, GPUs, gigabytes."""

    cpus: float
    gpus: float
    memory_gb: float


def parts(segment: Sequence[str], config: BuildConfig, stages: Mapping[str, Stage[Any, Any]]) -> list[Part]:
    """A segment, cut for the config's runner. With threads it stays whole.

    Args:
        segment: Names of consecutive stages.
        config: The build's.
        stages: By name.
    """
    if config.runner == "threads":
        return [Part(tuple(segment), Where.HERE)]
    told: list[tuple[Where, str]] = []
    for name in segment:
        where = _where(stages[name], config)
        # A stage without a model goes where its rows are.
        told.append((where or (told[-1][0] if told else Where.CPU), name))
    return [Part(tuple(name for _, name in group), where) for where, group in groupby(told, lambda pair: pair[0])]


def request(part: Part, config: BuildConfig) -> Request:
    """What a part asks of a node: of each thing the most that one of its stages asks for."""
    needs = [config.ray.needs.get(name, _NO_NEEDS) for name in part.stages]  # type: ignore[call-overload]
    gpu = part.where is Where.GPU
    return Request(
        max(1.0 if need.cpus is None else need.cpus for need in needs),
        max(float(gpu) if need.gpus is None else need.gpus for need in needs),
        max((8.0 if gpu else 1.0) if need.memory_gb is None else need.memory_gb for need in needs),
    )


def _where(stage: Stage[Any, Any], config: BuildConfig) -> Where | None:
    """Where a stage has to be; None where it runs no model of its own."""
    used = adapters_of(stage)
    if any(adapter.remote for adapter, _ in used):
        return Where.HERE
    if stage.name == "review":
        return None
    need = config.ray.needs.get(stage.name, _NO_NEEDS)  # type: ignore[call-overload]
    computes = any(adapter.device == "gpu" and getattr(params, "device", "") != "cpu" for adapter, params in used)
    gpu = computes if need.gpus is None else need.gpus > 0
    return Where.GPU if gpu and config.runner == "ray" else Where.CPU
