"""Who is asked how often, and what an answer takes: the one place that reads prices and times of adapters."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from schemas.config import BuildConfig
from schemas.forecasts import Number
from schemas.sections import Adapter as Spec
from tasks.boards import BOARDS
from tasks.describers import CHECKERS, DESCRIBERS
from tasks.editors import EDITORS
from tasks.engine.ledger import Spent
from tasks.engine.registry import Adapter, Registry
from tasks.engine.stage import Stage
from tasks.outside import BY_FIELD, adapters_in
from tasks.voters import VOTERS

_UNKNOWN: Final = Number(value=None, basis="unknown")


@dataclass(frozen=True)
class Ask:
    """One adapter at one task: asked once per row that its stage measures, an editor by the name that rows call it."""

    stage: str
    role: str
    name: str
    adapter: type[Adapter]
    params: Any

    @property
    def model(self) -> str:
        return self.adapter.model(self.params)


def asks(config: BuildConfig) -> list[Ask]:
    """Everybody whose answers make a data set, in the order the data flows."""
    entries: list[tuple[str, str, Registry[Any], dict[str, Spec] | Iterable[Spec]]] = [
        ("screen", "label", VOTERS, config.screen.measure.label_panel),
        ("generate", "edit", EDITORS, config.generate.measure.editors),
        ("verify", "vote", VOTERS, config.verify.measure.panel),
        ("caption", "caption", DESCRIBERS, [config.caption.measure.describer]),
        ("review", "review", BOARDS, [config.review.measure.board]),
        ("instruct", "instruct", DESCRIBERS, [config.instruct.measure.describer]),
        ("instruct", "check", CHECKERS, [config.instruct.measure.checker] if config.instruct.measure.checker else []),
    ]
    return [
        Ask(stage, role, name, registry.adapter_class(spec.name), registry.parse(spec.name, spec.params))
        for stage, role, registry, specs in entries
        for name, spec in (specs.items() if isinstance(specs, dict) else [(spec.label, spec) for spec in specs])
    ]


def price(ask: Ask, spent: Iterable[Spent]) -> Number:
    """Dollars per answer: what the ledger has seen of its model, else what the adapter declares, else unknown."""
    seen = [one for one in spent if ask.model and one.model == ask.model and one.price is not None]
    if seen:
        answers = sum(one.sent for one in seen)
        return Number(value=sum(one.dollars for one in seen) / answers, basis="measured", rows=answers)
    declared = ask.adapter.dollars(ask.params)
    if declared == 0:
        return Number(value=0.0, basis="given")
    return Number(value=declared, basis="assumed") if declared is not None else _UNKNOWN


def adapters_of(stage: Stage[Any, Any]) -> list[tuple[type[Adapter], Any]]:
    """The classes of everything a stage measures with, each with its parameters."""
    used = [(BY_FIELD[field], spec) for field, spec in adapters_in(stage.measure_params)]
    return [(registry.adapter_class(spec.name), registry.parse(spec.name, spec.params)) for registry, spec in used]


def declared_seconds(stage: Stage[Any, Any]) -> Number:
    """What a row of a stage takes by its adapters' word; unknown if one of them does not say."""
    seconds = [adapter.seconds for adapter, _ in adapters_of(stage)]
    known = [one for one in seconds if one is not None]
    return Number(value=sum(known), basis="assumed") if len(known) == len(seconds) else _UNKNOWN


def device(stage: Stage[Any, Any]) -> str:
    """Where a stage computes: on a GPU if one of its adapters does, outside if one asks a service, else on the CPU."""
    used = adapters_of(stage)
    devices = {"outside" if adapter.sends_outside(params) else adapter.device for adapter, params in used}
    return next((one for one in ("gpu", "outside") if one in devices), "cpu")
