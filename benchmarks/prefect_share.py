"""Prefect's share of a build: what its server and client take for the tasks of 20,000 sources, beside the build itself.

Two measurements on one machine, in one run. First the tasks alone: the real mapper, sub-flows, tasks, artifacts and a
real server on SQLite, with shards that are done at once. Then the build alone: the real engine and store with models
that answer at once (tests/fakes.py), as much of it as `--part` says, by the source. Real models only make the share
smaller. It fails only if a task run was not recorded.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flows import quiet


@dataclass(frozen=True)
class Took:
    """Seconds: by the clock on the wall, of this process's CPU, of the server's CPU."""

    wall: float
    client: float
    server: float


def cpu_of(pid: int) -> float:
    """CPU seconds of another process and its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(do: Callable[[], None], server: int | None = None) -> Took:
    """What something took."""
    wall, client, there = time.perf_counter(), time.process_time(), cpu_of(server) if server else 0.0
    do()
    after = cpu_of(server) if server else 0.0
    return Took(time.perf_counter() - wall, time.process_time() - client, after - there)


def tasks_alone(folder: Path, sources: int, shard_size: int, server: int) -> tuple[Took, int]:
    """The tasks of a build of so many sources, each done at once; how many there are."""
    from prefect import flow
    from prefect.client.orchestration import get_client

    from flows import runner
    from tasks.engine.rows import Commit
    from tasks.pipeline import CANDIDATES, SCREENING, open_run
    from tests import fakes

    fakes.install()
    run = open_run(folder, fakes.config(f"shard_size={shard_size}", sources=sources))
    nothing = Commit(fingerprint="", part="", owed=0, statuses={}, reasons={}, retryable=0, kept_digest="")
    runner.work = lambda job: dict.fromkeys(job.segment, nothing)  # type: ignore[assignment]

    @flow(name="share", persist_result=False)
    def whole() -> None:
        with runner.prefect_mapper(run) as mapper:
            for segment in (SCREENING, CANDIDATES):
                mapper([run.job(segment, shard, {}) for shard in run.executor.shards])

    owed = 2 * len(run.executor.shards)

    def all_of_it() -> None:
        whole()
        with get_client(sync_client=True) as client:
            end = time.monotonic() + 300
            # The records follow the flow; what the server still does for them is its share, too.
            while (found := int(client.request("POST", "/task_runs/count", json={}).json())) < owed:
                if time.monotonic() > end:
                    sys.exit(f"only {found} of {owed} task runs were recorded")
                time.sleep(0.5)

    return measured(all_of_it, server), owed


def build_alone(folder: Path, sources: int, shard_size: int) -> Took:
    """A build of so many sources without Prefect, its data set and its report included."""
    from tasks.results import finish
    from tests import fakes

    fakes.install()

    def build() -> None:
        built = fakes.build(folder, fakes.config(f"shard_size={shard_size}", sources=sources), threads=2)
        finish(built.run, built.done)

    return measured(build)


def main() -> None:
    """Measure, and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sources", type=int, default=20_000)
    options.add_argument("--shard-size", type=int, default=64)
    options.add_argument("--part", type=int, default=1_280, help="sources of the build that is measured")
    options.add_argument("--folder", type=Path, help="where it works; a temporary one if left out")
    chosen: Any = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="fedbench-share-", dir=chosen.folder) as name:
        folder = Path(name)
        port = _server_settings(folder)
        command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
        with (folder / "server.log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            from flows.server import trouble

            started = time.monotonic()
            while trouble(os.environ["PREFECT_API_URL"]):
                if time.monotonic() - started > 180 or server.poll() is not None:
                    sys.exit((folder / "server.log").read_text())
                time.sleep(0.2)
            booting = cpu_of(server.pid)
            prefect, tasks = tasks_alone(folder / "tasks", chosen.sources, chosen.shard_size, server.pid)
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
        part = build_alone(folder / "build", chosen.part, chosen.shard_size)
    times = chosen.sources / chosen.part
    build_wall, build_cpu = part.wall * times, part.client * times
    prefect_cpu = prefect.client + prefect.server
    each = 1000 * prefect_cpu / tasks
    parts = f"client {prefect.client:.1f}, server {prefect.server:.1f}; {each:.1f} ms a task"
    shares = [mine / (mine + build) for mine, build in ((prefect.wall, build_wall), (prefect_cpu, build_cpu))]
    print(f"{tasks} task runs for {chosen.sources:,} sources in shards of {chosen.shard_size}, all recorded")
    print(f"server start, once           CPU {booting:8.1f} s")
    print(f"Prefect   wall {prefect.wall:8.1f} s   CPU {prefect_cpu:8.1f} s   ({parts})")
    print(f"build     wall {build_wall:8.1f} s   CPU {build_cpu:8.1f} s   (from {chosen.part:,} sources)")
    print(f"share     wall {shares[0]:8.1%}     CPU {shares[1]:8.1%}")


def _server_settings(folder: Path) -> int:
    """A home and an address of this run alone; its port."""
    from flows.serving import port_for

    port = port_for(0, preferred=0)
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    os.environ["PREFECT_HOME"] = str(folder / "home")
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
    quiet.settle()
    return port


if __name__ == "__main__":
    main()
