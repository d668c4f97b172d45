"""The report: HTML that opens from disk, without network or script, and is the same bytes for the same run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import jinja2

from schemas.expressions import EXPRESSIONS
from schemas.forecasts import PilotFound
from schemas.reviews import ASKED as QUALITIES
from tasks.engine.account import accounts, dollars_of, notes
from tasks.engine.batch_file import batches
from tasks.engine.dossier import SourceLife, lives
from tasks.engine.errors import ConfigError
from tasks.engine.rows import Commit
from tasks.pilot import pilot_file
from tasks.pipeline import Run
from tasks.report import funnel, mix, recipe
from tasks.report.days import day_plot
from tasks.report.lean import GROUPINGS
from tasks.report.plain import plain
from tasks.report.sheets import Sheet, sheet
from tasks.report.survey import Survey
from tasks.report.thumbs import Thumbs
from tasks.reviewing import standing

PAGE: Final = 50  # sources; a run of no more has everything on one page


@dataclass
class Page:
    """One page of contact sheets: its file, the plan places it holds (from 1), and what came of them."""

    name: str
    first: int
    last: int
    admitted: int = 0
    published: int = 0


def write_report(run: Run, done: Sequence[dict[str, Commit]], folder: Path | str) -> Path:
    """Write the HTML report of a run, finished or not.

    One page holds everything for up to 50 sources; more go on pages of 50 beside the summary. Thumbnails that are
    there already are not made again. Memory stays flat: shard by shard, page by page.

    Args:
        run: The opened run.
        done: Per shard, its commits, as `build` or `Executor.commits` gives them.
        folder: Where, below the workspace ("reports/demo").

    Returns:
        The path of `index.html`.

    Raises:
        ConfigError: The folder is not below the workspace.
        ContractError: A stage's counts do not add up.
        WorkspaceError: A part or picture is gone or damaged, or the disk cannot be written.
    """
    place = _below(folder)
    rows = funnel.funnel(run.executor.order, done)
    thumbs = Thumbs(run.store, run.images, place)
    survey = Survey(run.config)
    total = sum(len(shard.sources) for shard in run.executor.shards)
    single = total <= PAGE
    pages = [
        Page(f"sources-{number + 1:03d}.html", number * PAGE + 1, min(total, (number + 1) * PAGE))
        for number in range(0 if single else math.ceil(total / PAGE))
    ]
    templates = environment()
    common = {"config": run.config, "pages": pages, "thumbs": thumbs, "single": single, "total": total}

    def write(name: str, template: str, **values: object) -> Path:
        text = templates.get_template(template).render(**common, **values)
        data = text.encode()
        if run.store.read(f"{place}/{name}") != data:
            run.store.write(f"{place}/{name}", data)
        return run.store.path(f"{place}/{name}")

    held: list[Sheet] = []
    for number, life in enumerate(_lives(run, done), 1):
        held.append(sheet(number, life, run.config.rank.cut))
        survey.add(life, held[-1])
        if len(held) == PAGE or number == total:
            thumbs.make(picture for one in held for picture in one.pictures())
            if not single:
                page = pages[(number - 1) // PAGE]
                page.admitted = sum(one.state == "kept" for one in held)
                page.published = sum(truth.published for one in held for truth in one.truths)
                write(page.name, "sources.html.j2", page=page, sheets=held)
                held = []
    answers = run.store.path("answers.sqlite")
    asked, sent = accounts(answers, run.config.name), batches(answers, run.config.name)
    return write(
        "index.html",
        "index.html.j2",
        rows=rows,
        survey=survey,
        reviewed=standing(run),
        accounts=asked,
        dollars=dollars_of(asked),
        notes=notes(asked, sent),
        sheets=held,
        parts=recipe.parts(run.config),
        limits=recipe.limits(run.config),
        tries_out=recipe.tries_out(run.config),
        pilot=run.store.read_as(pilot_file(run.config), PilotFound),
    )


def _lives(run: Run, done: Sequence[dict[str, Commit]]) -> Iterator[SourceLife]:
    for shard, commits in zip(run.executor.shards, done, strict=True):
        yield from lives(run.executor, shard, commits)


def _below(folder: Path | str) -> str:
    place = PurePosixPath(folder)
    if place.is_absolute() or ".." in place.parts or not place.parts:
        raise ConfigError(f"the report folder '{folder}' is not below the workspace", "write a name like reports/demo")
    return str(place)


def environment() -> jinja2.Environment:
    """The templates. Everything a model or a file name says is escaped: no filter here marks anything as safe."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        EXPRESSIONS=EXPRESSIONS,
        CUTS=mix.CUTS,
        GROUPINGS=GROUPINGS,
        QUALITIES=QUALITIES,
        because=funnel.because,
        day_plot=day_plot,
        page_of=_page_of,
    )
    environment.filters.update(number=_number, percent=_percent, plain=plain)
    return environment


def _page_of(one: Sheet, pages: Sequence[Page]) -> str:
    """The page a source is on, from the summary: empty where that is the summary itself."""
    return pages[(one.number - 1) // PAGE].name if pages else ""


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"
