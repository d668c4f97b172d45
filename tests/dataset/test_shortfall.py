"""Top-ups: who is short, what filling it owes, that it is filled, and that nothing else moves."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schemas.config import TopUp
from schemas.expressions import EXPRESSIONS, Expression
from schemas.outcomes import FailureKind
from schemas.records import Key
from schemas.sections import Adapter
from tasks.dataset.shortfall import Cell, Shortfall, shortfall
from tasks.dataset.verify import verify
from tasks.engine.dossier import SourceLife, lives
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.pipeline import open_run
from tests import fakes

SMALL = ("generate.measure.targets=[happy, sad]", "publish.cut.target=24", "screen.cut.max_per_clip=null")
CELL = (Expression.NEUTRAL, Expression.HAPPY)
TOP_UP = "generate.measure.top_up=[{source: neutral, target: happy}]"


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def starve(role: str, subject: str) -> Exception | None:
    """No edit of a neutral photo to a happy one succeeds."""
    number, _, target = subject.partition(":")
    hit = role == "edit" and target == CELL[1] and EXPRESSIONS[int(number) % 7] is CELL[0]
    return ItemFailed(FailureKind.REFUSED, "not this one") if hit else None


def config(*sets: str) -> Any:
    return fakes.config(*SMALL, *sets, sources=60)


@pytest.fixture(scope="module")
def starved_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose cell neutral → happy is empty."""
    folder = tmp_path_factory.mktemp("starved")
    fakes.install().trouble = starve
    fakes.build(folder, config())
    return folder


@pytest.fixture
def starved(starved_once: Path, world: fakes.World, tmp_path: Path) -> fakes.Built:
    """The same in a copy of its own, built there with nothing left to do."""
    built = fakes.build(Path(shutil.copytree(starved_once, tmp_path / "workspace")), config())
    assert world.counts().total() == 0
    return built


def opened(built: fakes.Built, *sets: str) -> Any:
    return open_run(built.run.store.root, config(*sets), extend=False)


def cell_of(found: Shortfall) -> Cell:
    return next(cell for cell in found.cells if (cell.source, cell.target) == CELL)


def told(built: fakes.Built) -> dict[Key, SourceLife]:
    return {
        life.key: life
        for shard, done in zip(built.run.executor.shards, built.done, strict=True)
        for life in lives(built.run.executor, shard, done)
    }


def test_the_numbers_of_the_cells_add_up(starved: fakes.Built) -> None:
    found = shortfall(opened(starved))
    assert len(found.cells) == 12
    assert {cell.wanted for cell in found.cells} == {2}
    manifest = Counter[tuple[str, str]]()
    for life in told(starved).values():
        for candidate in life.candidates:
            if candidate.reached("publish"):
                manifest[life.outputs["screen"].expression, candidate.key.target] += 1
    assert {(cell.source, cell.target): cell.has for cell in found.cells if cell.has} == dict(manifest)
    assert all(
        cell.has <= cell.natural <= cell.sources - cell.open - cell.beyond <= cell.sources for cell in found.cells
    )
    assert all(cell.truths <= cell.edits for cell in found.cells)
    cell = cell_of(found)
    assert (cell.natural, cell.has, cell.short) == (0, 0, 2)
    assert cell.open == cell.sources == cell.new_edits > 0
    short = [one for one in found.cells if one.short and one.sources]
    assert found.new_edits == sum(one.sources for one in short)
    assert found.votes == 3 * found.new_edits
    assert {(entry.source, entry.target) for entry in found.top_up} == {(one.source, one.target) for one in short}


def test_a_starved_cell_is_filled_and_nothing_else_is_made_or_asked_again(
    starved: fakes.Built,
) -> None:
    expected = cell_of(shortfall(opened(starved)))
    files = {path: path.read_bytes() for path in starved.run.store.root.glob("stages/*/*/*")}
    before = told(starved)
    topped = fakes.build(starved.run.store.root, config(TOP_UP))

    now = cell_of(shortfall(opened(topped, TOP_UP)))
    assert now.has >= now.wanted == expected.wanted
    after = told(topped)
    new = {
        candidate.key
        for life in after.values()
        for candidate in life.candidates
        if candidate.key not in {old.key for other in before.values() for old in other.candidates}
    }
    # The edits are those that the verb had counted, and the refused ones were not asked for again.
    assert {(key.target, key.editor, key.attempt) for key in new} == {("happy", "fake", 1)}
    edited = [subject for role, subject in topped.asked if role == "edit"]
    assert len(edited) == len(set(edited)) == len(new) == expected.new_edits
    made = {
        life.outputs["generate"].image
        for source in after.values()
        for life in source.candidates
        if life.key in new and life.reached("generate")
    }
    assert {subject.partition(":")[0] for role, subject in topped.asked if role == "vote"} == made
    assert topped.counts["vote"] == 3 * len(made)
    assert topped.counts["load"] == 0

    # Of the others nothing was measured or decided anew, but which candidates there are and what is selected.
    neutral = {
        key for key, life in after.items() if "screen" in life.outputs and life.outputs["screen"].expression == CELL[0]
    }
    assert neutral == {key.source() for key in new}
    assert after.keys() <= before.keys(), "with the cell filled, fewer sources may meet the target"
    for key in after.keys() - neutral:
        for stage in ("screen", "generate", "verify", "rank", "caption", "review", "instruct"):
            for old, fresh in zip(
                [before[key], *before[key].candidates], [after[key], *after[key].candidates], strict=True
            ):
                assert old.measured.get(stage) == fresh.measured.get(stage)
                assert (old.steps.get(stage), old.outputs.get(stage)) == (
                    fresh.steps.get(stage),
                    fresh.outputs.get(stage),
                )
    calm = [shard.id for shard in topped.run.executor.shards if not neutral & {source.key for source in shard.sources}]
    assert calm
    for shard in calm:
        old = {path for path in files if path.parent.name == shard}
        now_there = set(topped.run.store.root.glob(f"stages/*/{shard}/*"))
        assert {path.parent.parent.name for path in now_there - old} <= {"generate", "publish"}
        assert all(path.name.startswith(("decided-", "part-")) for path in now_there - old)
        assert all(path.read_bytes() == files[path] for path in old)
    parts = [path for path in files if path.suffix == ".parquet"]
    assert all(path.read_bytes() == files[path] for path in parts)
    assert topped.published
    assert verify(topped.published.folder) == []


def test_taken_back_it_leaves_the_bytes_of_before(starved: fakes.Built) -> None:
    before = starved.tree()
    grown = fakes.build(starved.run.store.root, config(TOP_UP.replace("}", ", attempts: 2}")))
    assert grown.counts["edit"] > 0
    assert grown.tree() != before
    back = fakes.build(starved.run.store.root, config())
    assert back.asked == []
    assert back.tree() == before


def test_further_attempts_for_all_are_those_that_a_top_up_had_made(tmp_path: Path) -> None:
    topped = "generate.measure.top_up=[{target: happy}, {target: sad}]"
    assert fakes.build(tmp_path, config(topped)).counts["edit"] > 0
    again = fakes.build(tmp_path, config("generate.measure.attempts=2"))
    assert again.asked == []


def test_a_second_editor_makes_candidates_of_its_own(starved: fakes.Built) -> None:
    found = shortfall(opened(starved), Adapter(name="fake-plain"))
    assert all(entry.editor == Adapter(name="fake-plain") for entry in found.top_up)
    assert all(cell.edits == 0 for cell in found.cells)
    option = "generate.measure.top_up=[{source: neutral, target: happy, editor: fake-plain}]"
    topped = fakes.build(starved.run.store.root, config(option))
    assert topped.counts["edit"] == cell_of(found).new_edits
    cell = cell_of(shortfall(opened(topped, option), Adapter(name="fake-plain")))
    assert (cell.edits, cell.truths) == (cell_of(found).new_edits, cell.natural)
    assert cell.short == max(0, cell.wanted - cell.natural) < cell_of(found).short
    assert topped.published
    assert verify(topped.published.folder) == []
    card = (topped.published.folder / "README.md").read_text()
    assert "by the editor `fake` version 1 and `fake-plain` version 1;" in card


def test_other_parameters_are_another_editor_by_another_name(starved: fakes.Built) -> None:
    strong = (
        "generate.measure.top_up=[{{target: happy, editor: {{name: fake, params: {{strength: {}}}}}, called: strong}}]"
    )
    first = fakes.build(starved.run.store.root, config(strong.format(240)))
    assert first.counts["edit"] > 0
    assert {one.key.editor for life in told(first).values() for one in life.candidates} == {"fake", "strong"}
    second = fakes.build(starved.run.store.root, config(strong.format(250)))
    assert second.counts["edit"] == first.counts["edit"]
    back = fakes.build(starved.run.store.root, config(strong.format(240)))
    assert (back.counts["edit"], back.counts["vote"]) == (0, 0)
    assert back.tree() == first.tree()


def test_an_editor_without_a_seed_is_not_asked_for_the_same_picture(tmp_path: Path) -> None:
    plain = "generate.measure.editor=fake-plain"
    fakes.build(tmp_path, config(plain))
    run = open_run(tmp_path, config(plain), extend=False)
    found = shortfall(run)
    assert any(cell.short and cell.sources for cell in found.cells)
    assert (found.top_up, found.new_edits, found.same_again) == ((), 0, True)
    with pytest.raises(ConfigError, match="knows no seed"):
        shortfall(run, attempts=2)
    assert shortfall(run, Adapter(name="fake"), attempts=2).new_edits > 0


def test_what_stands_there_stays_in_the_list(starved: fakes.Built) -> None:
    topped = fakes.build(starved.run.store.root, config("generate.measure.top_up=[{source: sad, target: happy}]"))
    found = shortfall(topped.run)
    assert found.top_up[0] == TopUp(source=Expression.SAD, target=Expression.HAPPY)
    assert len(found.top_up) > 1


def test_refusals(starved: fakes.Built) -> None:
    run = opened(starved)
    with pytest.raises(ConfigError, match="other parameters 'fake' already"):
        shortfall(run, Adapter(name="fake", params={"strength": 9}))
    with pytest.raises(ConfigError, match="unknown editor 'nobody'"):
        shortfall(run, Adapter(name="nobody"))
    with pytest.raises(ConfigError, match="no such top-up"):
        shortfall(run, Adapter(name="fake-plain"), called="not a name")
    with pytest.raises(ConfigError, match="is not finished"):
        shortfall(opened(starved, "rank.measure.mask_dilation=0.9"))
