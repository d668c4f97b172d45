"""Does the engine stay flat? Thousands of sources through the real store, with models that answer at once.

Every source passes screening, so N sources are 6 N candidates and, with a panel of five, 30 N votes. Each size runs
in fresh processes: one that builds, one that finds everything done.
"""
# ruff: noqa: E402 - the repo need not be installed

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import steady
from schemas.config import BuildConfig
from tasks.dataset.write import publish
from tasks.engine import images
from tasks.engine.store import Store
from tasks.pipeline import build, open_run
from tasks.results import finish
from tests import fakes

SIDE: Final = 96
# The picture cache holds as many of these small pictures as the real one of 128 MiB holds of 512 px, so that it is
# full at every size and what grows is not the cache.
CACHE_BYTES: Final = images.CACHE_BYTES * SIDE**2 // 512**2
PANEL: Final = [*({"name": "fake", "params": {"name": name}} for name in "abcd"), "fake-coarse"]


def config(sources: int, shard_size: int) -> BuildConfig:
    """A build of so many sources, all of which pass screening; duplicates are looked for, nothing is capped."""
    return fakes.config(
        "name=scale",
        f"shard_size={shard_size}",
        f"pools.0.params.side={SIDE}",
        f"verify.measure.panel={json.dumps(PANEL)}",
        "screen.cut.min_label_confidence=0",
        "screen.cut.max_per_clip=null",
        "screen.cut.max_per_identity=null",
        "screen.cut.near_duplicate_bits=0",
        sources=sources,
    )


def child(workspace: Path, sources: int, shard_size: int) -> None:
    """Bring one workspace up to date, and print what that took as JSON."""
    world = steady.install()
    images.CACHE_BYTES = CACHE_BYTES  # type: ignore[misc]
    seconds: dict[str, float] = {}
    peaks: dict[str, float] = {}

    def step(name: str, do: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        value = do()
        seconds[name], peaks[name] = time.perf_counter() - started, peak_mb()
        return value

    peaks["imports"] = peak_mb()
    settings = config(sources, shard_size)
    with Store(workspace).lock():
        run = step("open", lambda: open_run(workspace, settings))
        done = step("build", lambda: build(run, fakes.mapper(settings.workers)))
        published = step("data set", lambda: publish(run, done))
        step("report", lambda: finish(run, done))
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": time.process_time(),
                "peaks": peaks,
                "asked": world.tally,
                "triplets": published.triplets,
                "candidates": sum(commits["generate"].owed for commits in done),
                "shards": len(done),
            }
        )
    )


def peak_mb() -> float:
    """This process's largest resident size in MB; unlike `ru_maxrss` it starts anew after exec."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1000


def run_child(workspace: Path, sources: int, shard_size: int) -> dict[str, Any]:
    """One fresh process over a workspace."""
    sizes = ["--sources", str(sources), "--shard-size", str(shard_size)]
    command = [sys.executable, __file__, "--child", str(workspace), *sizes]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment)
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def measure(folder: Path, sources: int, shard_size: int) -> dict[str, Any]:
    """Build a size, build it again, and check that it asked what it had to and then nothing."""
    first, again = (run_child(folder, sources, shard_size) for _ in range(2))
    wanted = {"load": sources, "edit": 6 * sources, "vote": 30 * sources}
    asked = {role: first["asked"].get(role, 0) for role in wanted}
    if asked != wanted or first["candidates"] != 6 * sources or again["asked"]:
        raise SystemExit(f"wrong work: {asked}, expected {wanted}; again {again['asked']}")
    files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    taken, repeated = sum(first["seconds"].values()), sum(again["seconds"].values())
    peak = max(first["peaks"].values())
    print(f"{sources} sources, {6 * sources} candidates, {30 * sources} votes, {first['shards']} shards")
    print(f"  {taken:.1f} s ({first['cpu']:.1f} s CPU), {1000 * taken / sources:.1f} ms a source")
    print(f"    by step: {_listed(first['seconds'], '.1f')}")
    print(f"  peak memory {peak:.0f} MB; by the end of each step: {_listed(first['peaks'], '.0f')}")
    print(f"  again, nothing to do: {repeated:.2f} s, {repeated / taken:.1%}; {_listed(again['seconds'], '.2f')}")
    print(f"  workspace: {len(files)} files, {sum(files) / 1e6:.0f} MB, {first['triplets']} triplets", flush=True)
    return {"time": taken / sources, "cpu": first["cpu"] / sources, "peak": peak}


def _listed(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=5000, help="the large size (5000)")
    parser.add_argument("--small", type=int, default=1000, help="the size it is compared with (1000)")
    parser.add_argument("--shard-size", type=int, default=64, help="sources per shard (64)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.sources, options.shard_size)
        return
    with tempfile.TemporaryDirectory(prefix="fedbench-scale-") as folder:
        small, large = (
            measure(Path(folder, str(size)), size, options.shard_size) for size in (options.small, options.sources)
        )
    ratios = ", ".join(f"{name} × {large[name] / small[name]:.2f}" for name in small)
    print(f"{options.sources} against {options.small} sources, time and CPU by source, peak memory as it is: {ratios}")


if __name__ == "__main__":
    main()
