"""Which stored answers count: those of published editions come first, under whatever identity they were given.

A measurement has an identity (stage version, adapters, prompts, weights) and a choice: what the user said (stage,
parameters, seed) and the shape of the answer. `replay` takes an older identity's answers as long as the choice is
the same; `refresh` takes those of the present identity alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from schemas.records import Record
from tasks.engine.fingerprint import fingerprint
from tasks.engine.rows import measured_type
from tasks.engine.stage import Stage
from tasks.engine.store import Store, arrow_schema

# By stage and group of keys: the measure identities whose answers count, first come first; for a whole run.
Lineage = Mapping[str, Mapping[str, Sequence[str]]]
# By stage and choice: the measure identities whose answers were taken, in the order they counted.
Answers = dict[str, dict[str, tuple[str, ...]]]
AnyStage = Stage[Any, Any]


class Identity(Record):
    """What measured: a stage's version, the group of keys, and the adapters, prompts and weights it used."""

    version: int
    group: str
    uses: list[Any]


class Edition(Record):
    """A published edition, and whose answers it took."""

    edition: str
    answers: Answers = Field(default_factory=dict)


def measure_id(stage: AnyStage, group: str, seed: int) -> str:
    """Digest of everything but the rows that decides the measurements of a group of keys."""
    return fingerprint(stage.name, stage.version, stage.choice(), group, stage.groups()[group], seed)


def choice_id(stage: AnyStage, group: str, seed: int) -> str:
    """Digest of what the user chose of it, and of the answer's shape: an older shape could not be read."""
    return fingerprint(stage.name, stage.choice(), group, seed, str(arrow_schema(measured_type(stage.measurement))))


def editions(store: Store, folder: str) -> list[Edition]:
    """The published editions of a run, in the order they were first published."""
    return store.read_as(f"{folder}/editions.json", list[Edition]) or []


def lineage(known: Sequence[Edition], edition: str, stages: Sequence[AnyStage], seed: int) -> Lineage:
    """Whose answers an edition takes: its own first, then those of the others, newest first, then the present ones.

    The order depends on what is published, never on what an unfinished build left.
    """
    own = [one for one in known if one.edition == edition]
    others = [one for one in reversed(known) if one.edition != edition]
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for stage in stages:
        found[stage.name] = {}
        for group in stage.groups():
            choice = choice_id(stage, group, seed)
            ids = [id_ for one in own + others for id_ in one.answers.get(stage.name, {}).get(choice, ())]
            found[stage.name][group] = tuple(dict.fromkeys([*ids, measure_id(stage, group, seed)]))
    return found


def note_published(store: Store, folder: str, edition: str, taken: Answers) -> None:
    """Remember whose answers an edition took; answers to other choices stay known."""
    known = {one.edition: one for one in editions(store, folder)}
    before = known.get(edition, Edition(edition=edition))
    answers = {stage: before.answers.get(stage, {}) | ids for stage, ids in taken.items()}
    known[edition] = before.model_copy(update={"answers": answers})
    _write(store, folder, list(known.values()))


def _write(store: Store, folder: str, known: Sequence[Edition]) -> None:
    values = [one.model_dump(mode="json") for one in known]
    if store.read_json(f"{folder}/editions.json") != values:
        store.write_json(f"{folder}/editions.json", values)
