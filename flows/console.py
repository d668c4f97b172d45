"""What the verbs print: tables for people, JSON for programs, a progress bar on the way."""

import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

import prompts
from flows import logs
from flows.options import assign, validate
from flows.terminal import SafeConsole
from schemas.config import BuildConfig
from schemas.outcomes import Status
from tasks.dataset.verify import verified_words, verify
from tasks.engine import weights
from tasks.engine.dossier import Life, SourceLife, lives
from tasks.engine.errors import ConfigError
from tasks.engine.places import shown, shown_uri
from tasks.engine.stage import Failed
from tasks.engine.store import Store
from tasks.engine.tombstones import read_withdrawals
from tasks.pipeline import Run, open_run
from tasks.report.funnel import funnel_table
from tasks.report.plain import ascii_controls
from tasks.results import Result, finish_if_done, saved_config

OUT = SafeConsole()
ERR = SafeConsole(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(ascii_controls(json.dumps(value, indent=1, ensure_ascii=False, default=str)) + "\n")


def show_config(config: BuildConfig, *, as_json: bool) -> None:
    """The whole config, as YAML that `--config` reads again."""
    values = config.model_dump(mode="json")
    if as_json:
        print_json(values)
    else:
        OUT.out(yaml.safe_dump(values, sort_keys=False), end="", highlight=False)


@contextmanager
def progress_bar() -> Iterator[Any]:
    """Yields what the flows call after every shard; draws bars with an ETA on a terminal, plain lines elsewhere."""
    if logs.as_lines():
        yield lambda segment, done, total: logging.getLogger("fedbench").info(
            "%s: %d of %d shards", segment, done, total
        )
        return
    if not ERR.is_terminal:
        started = time.monotonic()

        def line(segment: str, done: int, total: int) -> None:
            ERR.print(f"{time.monotonic() - started:6.1f} s  {segment}: {done} of {total} shards", highlight=False)

        yield line
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("shards"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR) as bars:
        starting = bars.add_task("starting Prefect", total=None)
        tasks: dict[str, Any] = {}

        def draw(segment: str, done: int, total: int) -> None:
            bars.update(starting, visible=False)
            if segment not in tasks:
                tasks[segment] = bars.add_task(segment, total=total)
            bars.update(tasks[segment], completed=done)

        yield draw


def build_and_show(workspace: Path, config: BuildConfig, *, as_json: bool) -> None:
    """Build, then show the funnel and where things lie. Without work to do, no orchestrator is started."""
    workspace = workspace.resolve()
    started = time.monotonic()
    result = finish_if_done(workspace, config)
    fresh = result is None
    if result is None:
        from flows import ray_cluster
        from flows.build import build_dataset
        from flows.forecasts import showing_pilot
        from flows.runner import on_batches, on_progress
        from flows.server import reached
        from flows.states import answer

        ray_cluster.check(config)
        with showing_pilot(workspace, config), reached(), progress_bar() as bar:
            token = on_progress.set(bar)
            on_batches.set(lambda words: ERR.print(words, highlight=False))
            result = answer(build_dataset(config, str(workspace)))
            on_progress.reset(token)
    if as_json:
        print_json(_result_json(result))
        return
    OUT.print(funnel_table(result.funnel))
    if not fresh:
        OUT.print("No model had to run: everything was measured before.")
    if result.replayed:
        told = ", ".join(f"{stage} {rows} rows" for stage, rows in result.replayed.items())
        OUT.print(f"Stored answers of models or prompts that have changed since: {told}. mode=refresh asks again.")
    # Paths are never wrapped: they are for copying.
    OUT.print(Text(f"data set  {shown(result.dataset)}  ({result.triplets} triplets)"), soft_wrap=True)
    OUT.print(Text(f"report    {shown_uri(result.report)}"), soft_wrap=True)
    OUT.print(Text(f"next      fedbench verify {shown(result.dataset)}"), soft_wrap=True)
    OUT.print(Text(f"took      {time.monotonic() - started:.1f} s"))


def _result_json(result: Result) -> dict[str, Any]:
    return {
        "dataset": shown(result.dataset),
        "triplets": result.triplets,
        "written": result.written,
        "report": shown(result.report),
        "replayed": result.replayed,
        "funnel": [asdict(row) for row in result.funnel],
    }


def opened(workspace: Path, name: str | None, sets: Sequence[str] = ()) -> Run:
    """A run of the workspace for looking at, its saved config changed by `sets`."""
    values = saved_config(workspace, name).model_dump(mode="json")
    for option in sets:
        assign(values, option)
    return open_run(workspace.resolve(), validate(values), extend=False)


def show_life(workspace: Path, name: str | None, key: str, *, as_json: bool) -> None:
    """One source with its candidates, or one candidate; of a withdrawn one, that it is."""
    if _told_withdrawn(workspace, key, as_json=as_json):
        return
    run = opened(workspace, name)
    source, wanted = _find(run, key)
    told = [source, *source.candidates] if wanted is source else [source, wanted]
    if as_json:
        print_json({"source": source.source.model_dump(mode="json"), "lives": [_life_json(life) for life in told]})
        return
    for life in told:
        _print_life(run, life)
    OUT.print(Text("prompts", style="bold"))
    for prompt in prompts.names():
        OUT.print(Text(f"  {prompt}  {prompts.sha256_of(prompt)[:12]}"))


def _told_withdrawn(workspace: Path, key: str, *, as_json: bool) -> bool:
    """Tell of the tombstone of a key, if there is one."""
    stones = read_withdrawals(Store(workspace)).tombstones if workspace.is_dir() else ()
    stone = next((stone for stone in stones if key == str(stone.key) or key.startswith(f"{stone.key}:")), None)
    if stone is None:
        return False
    if as_json:
        print_json({"withdrawn": stone.model_dump(mode="json", exclude={"pixels"})})
    else:
        OUT.print(Text(f"{stone.key} was withdrawn on {stone.day}{f': {stone.reason}' if stone.reason else '.'}"))
    return True


def _find(run: Run, key: str) -> tuple[SourceLife, Life]:
    source_name = key.partition(":")[0] if "@" in key else key
    for shard, done in zip(run.executor.shards, run.executor.commits(), strict=True):
        if any(str(source.key) in (source_name, key) for source in shard.sources):
            for source in lives(run.executor, shard, done):
                for life in (source, *source.candidates):
                    if str(life.key) == key:
                        return source, life
    raise ConfigError(f"no row '{key}' in run '{run.config.name}'", "keys stand in the report, as samples/astronaut")


def _life_json(life: Life) -> dict[str, Any]:
    return {
        "key": str(life.key),
        "steps": {stage: vars(step) for stage, step in life.steps.items()},
        "measured": {
            stage: {"failed": value.kind, "message": value.message}
            if isinstance(value, Failed)
            else value.model_dump(mode="json", exclude={"embedding"})
            for stage, value in life.measured.items()
        },
        "outputs": {stage: value.model_dump(mode="json") for stage, value in life.outputs.items()},
    }


_STYLES = {Status.KEPT: "green", Status.REJECTED: "yellow", Status.FAILED: "red", Status.WAITING: "cyan"}


def _print_life(run: Run, life: Life) -> None:
    OUT.print(Text(str(life.key), style="bold"), soft_wrap=True)
    for stage, step in life.steps.items():
        line = Text(f"  {stage:<9}")
        line.append(f"{step.status:<9}", style=_STYLES[step.status])
        line.append(" ".join(filter(None, (step.reason, step.evidence))))
        OUT.print(line)
    for stage, value in life.measured.items():
        if isinstance(value, Failed) or stage in ("instruct", "publish"):
            continue
        for field, content in value.model_dump(mode="json", exclude={"embedding", "key"}).items():
            if field == "votes":
                for vote in content:
                    said = vote["expression"] or vote["polarity"] or f"abstained: {vote['abstained']}"
                    OUT.print(Text(f"    {stage}.vote {vote['voter']} ({vote['granularity']}): {said}  {vote['raw']}"))
            elif field in ("image", "source_image") and content:
                OUT.print(Text(f"    {stage}.{field} {run.store.shown(run.images.path(content))}"), soft_wrap=True)
            elif content not in ("", None) and not field.endswith(("sha256", "phash")):
                told = f"{content:.4g}" if isinstance(content, float) else content
                if isinstance(content, dict):
                    told = ", ".join(f"{name} {value:g}" for name, value in content.items())
                OUT.print(Text(f"    {stage}.{field} {told}"), soft_wrap=True)
    if "instruct" in life.outputs:
        triplet = life.outputs["instruct"]
        OUT.print(Text(f"    simple: {triplet.instruction}\n    dense: {triplet.dense_instruction}"))


def show_faults(folder: Path, *, as_json: bool) -> bool:
    """The faults of a data set; whether it has none."""
    faults = verify(folder)
    if as_json:
        words = "" if faults else verified_words(folder)
        print_json({"ok": not faults, "faults": [vars(fault) for fault in faults], "checked": words})
    elif faults:
        for fault in faults:
            ERR.print(Text(str(fault)))
        ERR.print(f"{len(faults)} faults in {shown(folder)}", style="red")
    else:
        OUT.print(Text(f"{shown(folder)} is {verified_words(folder)}"), soft_wrap=True)
    return not faults


def show_models(*, as_json: bool) -> bool:
    """The model files; whether none of those that are here is wrong."""
    rows = weights.table()
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            style = "green" if row["state"] in ("ready", "derivable") else "yellow"
            OUT.print(Text.assemble((row["name"], "bold"), "  ", (row["state"], style), f"  {row['size']}"))
            for field in ("purpose", "licence", "tuned_against", "origin"):
                if row[field]:
                    OUT.print(Text(f"  {field.replace('_', ' '):<14}{row[field]}", overflow="fold"), soft_wrap=True)
    return all(row["state"] != "wrong hash" for row in rows)


def show_pulled(name: str, *, as_json: bool) -> None:
    """Fetch or convert one model file and say where it lies."""
    path = weights.pull(name)
    if as_json:
        print_json({"name": name, "path": str(path)})
    else:
        OUT.print(Text(str(path)), soft_wrap=True)
