"""What each cell of source × target expression lacks of an even share, and what topping up the short ones owes."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from schemas.config import GenerateMeasure, TopUp
from schemas.expressions import Expression
from schemas.outcomes import Reason
from schemas.records import Key
from schemas.sections import Adapter
from tasks.dataset.manifest import possible_cells
from tasks.editors import EDITORS
from tasks.engine.dossier import lives
from tasks.engine.errors import ConfigError
from tasks.generate import owed
from tasks.pipeline import Run, narrowed, wave

CellName = tuple[Expression, Expression]


@dataclass(frozen=True)
class Cell:
    """One cell of a finished run.

    Attributes:
        source, target: Its expressions.
        wanted: Its even share: the target (all triplets without one) over all cells that can be, rounded down.
        natural: Triplets before selection, and `beyond` those of sources that were not needed for the target.
        has: Published triplets.
        sources: Photos of that expression that passed screening and that a build would work on.
        open: Those without a triplet in this cell.
        edits: Candidates that the editor in question made in it, and `truths` how many of them became triplets.
        new_edits: How many the top-up would owe.
    """

    source: Expression
    target: Expression
    wanted: int
    natural: int
    beyond: int
    has: int
    sources: int
    open: int
    edits: int
    truths: int
    new_edits: int

    @property
    def short(self) -> int:
        return max(0, self.wanted - self.has)


@dataclass(frozen=True)
class Shortfall:
    """A run's cells, and a top-up of those that are short.

    Attributes:
        cells: All that can be, the shortest first.
        target: What the run selects; None for all.
        top_up: The whole list for `generate.measure.top_up`, what stands there already included; empty if nothing
            would be new.
        votes: Answers that the panel would give, at most: a refused or failed edit gets none.
        same_again: Whether some short cell is left out because the editor would make the same picture again.
    """

    cells: tuple[Cell, ...]
    target: int | None
    top_up: tuple[TopUp, ...]
    votes: int
    same_again: bool

    @property
    def new_edits(self) -> int:
        return sum(cell.new_edits for cell in self.cells)


def shortfall(run: Run, editor: Adapter | None = None, called: str = "", attempts: int = 1) -> Shortfall:
    """What a finished run's cells lack.

    Args:
        run: An opened run.
        editor: A second editor for the short cells; None for further attempts of the first.
        called: What rows shall call it; its own name if empty.
        attempts: Candidates per source and cell.

    Raises:
        ConfigError: The run is not finished, or the editor cannot be used.
    """
    measure = run.config.generate.measure
    shards, commits = list(run.executor.shards), run.executor.commits()
    done = narrowed(run, commits)
    if not done or any("publish" not in one for one in done):
        raise ConfigError(f"run '{run.config.name}' is not finished", "run `fedbench build` first")
    if editor == measure.editor and not called:
        editor = None
    name, spec = called or (editor or measure.editor).name, editor or measure.editor
    EDITORS.parse(spec.name, spec.params)
    if measure.editors.get(name, spec) != spec:
        raise ConfigError(f"rows call an editor with other parameters '{name}' already", "name this one with --called")
    seeded = EDITORS.adapter_class(spec.name).uses_seed
    if attempts > 1 and not seeded:
        raise ConfigError(f"editor '{spec.name}' knows no seed: its attempts are one picture", "leave --attempts out")

    counts = {field: Counter[CellName]() for field in ("natural", "beyond", "has", "edits", "truths", "full")}
    for shard, one in zip(run.executor.shards, done, strict=True):
        for life in lives(run.executor, shard, one):
            there = set()
            for candidate in life.candidates:
                cell = (life.outputs["screen"].expression, Expression(candidate.key.target))
                counts["edits"][cell] += candidate.reached("generate") and candidate.key.editor == name
                if candidate.reached("instruct"):
                    there.add(cell)
                    beyond = candidate.steps["publish"].reason == Reason.BEYOND_PREFIX
                    counts["beyond" if beyond else "natural"][cell] += 1
                    counts["has"][cell] += candidate.reached("publish")
                    counts["truths"][cell] += candidate.key.editor == name
            counts["full"].update(there)
    # A build takes shards in waves: it works on all of the last one.
    reach = math.ceil(len(done) / (step := wave(run))) * step
    photos = [
        photo
        for shard, one in zip(shards[:reach], commits, strict=False)
        for photo in run.executor.kept("screen", shard, one)
    ]
    shown = Counter(photo.expression for photo in photos)

    possible = possible_cells(measure)
    wanted = (run.config.publish.cut.target or counts["has"].total()) // len(possible)
    short = [cell for cell in possible if counts["has"][cell] < wanted and shown[cell[0]]]
    fresh = [cell for cell in short if seeded or not _asked(measure, cell, name)]
    same = {"editor": editor, "called": called, "attempts": attempts}
    topped = _with(measure, [{"source": source, "target": target} | same for source, target in fresh])
    new = Counter(
        (photo.expression, Expression(key.target))
        for photo in photos
        for key in set(owed(topped, photo.key, photo.expression)) - set(owed(measure, photo.key, photo.expression))
    )
    cells = [
        Cell(
            source=cell[0],
            target=cell[1],
            wanted=wanted,
            sources=shown[cell[0]],
            open=shown[cell[0]] - counts["full"][cell],
            new_edits=new[cell],
            **{field: counts[field][cell] for field in ("natural", "beyond", "has", "edits", "truths")},
        )
        for cell in possible
    ]
    return Shortfall(
        cells=tuple(sorted(cells, key=lambda cell: (-cell.short, cell.natural, cell.source, cell.target))),
        target=run.config.publish.cut.target,
        top_up=topped.top_up if fresh else (),
        votes=new.total() * len(run.config.verify.measure.panel),
        same_again=len(fresh) < len(short),
    )


def _asked(measure: GenerateMeasure, cell: CellName, name: str) -> bool:
    """Whether the editor of that name makes a candidate in a cell already."""
    return any(key.target == cell[1] and key.editor == name for key in owed(measure, Key("", ""), cell[0]))


def _with(measure: GenerateMeasure, entries: Sequence[dict[str, Any]]) -> GenerateMeasure:
    """The config's section with further top-ups, checked as a config is."""
    try:
        return GenerateMeasure.model_validate(measure.model_dump() | {"top_up": [*measure.top_up, *entries]})
    except ValidationError as error:
        words = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"no such top-up: {words}", "see `fedbench top-up --help`") from None
