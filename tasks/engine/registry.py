"""Adapters by name: what is chosen in a config, loaded once per worker thread."""

import importlib
import json
import threading
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from tasks.engine import weights
from tasks.engine.errors import ConfigError

T = TypeVar("T")


class Adapter:
    """What every adapter class declares beside its protocol's methods.

    `Params` is a pydantic model with `extra="forbid"`; `version` rises when the same input would give another
    output; `weights` names the entries of the model registry that the adapter reads; `local` names the parameters
    that only say where things lie on this machine.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """No parameters."""

    version: int = 1
    weights: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    def __init__(self, params: Any) -> None:
        self.params = params


class Registry(Generic[T]):
    """One kind of adapter: name → class, given as "module:Class" so that listing imports nothing heavy.

    Args:
        kind: What the adapters are, for messages ("editor").
        entries: Name → "module:Class", or the class itself.
    """

    def __init__(self, kind: str, entries: Mapping[str, str | type[Adapter]]) -> None:
        self.kind = kind
        self._entries: dict[str, str | type[Adapter]] = dict(entries)
        self._loaded = threading.local()

    def add(self, name: str, adapter: type[Adapter]) -> None:
        """Register an adapter of your own, or replace one."""
        self._entries[name] = adapter
        self._loaded = threading.local()

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
            raise ConfigError(f"{self.kind} '{name}': {where}: {first['msg']}", "see `fedbench build --help`") from None

    def identity(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """What decides the adapter's output, for the fingerprint; loads no model."""
        adapter = self.adapter_class(name)
        return {
            "kind": self.kind,
            "name": name,
            "version": adapter.version,
            "params": self.parse(name, params).model_dump(mode="json"),
            "weights": {weight: weights.sha256_of(weight) for weight in adapter.weights},
        }

    def get(self, name: str, params: Mapping[str, Any]) -> T:
        """The adapter, made at most once per thread: models load once, and need not be thread-safe."""
        loaded: dict[str, T] = self._loaded.__dict__.setdefault("adapters", {})
        key = json.dumps([name, dict(params)], sort_keys=True, default=str)
        if key not in loaded:
            loaded[key] = cast(T, self.adapter_class(name)(self.parse(name, params)))
        return loaded[key]
