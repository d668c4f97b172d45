"""Who made what and who checked it, by model family: a maker's relative cannot vouch for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from schemas.config import BuildConfig
from schemas.published import AnswersUsed, RoleUsed
from schemas.sections import Adapter as Spec
from tasks.boards import BOARDS
from tasks.describers import CHECKERS, DESCRIBERS
from tasks.editors import EDITORS
from tasks.engine.registry import Adapter, Registry
from tasks.voters import VOTERS

MAKERS: Final = ("editor", "captioner", "writer")


_STAGES: Final = {
    "editor": "generate",
    "voter": "verify",
    "captioner": "caption",
    "judge": "review",
    "writer": "instruct",
    "checker": "instruct",
}


@dataclass(frozen=True)
class _Part:
    role: str
    name: str
    label: str
    called: str
    family: str
    adapter: type[Adapter]
    version: int


def cast_of(config: BuildConfig) -> Iterator[tuple[str, str, str, Spec]]:
    """Everybody who made or checked something, in the order the data flows.

    Yields:
        Role; what people call it, of an editor its model; what rows call it where that differs, else ""; its spec.
    """
    # Several editors may be of one adapter, so rows' names tell them apart.
    for called, editor in config.generate.measure.editors.items():
        label = editor.model or editor.name
        yield "editor", label, called if called != label else "", editor
    for role, spec in _others(config):
        yield role, spec.label, "", spec


def _others(config: BuildConfig) -> Iterator[tuple[str, Spec]]:
    for voter in config.verify.measure.panel:
        yield "voter", voter
    yield "captioner", config.caption.measure.describer
    yield "judge", config.review.measure.board
    yield "writer", config.instruct.measure.describer
    if config.instruct.measure.checker:
        yield "checker", config.instruct.measure.checker


def roles_of(config: BuildConfig, stages: Mapping[str, Sequence[AnswersUsed]]) -> tuple[RoleUsed, ...]:
    """The roles of a build with their conflicts: a maker and a checker of one family, or tuned against each other.

    An adapter stands there once for each of its versions whose answers were taken (`stages`).
    """
    parts = [
        _Part(role, spec.name, label, called, _family(role, spec), _registry(role).adapter_class(spec.name), version)
        for role, label, called, spec in cast_of(config)
        for version in _versions(role, spec.name, stages.get(_STAGES[role], ()))
    ]
    return tuple(
        RoleUsed(
            role=part.role,
            adapter=part.label,
            called=part.called,
            version=part.version,
            family=part.family,
            conflicts=tuple(dict.fromkeys(words for other in parts for words in _conflicts(part, other))),
        )
        for part in parts
    )


def _registry(role: str) -> Registry[Any]:
    registries: dict[str, Registry[Any]] = {"editor": EDITORS, "voter": VOTERS, "judge": BOARDS, "checker": CHECKERS}
    return registries.get(role, DESCRIBERS)


def _family(role: str, spec: Spec) -> str:
    return _registry(role).family(spec.name, spec.params)


def _versions(role: str, name: str, answers: Sequence[AnswersUsed]) -> list[int]:
    """The versions of an adapter that answered."""
    registry = _registry(role)
    used = [identity for one in answers for identity in one.uses if isinstance(identity, dict)]
    found = {one["version"] for one in used if (one["kind"], one["name"]) == (registry.kind, name)}
    return sorted(found or {registry.adapter_class(name).version})


def _conflicts(part: _Part, other: _Part) -> Iterator[str]:
    """Why one of a maker and a checker says nothing of the other."""
    if (part.role in MAKERS) == (other.role in MAKERS):
        return
    if part.family and part.family == other.family:
        yield f"same family as {other.role} {other.label}"
    if other.name in part.adapter.tuned_against or part.name in other.adapter.tuned_against:
        yield f"tuned against {other.role} {other.label}, or that against it"
