"""What a finished build leaves behind: the data set, the report, and the funnel."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.config import BuildConfig
from tasks.dataset.diff import flat
from tasks.dataset.manifest import described
from tasks.dataset.read import config_of, data_set
from tasks.dataset.write import publish, released_record
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import canonical
from tasks.engine.measure import ModelsNeeded
from tasks.engine.rows import Commit
from tasks.engine.store import Store
from tasks.pipeline import Run, build, do, open_run
from tasks.report.funnel import FunnelRow, funnel
from tasks.report.html import write_report
from tasks.rounds import Job
from tasks.waiting import settle_reviewed


@dataclass(frozen=True)
class Result:
    """A build's end.

    Attributes:
        dataset: Folder of the published data set.
        triplets: How many it holds.
        written: Whether this run wrote it; False if it lay there already.
        report: The HTML report.
        funnel: What became of every owed row, stage by stage.
        replayed: By stage: how many rows rest on stored answers of models or prompts that have changed since.
    """

    dataset: Path
    triplets: int
    written: bool
    report: Path
    funnel: list[FunnelRow]
    replayed: dict[str, int]


def finish(run: Run, done: Sequence[dict[str, Commit]]) -> Result:
    """Publish a built run and write its report; both are left as they are if nothing changed."""
    settle_reviewed(run.executor, run.config, done, run.answers.taken)
    published = publish(run, done)
    folder = f"reports/{run.config.name}"
    report = run.store.path(f"{folder}/index.html")
    if published.written or not run.store.exists(f"{folder}/index.html"):
        report = write_report(run, done, folder)
    return Result(
        dataset=published.folder,
        triplets=published.triplets,
        written=published.written,
        report=report,
        funnel=funnel(run.executor.order, done),
        replayed=_replayed(run, published.folder),
    )


def _replayed(run: Run, folder: Path) -> dict[str, int]:
    older = {}
    for name, answers in data_set(folder).stages.items():
        stage = run.executor.stages[name]
        present = [canonical([stage.version, uses]) for uses in stage.groups().values()]
        older[name] = sum(one.rows for one in answers if canonical([one.version, list(one.uses)]) not in present)
    return {name: older[name] for name in run.executor.order if older[name]}


def check_released(workspace: Path, config: BuildConfig) -> None:
    """Stop before anything is spent where a config would change an edition that was passed on.

    Raises:
        ConfigError: Names the first value that differs.
    """
    folder = workspace / "datasets" / config.name / config.edition
    released = (workspace / released_record(config.name, config.edition)).exists()
    if not released or not (folder / "manifest.json").exists():
        return
    before = dict(flat(described(config_of(folder, data_set(folder)))))
    after = dict(flat(described(config)))
    for where in sorted({*before, *after}):
        if before.get(where) != after.get(where):
            raise ConfigError(
                f"edition {config.edition} of {config.name} is released with "
                f"{where}={before.get(where)}, not {after.get(where)}",
                f"give the new one a name: --set edition=NAME (publish.cut.core={config.edition} keeps its triplets)",
            )


def finish_if_done(workspace: Path, config: BuildConfig) -> Result | None:
    """The result of a build that needs no model any more, at most new decisions; None if work is due.

    A caller that gets one need not start an orchestrator at all.
    """
    check_released(workspace, config)
    with Store(workspace).lock():
        run = open_run(workspace, config)
        run.executor.may_measure = False

        def decide_only(jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Commit]]]:
            for job in jobs:
                yield job, do(run.executor, job)

        try:
            return finish(run, build(run, decide_only))
        except ModelsNeeded:
            return None


def saved_config(workspace: Path, name: str | None) -> BuildConfig:
    """The config of a run in a workspace; without a name, of its only run.

    Raises:
        ConfigError: There is no such run, or there are several.
    """
    runs = sorted(path.parent.name for path in workspace.glob("runs/*/config.json"))
    if name is None and len(runs) == 1:
        name = runs[0]
    if name is None or name not in runs:
        known = ", ".join(runs) or "none yet"
        raise ConfigError(f"which run of {workspace}? it has: {known}", "choose one with --run, or build first")
    config = Store(workspace).read_as(f"runs/{name}/config.json", BuildConfig)
    assert config is not None, "it was listed a moment ago"
    return config
