"""The manifest: what a data set says of itself, counted while its rows are written."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import prompts
from schemas import __version__
from schemas.config import NOT_FINGERPRINTED, BuildConfig, GenerateMeasure
from schemas.expressions import EXPRESSIONS, Expression
from schemas.outcomes import Status
from schemas.published import (
    PICTURES,
    SCHEMA_VERSION,
    AnswersUsed,
    CellCount,
    CoreUsed,
    ExcludedSources,
    LostTriplet,
    Manifest,
    PoolUsed,
    StageCount,
    WeightUsed,
)
from schemas.records import Key
from schemas.reviewing import Review
from schemas.routes import deciding
from tasks.boards.audits import AuditTally
from tasks.boards.sampling import SampleTally
from tasks.dataset.fates import Fate, unseen
from tasks.dataset.roles import roles_of
from tasks.editors import EDITORS
from tasks.engine import weights
from tasks.engine.dossier import Life, SourceLife
from tasks.engine.fingerprint import canonical, fingerprint
from tasks.pipeline import Run
from tasks.publish import Core
from tasks.sources import POOLS, redistributable


class Tally:
    """Counts over the sources that the data set accounts for: the funnel, the cells, the licences; the core's fates."""

    def __init__(
        self, order: Sequence[str], review: Review, core: Core | None = None, audit: AuditTally | None = None
    ) -> None:
        self.sample = SampleTally(review)
        self.audit = audit or AuditTally(review)
        self._core = (core.keys | core.sources) if core else frozenset()
        self.ends: dict[Key, Fate | None] = {}
        self._statuses: dict[str, Counter[str]] = {name: Counter() for name in order}
        self._reasons: dict[str, Counter[str]] = {name: Counter() for name in order}
        self.sources = 0
        self.survivors: Counter[tuple[str, str]] = Counter()
        self.cells: Counter[tuple[str, str]] = Counter()
        self.back_checks: Counter[str] = Counter()
        self.licences: dict[str, Counter[str]] = defaultdict(Counter)
        self.measured: dict[str, Counter[str]] = {name: Counter() for name in order}

    @property
    def triplets(self) -> int:
        return self.cells.total()

    def add(self, source: SourceLife) -> None:
        """Count every step of a source and its candidates."""
        self.sources += 1
        self.licences[source.key.pool][source.source.licence] += 1
        reviewed = [life.steps["review"] for life in source.candidates if "review" in life.steps]
        self.sample.add(source.key, [(step.status, step.evidence) for step in reviewed])
        for life in source.candidates:
            edit = life.outputs.get("generate")
            steps = {name: (step.status, step.reason, step.evidence) for name, step in life.steps.items()}
            self.audit.add(life.key, edit.image if edit else "", steps)
        for life in [source, *source.candidates]:
            if life.key in self._core:
                self.ends[life.key] = _fate(life)
            for name, step in life.steps.items():
                self._statuses[name][step.status] += 1
                if step.reason:
                    self._reasons[name][step.reason] += 1
            for name, by in life.by.items():
                self.measured[name][by] += 1
            for stage, cells in (("instruct", self.survivors), ("publish", self.cells)):
                if life.reached(stage):
                    cells[source.outputs["screen"].expression, life.key.target] += 1
            if life.reached("publish"):
                self.back_checks[life.outputs["publish"].back_check] += 1

    def funnel(self) -> tuple[StageCount, ...]:
        """Per stage: owed, how many left in which way, and why."""
        return tuple(
            StageCount(
                stage=name,
                owed=statuses.total(),
                **{str(status): statuses.get(status, 0) for status in Status},
                reasons=dict(sorted(self._reasons[name].items())),
            )
            for name, statuses in self._statuses.items()
        )


def possible_cells(measure: GenerateMeasure) -> tuple[tuple[Expression, Expression], ...]:
    """The cells (source, target) that the config can fill, given photos of every expression."""
    targets = measure.targets or EXPRESSIONS
    return tuple((source, target) for source in EXPRESSIONS for target in targets if source != target)


def _fate(life: Life) -> Fate | None:
    """Where a row ended; None where none did, or where its candidates say it."""
    stage, step = life.end
    return None if step.status is Status.KEPT else Fate(stage, step.reason or str(step.status), step.evidence)


def cell_counts(
    survivors: Mapping[tuple[str, str], int], triplets: Mapping[tuple[str, str], int], config: BuildConfig
) -> tuple[CellCount, ...]:
    """The natural and the published mix by (source, target) expression, with the shortfall against even shares.

    A cell's even share is the target over all cells that the config can fill, rounded down.
    """
    possible = possible_cells(config.generate.measure)
    share = (config.publish.cut.target or 0) // len(possible)
    short: dict[tuple[str, str], int] = {cell: max(0, share - triplets.get(cell, 0)) for cell in possible}
    return tuple(
        CellCount(
            source=cell[0],
            target=cell[1],
            survivors=survivors.get(cell, 0),
            triplets=triplets.get(cell, 0),
            short=short.get(cell, 0),
        )
        for cell in sorted({*survivors, *triplets, *(cell for cell in possible if short[cell])})
    )


def described(config: BuildConfig) -> dict[str, Any]:
    """The config as the data set tells it: without what changes no row, addresses, prices, paths of this machine."""
    values: dict[str, Any] = deciding(config.model_dump(mode="json", exclude=set(NOT_FINGERPRINTED)))
    # A release may be acknowledged after the build; that changes nothing in what was built.
    values["publish"].pop("acknowledge_licences")
    measure = values["generate"]["measure"]
    editors = [measure["editor"], *(entry["editor"] for entry in measure["top_up"] if entry["editor"])]
    for registry, specs in ((POOLS, values["pools"]), (EDITORS, editors)):
        for spec in specs:
            adapter = registry.adapter_class(spec["name"])
            local = set(adapter.local) - set(adapter.told)
            spec["params"] = {name: value for name, value in spec["params"].items() if name not in local}
    return values


def make_manifest(run: Run, tally: Tally, files: dict[str, int], digests: Sequence[str]) -> Manifest:
    """The manifest of a full data set.

    Args:
        run: What was built.
        tally: Over all sources in it.
        files: Parquet file → rows.
        digests: `row_sha256` of every row, in any order.
    """
    stages = {name: answers_used(run, name, counts) for name, counts in tally.measured.items()}
    used = {
        name
        for answers in stages.values()
        for one in answers
        for identity in one.uses
        for name in _weight_names(identity)
    }
    return Manifest(
        name=run.config.name,
        edition=run.config.edition,
        split=run.config.split,
        schema_version=SCHEMA_VERSION,
        pictures=PICTURES,
        full_sha256="",
        fedbench=__version__,
        pyarrow=metadata.version("pyarrow"),
        config=described(run.config),
        stages=stages,
        prompts={name: prompts.sha256_of(name) for name in prompts.names()},
        weights=tuple(
            WeightUsed(name=entry.name, licence=entry.licence, tuned_against=entry.tuned_against)
            for entry in map(weights.entry, sorted(used))
        ),
        pools=_pools(run.config, tally),
        roles=roles_of(run.config, stages),
        excluded=_excluded(run),
        core=_core(run, tally),
        sources=tally.sources,
        triplets=tally.triplets,
        funnel=tally.funnel(),
        cells=cell_counts(tally.survivors, tally.cells, run.config),
        back_checks=dict(sorted(tally.back_checks.items())),
        sample=tally.sample.found(),
        audit=tally.audit.found(),
        files=files,
        rows_sha256=fingerprint(sorted(digests)),
    )


def answers_used(run: Run, stage: str, counts: Mapping[str, int]) -> tuple[AnswersUsed, ...]:
    """Whose answers a stage took, by measure identity; the present one's where it took none."""
    found = []
    for id_, rows in (counts or dict.fromkeys(run.executor.measure_ids[stage].values(), 0)).items():
        identity = run.executor.identity(stage, id_)
        found.append(AnswersUsed(version=identity.version, group=identity.group, uses=tuple(identity.uses), rows=rows))
    return tuple(sorted(found, key=lambda one: (one.group, one.version, canonical(list(one.uses)))))


def _pools(config: BuildConfig, tally: Tally) -> tuple[PoolUsed, ...]:
    kinds = {str(getattr(POOLS.parse(spec.name, spec.params), "pool", spec.name)): spec.name for spec in config.pools}
    return tuple(
        PoolUsed(
            name=name,
            kind=kind,
            redistributable=redistributable(kind),
            licences=dict(sorted(tally.licences[name].items())),
        )
        for name, kind in sorted(kinds.items())
    )


def _excluded(run: Run) -> ExcludedSources | None:
    out = run.excluded
    if out is None:
        return None
    return ExcludedSources(
        sources=len(out.guard.portraits),
        without_identity=out.without_identity,
        digest=out.guard.digest,
        model=out.model,
    )


def _core(run: Run, tally: Tally) -> CoreUsed | None:
    if run.core is None:
        return None
    lost = []
    for key in sorted(run.core.keys):
        fate = tally.ends.get(key.source()) or tally.ends.get(
            key, unseen(run.config, listed=key.source() in tally.ends)
        )
        if fate is not None:
            lost.append(LostTriplet(key=key, stage=fate.stage, reason=fate.reason, evidence=fate.evidence))
    ids = tuple(sorted(map(str, run.core.keys)))
    return CoreUsed(edition=run.core.edition, digest=run.core.digest, triplets=ids, lost=tuple(lost))


def _weight_names(identity: Any) -> list[str]:
    return list(identity["weights"]) if isinstance(identity, dict) else []
