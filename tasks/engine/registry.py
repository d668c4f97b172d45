"""Adapters by name: what is chosen in a config, loaded once per worker thread."""

import importlib
import json
import threading
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

import prompts
from schemas.routes import deciding
from tasks.engine import weights
from tasks.engine.errors import ConfigError

T = TypeVar("T")


class Adapter:
    """What every adapter class declares beside its protocol's methods.

    `Params` is a pydantic model with `extra="forbid"`; `version` rises when the same input would give another
    output; `weights` names the entries of the model registry that the adapter reads; `local` names the parameters
    that decide no output, such as where things lie on this machine, and `told` those of them that a data set tells all
    the same (of editors). `family` names the family of models it belongs to, empty if none,
    and `tuned_against` the adapters that were looked at while it was tuned: neither can vouch for the other.
    `sends_pictures_outside` says that pictures leave the machine with its calls, `uses_seed` that another seed gives
    another output, `needs_face` that it fails where the source shows none, `heeds_target` that another target gives
    another output (these three are asked of editors alone). `prompts` names what it may say to a model. `remote`
    ones mostly wait for others: many are asked at once, through `Calls.gather`. For forecasts, `device` is where it
    computes ("cpu", "gpu", or "outside" for a service), and `seconds` about how long one answer takes there, None if
    nobody knows; what a workspace has measured counts for more.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """No parameters."""

    version: int = 1
    weights: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    family: str = ""
    tuned_against: tuple[str, ...] = ()
    sends_pictures_outside: bool = False
    uses_seed: bool = True
    needs_face: bool = True
    heeds_target: bool = True
    prompts: tuple[str, ...] = ()
    remote: bool = False
    device: Literal["cpu", "gpu", "outside"] = "cpu"
    seconds: float | None = None

    @classmethod
    def dollars(cls, params: Any) -> float | None:  # noqa: ARG003 - a price may depend on them
        """About what one answer costs, in dollars: 0 for a local adapter, None where no price is known.

        Args:
            params: Its parsed `Params`.
        """
        return None if cls.sends_pictures_outside else 0.0

    @classmethod
    def contents(cls, params: Any) -> str:  # noqa: ARG003 - for subclasses
        """Digest of the files of the user's that decide the output; empty where there are none, or none are there."""
        return ""

    @classmethod
    def model(cls, params: Any) -> str:
        """The model that the ledger knows its calls by; empty where it makes none."""
        return str(getattr(params, "model", ""))

    def __init__(self, params: Any) -> None:
        self.params = params

    def notes(self) -> list[str]:
        """What is to be logged of the work since it was asked last, a line each: less memory than thought, say."""
        return []

    @classmethod
    def check(cls, params: Any) -> None:
        """Raise the ConfigError that its construction would, as far as can be told without loading a model."""

    @classmethod
    def family_of(cls, params: Any) -> str:  # noqa: ARG003 - for subclasses
        """The family of models that these parameters choose."""
        return cls.family

    @classmethod
    def watermark_of(cls, params: Any) -> str:  # noqa: ARG003 - for subclasses
        """What the pictures it makes are marked with; empty where nothing is known. Asked of editors alone."""
        return ""

    @classmethod
    def sends_outside(cls, params: Any) -> bool:  # noqa: ARG003 - for subclasses
        """Whether pictures leave the machine under these parameters."""
        return cls.sends_pictures_outside


class Registry(Generic[T]):
    """One kind of adapter: name → class, given as "module:Class" so that listing imports nothing heavy.

    Args:
        kind: What the adapters are, for messages ("editor").
        entries: Name → "module:Class", or the class itself.
    """

    def __init__(self, kind: str, entries: Mapping[str, str | type[Adapter]]) -> None:
        self.kind = kind
        self._entries: dict[str, str | type[Adapter]] = dict(entries)
        self._held = threading.local()
        self._idle: dict[str, list[T]] = {}

    def add(self, name: str, adapter: type[Adapter]) -> None:
        """Register an adapter of your own, or replace one."""
        self._entries[name] = adapter
        self._held = threading.local()
        self._idle = {}

    def names(self) -> list[str]:
        return sorted(self._entries)

    def adapter_class(self, name: str) -> type[Adapter]:
        if name not in self._entries:
            raise ConfigError(f"unknown {self.kind} '{name}'", f"choose one of: {', '.join(self.names())}")
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = self._entries[name] = cast(type[Adapter], getattr(importlib.import_module(module), attribute))
        return entry

    def parse(self, name: str, params: Mapping[str, Any]) -> BaseModel:
        """The adapter's typed parameters, or a ConfigError that names the wrong one."""
        try:
            return self.adapter_class(name).Params.model_validate(dict(params))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            known = ", ".join(self.adapter_class(name).Params.model_fields) or "none"
            wrong = first["msg"].removeprefix("Value error, ")
            raise ConfigError(f"{self.kind} '{name}': {where}: {wrong}", f"its parameters: {known}") from None

    def identity(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """What decides the adapter's output, for the fingerprint; loads no model."""
        adapter = self.adapter_class(name)
        contents = adapter.contents(self.parse(name, params))
        return {
            "kind": self.kind,
            "name": name,
            "version": adapter.version,
            "params": deciding(self.parse(name, params).model_dump(mode="json", exclude=set(adapter.local))),
            "weights": {weight: weights.sha256_of(weight) for weight in adapter.weights},
            **({"contents": contents} if contents else {}),
            **({"prompts": {each: prompts.sha256_of(each) for each in adapter.prompts}} if adapter.prompts else {}),
        }

    def check(self, name: str, params: Mapping[str, Any]) -> None:
        """A ConfigError where the adapter could not work, before anything is spent."""
        self.adapter_class(name).check(self.parse(name, params))

    def remote(self, name: str) -> bool:
        """Whether the adapter mostly waits for others."""
        return self.adapter_class(name).remote

    def family(self, name: str, params: Mapping[str, Any]) -> str:
        """The family of its models; empty if none is named."""
        return self.adapter_class(name).family_of(self.parse(name, params))

    def watermark(self, name: str, params: Mapping[str, Any]) -> str:
        """What the pictures it makes are marked with; empty where nothing is known."""
        return self.adapter_class(name).watermark_of(self.parse(name, params))

    def sends_outside(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether pictures leave the machine with its calls."""
        return self.adapter_class(name).sends_outside(self.parse(name, params))

    def get(self, name: str, params: Mapping[str, Any]) -> T:
        """The adapter, held by the calling thread, so that it need not be thread-safe.

        A thread that ends hands its adapters on: a process loads a model as often as threads use it at once. So an
        adapter that uses another asks for it on every call; one kept from its construction may be another thread's.
        """
        if not hasattr(self._held, "adapters"):
            self._held.adapters = _Held(self._idle)
        held: dict[str, T] = self._held.adapters
        key = json.dumps([name, dict(params)], sort_keys=True, default=str)
        if key not in held:
            try:
                held[key] = self._idle.get(key, []).pop()
            except IndexError:
                held[key] = cast(T, self.adapter_class(name)(self.parse(name, params)))
        return held[key]


class _Held(dict[str, Any]):
    """One thread's adapters; given back when the thread, and with it this, goes away."""

    def __init__(self, idle: dict[str, list[Any]]) -> None:
        super().__init__()
        self._idle = idle

    def __del__(self) -> None:
        for key, adapter in self.items():
            self._idle.setdefault(key, []).append(adapter)
