"""What stands against a scoring run, said before anything is spent; and whose word is worth less, and why."""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.routes import routes_in
from schemas.score_config import ScoreConfig
from schemas.score_manifest import EditorUsed, JudgeUsed
from schemas.scoring import Granularity
from schemas.sections import Adapter
from tasks.distances import DISTANCES
from tasks.editors import EDITORS
from tasks.engine.errors import ConfigError
from tasks.engine.registry import Registry
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.judges import JUDGES
from tasks.providers.routes import check_routes
from tasks.scoring.judge import again
from tasks.scoring.steps import filled
from tasks.scoring.triplets import Benchmark


def check(config: ScoreConfig, benchmark: Benchmark) -> None:
    """Refuse what cannot work or may not be done.

    Raises:
        ConfigError: What an adapter's own check says; a missing key; pictures of a restricted pool would leave.
    """
    for registry, spec in adapters(config):
        registry.check(spec.name, spec.params)
    if not config.calls.replay_only:
        check_routes(list(routes_in(config.model_dump(mode="json"))))
    if config.acknowledge_external_api or not benchmark.restricted:
        return
    for registry, spec in adapters(config):
        if registry.sends_outside(spec.name, spec.params):
            raise ConfigError(
                f"{registry.kind} '{spec.label}' sends pictures to an outside service, and the licence of pool "
                f"'{benchmark.restricted}' does not allow them to be passed on",
                "if yours does, say --set acknowledge_external_api=true; else choose a local one",
            )


def adapters(config: ScoreConfig) -> Iterator[tuple[Registry[Any], Adapter]]:
    """Everything that a run is made of."""
    measure = config.measure
    yield ANALYZERS, measure.faces
    yield EMBEDDERS, measure.identity
    if measure.distance:
        yield DISTANCES, measure.distance
    for editor in config.editors:
        for granularity in config.granularities:
            yield EDITORS, filled(editor.adapter, granularity)
    for judge in config.judges:
        yield JUDGES, again(judge, config.judging.repeats - 1)


def editors_used(config: ScoreConfig, benchmark: Benchmark) -> tuple[EditorUsed, ...]:
    """The editors with what marks them: relatives of who made the ground truths, or of a judge."""
    judges = [("judge", judge.label, JUDGES.family(judge.name, judge.params), judge.name) for judge in config.judges]
    found = []
    for editor in sorted(config.editors, key=lambda editor: editor.called):
        spec = editor.adapter
        family = EDITORS.family(spec.name, spec.params)
        tuned = EDITORS.adapter_class(spec.name).tuned_against
        others = [*_roles(benchmark, ("editor",)), *judges]
        # Of files of the user's that differ by instruction, both digests are told.
        each = {str(one): _identity(spec, one) for one in sorted(config.granularities)}
        contents = _contents(each)
        identity = next(iter(each.values())) | ({"contents": contents} if contents else {})
        words = tuple(_conflicts(family, spec.name, tuned, others))
        makers = [one for one in _roles(benchmark, ("editor",)) if [*_conflicts(family, spec.name, tuned, [one])]]
        truths = tuple(sorted({adapter for _, _, _, adapter in makers}))
        found.append(EditorUsed(editor=editor.called, family=family, identity=identity, conflicts=words, truths=truths))
    return tuple(found)


def _identity(spec: Adapter, granularity: Granularity) -> dict[str, Any]:
    ready = filled(spec, granularity)
    return EDITORS.identity(ready.name, ready.params)


def _contents(each: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    found = {name: str(identity.get("contents", "")) for name, identity in each.items()}
    return found if len(set(found.values())) > 1 else {}


def judges_used(config: ScoreConfig, benchmark: Benchmark) -> tuple[JudgeUsed, ...]:
    """The judges with what marks them: relatives of a voter, of who made or wrote the ground truths, of an editor."""
    editors = [
        ("scored editor", one.called, EDITORS.family(one.adapter.name, one.adapter.params), one.adapter.name)
        for one in config.editors
    ]
    found = []
    for judge in config.judges:
        family = JUDGES.family(judge.name, judge.params)
        makers = [*_roles(benchmark, ("editor", "voter", "writer", "captioner", "checker"))]
        identity = JUDGES.identity(judge.name, judge.params)
        words = tuple(_conflicts(family, judge.label, (), [*makers, *editors]))
        kin = any(_conflicts(family, judge.label, (), makers))
        found.append(JudgeUsed(judge=judge.label, family=family, identity=identity, conflicts=words, of_data_set=kin))
    return tuple(found)


def _roles(benchmark: Benchmark, wanted: tuple[str, ...]) -> Iterator[tuple[str, str, str, str]]:
    for role in benchmark.manifest.roles:
        if role.role in wanted:
            yield f"the ground truths' {role.role}", role.adapter, role.family, role.adapter


def _conflicts(
    family: str, name: str, tuned: tuple[str, ...], others: list[tuple[str, str, str, str]]
) -> Iterator[str]:
    """In words, once each. A family is the model's, an adapter's name that of its kind: equal ones are relatives."""
    told: dict[str, dict[str, None]] = {}
    for role, label, theirs, adapter in others:
        if family and family == theirs:
            told.setdefault("same family as", {})[f"{role} {label}"] = None
        elif not family and role.endswith(" editor") and adapter == name:
            told.setdefault("the same as", {})[f"{role} {label}"] = None
        elif adapter in tuned:
            told.setdefault("tuned against", {})[f"{role} {label}"] = None
    for how, whom in told.items():
        yield f"{how} {' and '.join(whom)}"
