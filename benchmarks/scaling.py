"""What a second worker brings, with shards that keep a core busy: threads, processes and Ray; and what Prefect costs.

Every runner builds the same shards with one worker and with two. An edit takes a fixed amount of work, of two kinds:
one that holds Python's lock, one that lets it go. Only the segment from generate to instruct is timed, when all workers
are up. `ceiling` is the same work in bare processes: what this machine gives at all. Where the lock is let go, the
question is whether threads do; `--full` asks the others too. On two quiet cores it takes about four minutes.

Prefect's share: all shards of 20,000 sources go through both segments with nothing to do, on a server of its own; that
is set beside a build with models that answer at once, the least that 20,000 sources can take.
"""
# ruff: noqa: E402 - the repo need not be installed

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import grinding, steady
from flows import quiet
from flows.server import trouble
from schemas.config import BuildConfig
from tasks.engine.rows import Commit
from tasks.engine.store import Store
from tasks.pipeline import CANDIDATES, SCREENING, build, open_run
from tasks.rounds import Job
from tests import fakes
from tests.commands import environment, free_port, started, wait_until

EDITS: Final = 2  # of a source
SEGMENT: Final = "generate-to-instruct"
SAMPLE: Final = 4  # shards


def config(sources: int, shard_size: int, runner: str = "threads", workers: int = 2, *more: str) -> BuildConfig:
    """A build of so many small photos, all of which pass screening."""
    return fakes.config(
        "name=scaling",
        f"runner={runner}",
        f"workers={workers}",
        f"shard_size={shard_size}",
        "pools.0.params.side=96",
        "screen.measure.check_labels=false",
        "screen.cut.min_label_confidence=0",
        "screen.cut.max_per_clip=null",
        "screen.cut.max_per_identity=null",
        *more,
        sources=sources,
    )


# -- a second worker --------------------------------------------------------------------------------------------


def timed(workspace: Path, runner: str, workers: int, shards: int) -> float:
    """Seconds of the segment, in this process, which is to do nothing else."""
    from flows import runner as mapping
    from flows.build import build_dataset

    grinding.install()
    mapping.work = grinding.work
    stamps: dict[int, float] = {}

    def note(segment: str, done: int, _: int) -> None:
        if segment == SEGMENT:
            stamps[done] = time.perf_counter()

    mapping.on_progress.set(note)
    targets = "generate.measure.targets=[happy, sad]"
    build_dataset(config(2 * shards, 2, runner, workers, targets), str(workspace))
    return stamps[shards] - stamps[0]


def bare(edits: int, workers: int, env: dict[str, str]) -> float:
    """Seconds of the same work in bare processes, without their start."""
    command = [sys.executable, "-m", "benchmarks.grinding", str(edits // workers)]
    running = [subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    return max(float(process.communicate()[0]) for process in running)


def compare(options: argparse.Namespace, folder: Path, env: dict[str, str]) -> None:
    """Print the table of runners."""
    runners = [name for name in options.runners if name != "ray" or importlib.util.find_spec("prefect_ray")]
    if len(runners) < len(options.runners):
        print("ray: not installed here (make ray), left out")
    edits = EDITS * 2 * options.shards
    print(f"{options.shards} shards of {options.seconds:g} s of a core each; {os.cpu_count()} cores")
    print(f"{'work':<8}{'runner':<11}{'1 worker':>10}{'2 workers':>11}{'ratio':>8}{'of ceiling':>12}{'load':>6}")
    for kind in options.kinds:
        say = {grinding.SAY: f"{kind}:{grinding.amount(kind, options.seconds / EDITS / 2)}"}
        ceiling = 0.0
        asked = runners if options.full or kind == "python" else [name for name in runners if name == "threads"]
        for runner in ("ceiling", *asked):
            if runner == "ceiling":
                one, two = (bare(edits, workers, env | say) for workers in (1, 2))
                ceiling = one / two
            else:
                one, two = (
                    child(["--child", runner, str(workers)], options, folder / f"{kind}-{runner}-{workers}", env | say)
                    for workers in (1, 2)
                )
            print(
                f"{kind:<8}{runner:<11}{one:>8.1f} s{two:>9.1f} s{one / two:>8.2f}{one / two / ceiling:>12.0%}"
                f"{os.getloadavg()[0]:>6.1f}",
                flush=True,
            )


# -- Prefect's share --------------------------------------------------------------------------------------------


def nothing(job: Job) -> dict[str, Commit]:
    """No work at all."""
    return job.done


def share(workspace: Path, sources: int, shard_size: int) -> dict[str, float]:
    """Seconds and CPU seconds: of so many sources' shards with nothing to do, and of a source that is built without."""
    from prefect import flow

    from flows import runner as mapping

    steady.install()
    small, sample = Path(workspace, "small"), SAMPLE * shard_size
    with Store(small).lock():
        run = open_run(small, config(sample, shard_size))
        before, began = cpu(), time.perf_counter()
        build(run, fakes.mapper(2))
        built = {"source_s": (time.perf_counter() - began) / sample, "source_cpu": (cpu() - before) / sample}
    mapping.work = nothing
    mapping.on_progress.set(lambda *_: None)
    run = open_run(Path(workspace, "large"), config(sources, shard_size))
    shards = run.executor.shards

    @flow(name="empty-build")
    def empty() -> None:
        with mapping.prefect_mapper(run) as mapper:
            for segment in (SCREENING, CANDIDATES):
                list(mapper([run.job(segment, shard, {}) for shard in shards]))

    before, began = cpu(), time.perf_counter()
    empty()
    took = time.perf_counter() - began
    return built | {"s": took, "cpu": cpu() - before, "tasks": 2.0 * len(shards), "sample": float(sample)}


def cpu() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(pids: Sequence[int]) -> float:
    """CPU seconds of other processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def show_share(options: argparse.Namespace, folder: Path, env: dict[str, str], server: Sequence[int]) -> None:
    """Print what Prefect costs at so many sources."""
    before = cpu_of(server)
    told = child(["--child", "share", "0"], options, folder / "share", env)
    time.sleep(5)  # records are still written
    served = cpu_of(server) - before
    source_s, source_cpu = options.sources * told["source_s"], options.sources * told["source_cpu"]
    spent = told["cpu"] + served
    time_share, cpu_share = told["s"] / (told["s"] + source_s), spent / (spent + source_cpu)
    print(f"Prefect, {options.sources} sources in shards of {options.shard_size}: {told['tasks']:.0f} task runs")
    print(f"  with nothing to do: {told['s']:.1f} s; CPU {told['cpu']:.1f} s here, {served:.1f} s in its server")
    print(
        f"  a build with models that answer at once: {source_s:.0f} s, {source_cpu:.0f} s CPU, as {told['sample']:.0f} "
        f"sources took {1000 * told['source_s']:.0f} ms each"
    )
    print(f"  Prefect's share: {time_share:.2%} of the time, {cpu_share:.2%} of the CPU")


# -- processes --------------------------------------------------------------------------------------------------


def child(words: Sequence[str], options: argparse.Namespace, workspace: Path, env: dict[str, str]) -> Any:
    """What a fresh process measured."""
    command = [sys.executable, __file__, *words, "--workspace", str(workspace), "--shards", str(options.shards)]
    command += ["--shard-size", str(options.shard_size), "--sources", str(options.sources)]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def server(folder: Path) -> Iterator[tuple[dict[str, str], list[int]]]:
    """A Prefect server: the environment of those who use it, and its processes."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    env = (
        environment(folder / "prefect") | quiet.SETTINGS | {"PREFECT_API_URL": url, "PREFECT_LOGGING_LEVEL": "CRITICAL"}
    )
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with started(command, env, folder, folder / "server.log") as process:
        wait_until(lambda: not trouble(url), 180, "the Prefect server answers", pause=0.5)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield env, [process.pid, *map(int, children)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=8, help="shards of two sources, four edits each (8)")
    parser.add_argument("--seconds", type=float, default=1.2, help="of a core, that a shard's edits take (1.2)")
    parser.add_argument("--runners", nargs="*", default=["threads", "processes", "ray"], help="which runners (all)")
    parser.add_argument("--kinds", nargs="*", default=list(grinding.KINDS), help="of work (python native)")
    parser.add_argument("--sources", type=int, default=20_000, help="for Prefect's share (20000)")
    parser.add_argument("--shard-size", type=int, default=64, help="sources a shard, for Prefect's share (64)")
    parser.add_argument("--full", action="store_true", help="every runner with every kind of work")
    parser.add_argument("--no-share", action="store_true", help="leave Prefect's share out")
    parser.add_argument("--workspace", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, workers = options.child
        if what == "share":
            measured: Any = share(options.workspace, options.sources, options.shard_size)
        else:
            measured = timed(options.workspace, what, int(workers), options.shards)
        print(json.dumps(measured))
        return
    with tempfile.TemporaryDirectory(prefix="fedbench-scaling-") as name, server(Path(name)) as (env, processes):
        compare(options, Path(name), env)
        if not options.no_share:
            show_share(options, Path(name), env, processes)


if __name__ == "__main__":
    main()
