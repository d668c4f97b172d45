"""A scoring run: what it owes, doing it shard by shard, and its rows. What is done already is not done again."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from schemas.expressions import Expression
from schemas.records import Key
from schemas.score_config import ScoreConfig
from schemas.score_steps import JudgedParts, Made, ScoredSource, TripletFacts
from schemas.scoring import ROW_ORDER, RuleParts, Scored, ScoreRow, State, Unchanged
from schemas.sections import Section
from tasks.editors import EDITORS
from tasks.engine.calls import Calls
from tasks.engine.errors import Postponed
from tasks.engine.fingerprint import seed_of
from tasks.engine.images import ImageStore
from tasks.engine.measure import Measurer
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed
from tasks.engine.store import Store, disk
from tasks.engine.tombstones import check_finished
from tasks.metrics.score import failed, scored, with_truths
from tasks.scoring.checks import check
from tasks.scoring.edit import ScoreEdit, instruction_of
from tasks.scoring.judge import Judges, ScoreJudge
from tasks.scoring.noop import ScoreNoop
from tasks.scoring.parts import ScoreParts
from tasks.scoring.steps import Entry
from tasks.scoring.triplets import Benchmark, open_benchmark

Place = tuple[Shard, tuple[ScoredSource, ...]]
Work = Callable[[Place], None]
Mapper = Callable[[Work, Sequence[Place], Callable[[], None]], None]


@dataclass(frozen=True)
class Scoring:
    """An opened scoring run."""

    config: ScoreConfig
    store: Store
    images: ImageStore
    call: Calls
    benchmark: Benchmark

    @property
    def folder(self) -> Path:
        """Where the scores lie."""
        return self.store.path(f"runs/{self.config.name}/scores")

    @cached_property
    def entries(self) -> list[Entry]:
        """Editors by name, each with the granularities in one order."""
        editors = sorted(self.config.editors, key=lambda editor: editor.called)
        return [Entry(editor, each) for editor in editors for each in sorted(self.config.granularities)]

    @cached_property
    def noop_sources(self) -> frozenset[Key]:
        """The sources that editors are to re-encode: the first so many, in the order of a hash of their keys."""
        ordered = [source.key for _, sources in self.benchmark.shards for source in sources]
        return frozenset(ordered[: self.config.noop.sources])

    def unchanged(self, entry: Entry, sources: Sequence[ScoredSource]) -> list[ScoredSource]:
        """Those of them that an editor re-encodes; none of an editor outside, unless the config has it paid for."""
        if EDITORS.remote(entry.spec.name) and not self.config.noop.outside:
            return []
        return [source for source in sources if source.key in self.noop_sources]

    @cached_property
    def measurers(self) -> list[Measurer]:
        """One per entry, in that order."""
        context = Context(self.config.seed, self.images, self.call, self._log)
        return [Measurer(self.store, list(self._steps(entry)), context) for entry in self.entries]

    def _steps(self, entry: Entry) -> Iterator[Any]:
        yield ScoreEdit(entry, Section())
        yield ScoreNoop(entry, self.config.measure)
        yield ScoreParts(entry, self.config.measure)
        if self.config.judges:
            yield ScoreJudge(entry, Judges(judges=self.config.judges, judging=self.config.judging))

    def _log(self, text: str) -> None:
        path = self.store.path("crashes.log")
        with disk(path), path.open("a") as file:
            file.write(text + "\n")


def open_scoring(workspace: Path, config: ScoreConfig) -> Scoring:
    """Open a data set and check all that can be checked before anything is spent.

    Raises:
        ConfigError: The data set, an editor, a judge, a key, a model or a licence stands against it.
        WorkspaceError: The workspace cannot be used.
    """
    store = Store(workspace)
    check_finished(store)
    images = ImageStore(store)
    benchmark = open_benchmark(Path(config.dataset), store, images, config.shard_size, config.limit)
    check(config, benchmark)
    call = Calls(workspace / "answers.sqlite", config.calls, config.name)
    return Scoring(config, store, images, call, benchmark)


def due(run: Scoring) -> list[dict[str, int]]:
    """Per entry, how many rows each step has yet to measure; those that wait for an output included."""
    counts = []
    for entry, measurer in zip(run.entries, run.measurers, strict=True):
        left: Counter[str] = Counter(dict.fromkeys(measurer.stages, 0))
        for place in run.benchmark.shards:
            left.update(_left(run, entry, measurer, place))
        counts.append(dict(left))
    return counts


def _left(run: Scoring, entry: Entry, measurer: Measurer, place: Place) -> dict[str, int]:
    shard, sources = place
    made = _settled(measurer, "score_edit", shard, sources)
    owed = sum(len(source.triplets) for source in sources)
    outputs = [one for one in made.values() if isinstance(one, Made)]
    same, open_ = run.unchanged(entry, sources), owed - len(made)
    left = {"score_edit": open_, "score_noop": len(same) - len(_settled(measurer, "score_noop", shard, same))}
    for step in _of_outputs(measurer):
        left[step] = open_ + len(outputs) - len(_settled(measurer, step, shard, outputs))
    return left


def _of_outputs(measurer: Measurer) -> list[str]:
    return [step for step in ("score_parts", "score_judge") if step in measurer.stages]


def _settled(measurer: Measurer, step: str, shard: Shard, rows: Sequence[Any]) -> dict[Key, Any]:
    """The stored answers that no later run asks for again."""
    stored = measurer.measured(step, shard, rows)
    return {key: one for key, one in stored.items() if not (isinstance(one, Failed) and one.retryable)}


def measure(run: Scoring, mapper: Mapper, tell: Callable[[int, int], None]) -> None:
    """Bring every output up to date: edit, measure, judge; what is stored costs a look.

    Where some ask in batches, those of all shards are sent together, and what waited for them is done again.

    Args:
        run: The opened run.
        mapper: Applies a function to places, in any order and at once, and says so after each.
        tell: Is told how many shards are done, of how many.

    Raises:
        StoppedError: A budget, a key or a quota; run it again when that is mended.
        BatchesWaiting: Batches are in flight, and the config says that nobody waits for them.
    """
    run.call.postpones = True
    try:
        while places := [place for place in run.benchmark.shards if _is_due(run, place)]:
            done = count(1)
            mapper(lambda place: work(run, place), places, lambda: tell(next(done), len(places)))  # noqa: B023
            if not run.call.finish_batches():
                return
    finally:
        run.call.postpones = False


def _is_due(run: Scoring, place: Place) -> bool:
    pairs = zip(run.entries, run.measurers, strict=True)
    return any(any(_left(run, entry, measurer, place).values()) for entry, measurer in pairs)


def work(run: Scoring, place: Place) -> None:
    """One shard's share of all entries; what waits for a batch is left for the next round."""
    shard, sources = place
    for entry, measurer in zip(run.entries, run.measurers, strict=True):
        with suppress(Postponed):
            measurer.measure("score_noop", shard, run.unchanged(entry, sources))
            made = measurer.measure("score_edit", shard, sources)
            outputs = [one for one in made.values() if isinstance(one, Made)]
            for step in _of_outputs(measurer):
                measurer.measure(step, shard, outputs)


def rows(run: Scoring, entry: int) -> list[ScoreRow]:
    """The rows of one entry, in `ROW_ORDER`; everything was measured before."""
    found = [row for place in run.benchmark.shards for row in _rows_of(run, entry, place)]
    return with_truths(sorted(found, key=lambda row: tuple(getattr(row, name) for name in ROW_ORDER)))


def _rows_of(run: Scoring, entry: int, place: Place) -> Iterator[ScoreRow]:
    (shard, sources), measurer = place, run.measurers[entry]
    made = measurer.measured("score_edit", shard, sources)
    outputs = [one for one in made.values() if isinstance(one, Made)]
    parts = measurer.measured("score_parts", shard, outputs)
    judged = measurer.measured("score_judge", shard, outputs) if run.config.judges else {}
    same = measurer.measured("score_noop", shard, run.unchanged(run.entries[entry], sources))
    for source in sources:
        for triplet in source.triplets:
            output, noop = made[triplet.key], same.get(source.key)
            noop = noop if isinstance(noop, Unchanged) else None
            rule = parts.get(triplet.key)
            said = judged.get(triplet.key)
            yield ScoreRow(
                **_identity(run, run.entries[entry], source, triplet),
                **_output(output),
                source_image=source.image,
                truth_image=triplet.truth_image,
                rule=rule if isinstance(rule, RuleParts) else None,
                judged=said.scores if isinstance(said, JudgedParts) else (),
                noop=noop,
                scored=_scored(run.config, output, rule, said, noop),
                truths=1,
                truth_best=None,
                truth_mean=None,
            )


def _identity(run: Scoring, entry: Entry, source: ScoredSource, triplet: TripletFacts) -> dict[str, Any]:
    key = triplet.key
    return {
        "editor": entry.called,
        "granularity": entry.granularity,
        "pool": key.pool,
        "source_id": key.source_id,
        "target": Expression(key.target),
        "truth_editor": key.editor,
        "truth_attempt": key.attempt,
        "triplet": str(key),
        "subject": run.benchmark.subjects[key],
        "source_expression": source.expression,
        "instruction": instruction_of(triplet, entry.granularity),
        "seed": seed_of(run.config.seed, list(key)),
    }


def _output(output: Made | Failed) -> dict[str, Any]:
    if isinstance(output, Failed):
        return {"failure": output.kind, "message": output.message, "image": "", "raw_width": 0, "raw_height": 0}
    told = output.model_dump(include={"image", "raw_width", "raw_height"})
    return told | {"failure": None, "message": ""}


def _scored(config: ScoreConfig, output: Made | Failed, rule: Any, said: Any, noop: Unchanged | None) -> Scored:
    """A step that failed on its own (a crash, a judge out of reach) is nobody's failure at the task."""
    if isinstance(output, Failed):
        return failed(str(output.kind))
    for step, answer in (("parts", rule), ("judge", said)):
        if isinstance(answer, Failed):
            return failed(f"{step}: {answer.kind}").model_copy(update={"state": State.UNSCORED})
    return scored(rule, said.scores if said else (), config.cut, partial=not config.judges, noop=noop)
