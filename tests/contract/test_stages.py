"""What every stage keeps, the executor's checks included. A stage that `make_stages` learns of is tested at once."""

import copy
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.outcomes import FailureKind
from schemas.ratings import RatingMean
from schemas.records import Key
from tasks.engine.errors import ContractError
from tasks.engine.execute import Executor
from tasks.engine.images import ImageStore
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed, Scope
from tasks.engine.store import Store
from tasks.pipeline import make_stages
from tests import fakes

STAGES = [stage.name for stage in make_stages(fakes.config(), {})]
Answers = Iterable[tuple[Key, Any]]
PLACES = st.integers(0, 10_000)

few = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@dataclass(repr=False)
class Bench:
    """One stage with the rows that a build brought to it, and room to run it again.

    Attributes:
        rows: What it measured, over all shards.
        to_decide: What it decided on.
        measured: What its measurements came out as.
    """

    stage: Any
    rows: list[Any]
    to_decide: list[Any]
    measured: dict[Key, Any]
    context: Context
    root: Path

    def executor(self, stage: Any) -> Executor:
        """An executor of this stage alone, in a workspace of its own."""
        return Executor(Store(Path(tempfile.mkdtemp(dir=self.root))), [stage], [], self.context)

    def measure(self, stage: Any, rows: Sequence[Any]) -> dict[Key, Any]:
        """The stage's answers, as a fresh executor takes them in."""
        return self.executor(stage).measure(stage.name, SHARD, rows)

    def without_edits(self) -> "Bench":
        """The same with the pictures of its rows, but where no edit was ever made."""
        images = ImageStore(Store(Path(tempfile.mkdtemp(dir=self.root))))
        for digest in {value for row in self.rows for name, value in row if name in ("image", "source_image")}:
            images.put(self.context.images.get(digest).pixels)
        return replace(self, context=replace(self.context, images=images))


SHARD = Shard(0, "shard", ())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> fakes.Built:
    fakes.install()
    return fakes.build(tmp_path_factory.mktemp("built"), fakes.config("shard_size=8", sources=24))


@pytest.fixture(params=STAGES)
def bench(request: pytest.FixtureRequest, built: fakes.Built, tmp_path: Path) -> Bench:
    fakes.install()
    executor, name = built.run.executor, request.param
    rows: list[Any] = []
    to_decide: list[Any] = []
    measured: dict[Key, Any] = {}
    for shard, commits in zip(executor.shards, built.done, strict=True):
        seen = executor.rows_to_measure(name, shard, commits)
        rows += seen
        to_decide += executor.rows_to_decide(name, shard, commits)
        measured |= executor.measured(name, shard, seen)
    assert len(rows) > 3, "too few rows reach the stage to say anything of it"
    return Bench(executor.stages[name], rows, to_decide, measured, executor.context, tmp_path)


def tampered(stage: Any, half: str, tamper: Callable[[list[tuple[Key, Any]]], Answers]) -> Any:
    """The stage, with the answers of one half tampered with."""
    bad = copy.copy(stage)
    original = getattr(stage, half)
    setattr(bad, half, lambda *args: tamper(list(original(*args))))
    bad.cutter = lambda: bad.cut
    return bad


def drop(answers: list[tuple[Key, Any]], place: int) -> tuple[Answers, Key]:
    place %= len(answers)
    return answers[:place] + answers[place + 1 :], answers[place][0]


def double(answers: list[tuple[Key, Any]], place: int) -> tuple[Answers, Key]:
    place %= len(answers)
    return [*answers, answers[place]], answers[place][0]


def invent(answers: list[tuple[Key, Any]], place: int) -> tuple[Answers, Key]:
    key, answer = answers[place % len(answers)]
    invented = key._replace(attempt=key.attempt + 77)
    return [*answers, (invented, answer)], invented


HOW = {"lost": drop, "doubled": double, "invented": invent}


@pytest.mark.parametrize("half", ["measure", "cut"])
@pytest.mark.parametrize("word", HOW)
@few
@given(place=PLACES)
def test_a_lost_doubled_or_invented_key_stops_the_run_by_name(bench: Bench, half: str, word: str, place: int) -> None:
    keys: list[Key] = []

    def tamper(answers: list[tuple[Key, Any]]) -> Answers:
        if not answers or keys:
            return answers
        changed, key = HOW[word](answers, place)
        keys.append(key)
        return changed

    stage = tampered(bench.stage, half, tamper)
    executor = bench.executor(stage)
    run: dict[str, Callable[[], object]] = {
        "measure": lambda: executor.measure(stage.name, SHARD, bench.rows),
        "cut": lambda: list(executor.decide_shards(stage.name, [(bench.to_decide, bench.measured)])),
    }
    with pytest.raises(ContractError, match=f"'{stage.name}' {word} .* in {half}: ") as caught:
        run[half]()
    assert caught.value.message.endswith(str(keys[0]))


@few
@given(seed=PLACES)
def test_answers_depend_on_no_order_and_no_neighbours(bench: Bench, seed: int) -> None:
    shuffled = list(bench.rows)
    random.Random(seed).shuffle(shuffled)
    assert bench.measure(bench.stage, shuffled) == bench.measured
    some = shuffled[: 1 + seed % len(shuffled)]
    owed = {key for row in some for key in bench.stage.owes(row)}
    assert bench.measure(bench.stage, some) == {key: bench.measured[key] for key in owed}


def test_what_a_stage_ignores_changes_no_answer(bench: Bench) -> None:
    other = {str: "other", int: 99, float: 0.123, tuple: (RatingMean(quality="natural", mean=1.5, people=2),)}
    changed = [
        row.model_copy(update={name: other[type(getattr(row, name))] for name in bench.stage.ignores})
        for row in bench.rows
    ]
    executor = bench.executor(bench.stage)
    assert executor.measure(bench.stage.name, SHARD, changed) == bench.measured
    assert executor.measured(bench.stage.name, SHARD, bench.rows) == bench.measured


def test_work_from_scratch_gives_what_stored_work_gave(bench: Bench) -> None:
    assert bench.without_edits().measure(bench.stage, bench.rows) == bench.measured


def test_equal_measurements_are_decided_equally(bench: Bench) -> None:
    executor = bench.executor(bench.stage)
    once = executor.decide(bench.stage.name, bench.to_decide, bench.measured)
    assert once == executor.decide(bench.stage.name, bench.to_decide, bench.measured)
    assert list(once) == [key for row in bench.to_decide for key in bench.stage.owes(row)]


def by_source(rows: Sequence[Any], size: int) -> list[list[Any]]:
    """The rows in shards of so many sources."""
    sources = list(dict.fromkeys(row.key.source() for row in rows))
    shards = [set(sources[start : start + size]) for start in range(0, len(sources), size)]
    return [[row for row in rows if row.key.source() in shard] for shard in shards]


@pytest.mark.parametrize("size", [1, 3])
def test_shard_by_shard_is_decided_what_is_decided_at_once(bench: Bench, size: int) -> None:
    executor, stage = bench.executor(bench.stage), bench.stage
    read: list[int] = []

    def groups() -> Iterable[tuple[list[Any], dict[Key, Any]]]:
        for place, rows in enumerate(shards):
            read.append(place)
            owed = {key for row in rows for key in stage.owes(row)}
            yield rows, {key: value for key, value in bench.measured.items() if key in owed}

    shards, decided = by_source(bench.to_decide, size), {}
    for place, outcomes in enumerate(executor.decide_shards(stage.name, groups())):
        assert read == list(range(len(shards) if stage.whole else place + 1)), "only a whole stage may look ahead"
        decided |= outcomes
    assert decided == executor.decide(stage.name, bench.to_decide, bench.measured)


@few
@given(seed=PLACES)
def test_source_and_row_decisions_do_not_see_other_sources(bench: Bench, seed: int) -> None:
    if bench.stage.scope is Scope.RUN:
        return
    executor = bench.executor(bench.stage)
    whole = executor.decide(bench.stage.name, bench.to_decide, bench.measured)
    chosen = bench.to_decide[seed % len(bench.to_decide)].key.source()
    alone = executor.decide(
        bench.stage.name, [row for row in bench.to_decide if row.key.source() == chosen], bench.measured
    )
    assert alone == {key: outcome for key, outcome in whole.items() if key.source() == chosen}


def test_what_is_measured_is_not_measured_again(bench: Bench) -> None:
    batches: list[int] = []
    stage = copy.copy(bench.stage)

    def measure(rows: Sequence[Any], ctx: Context) -> Answers:
        batches.append(len(rows))
        return bench.stage.measure(rows, ctx)  # type: ignore[no-any-return]

    stage.measure = measure
    executor = bench.executor(stage)
    first = executor.measure(stage.name, SHARD, bench.rows)
    files = sorted(executor.store.root.rglob("*.*"))
    assert executor.measure(stage.name, SHARD, bench.rows) == first == bench.measured
    assert batches == [len(bench.rows)]
    assert sorted(executor.store.root.rglob("*.*")) == files


@few
@given(place=PLACES)
def test_a_poisoned_row_hurts_only_itself(bench: Bench, place: int) -> None:
    poisoned = bench.rows[place % len(bench.rows)]
    stage = copy.copy(bench.stage)

    def measure(rows: Sequence[Any], ctx: Context) -> Answers:
        for row in rows:
            if row.key == poisoned.key:
                raise ValueError("poison")
        yield from bench.stage.measure(rows, ctx)

    stage.measure = measure
    owed = bench.stage.owes(poisoned)
    crashed = dict.fromkeys(owed, Failed(FailureKind.CRASHED, "ValueError; see crashes.log in the workspace"))
    assert bench.measure(stage, bench.rows) == bench.measured | crashed
