"""Does the engine stay flat? Thousands of sources through the real store, with models that answer at once.

Every source passes screening, so N sources are 6 N candidates and, with a panel of five, 30 N votes. Each size runs
in fresh processes: one that builds, one that finds everything done. With `--grow` the large build grows out of the
small one, in its workspace; with `--duplicates` three of ten sources repeat another, and must be rejected for it.
"""
# ruff: noqa: E402 - the repo need not be installed

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
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
from tasks.report.html import write_report
from tasks.results import finish
from tests import fakes

SIDE: Final = 96
# The picture cache holds as many of these small pictures as the real one of 128 MiB holds of 512 px, so that it is
# full at every size and what grows is not the cache.
CACHE_BYTES: Final = images.CACHE_BYTES * SIDE**2 // 512**2
PANEL: Final = [*({"name": "fake", "params": {"name": name}} for name in "abcd"), "fake-coarse"]


def config(sources: int, shard_size: int, duplicates: bool = False) -> BuildConfig:
    """A build of so many sources, all of which pass screening but for planted duplicates; nothing is capped."""
    return fakes.config(
        "name=scale",
        f"shard_size={shard_size}",
        f"pools.0.params.side={SIDE}",
        f"pools.0.params.duplicates={json.dumps(duplicates)}",
        f"verify.measure.panel={json.dumps(PANEL)}",
        "screen.measure.check_labels=false",
        "screen.cut.min_label_confidence=0",
        "screen.cut.max_per_clip=null",
        "screen.cut.max_per_identity=null",
        sources=sources,
    )


def child(workspace: Path, options: argparse.Namespace) -> None:
    """Bring one workspace up to date, and print what that took as JSON."""
    world = steady.install()
    world.extra = options.sources - options.small
    images.CACHE_BYTES = CACHE_BYTES  # type: ignore[misc]
    seconds: dict[str, float] = {}
    peaks: dict[str, float] = {}

    def step(name: str, do: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        value = do()
        seconds[name], peaks[name] = time.perf_counter() - started, peak_mb()
        return value

    peaks["imports"] = peak_mb()
    settings = config(options.small, options.shard_size, options.duplicates)
    with Store(workspace).lock():
        run = step("open", lambda: open_run(workspace, settings))
        done = step("build", lambda: build(run, fakes.mapper(settings.workers)))
        published = step("data set", lambda: publish(run, done))
        report = f"reports/{settings.name}"
        step("report", lambda: write_report(run, done, report) if published.written else finish(run, done))
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": time.process_time(),
                "peaks": peaks,
                "asked": world.tally,
                "triplets": published.triplets,
                "candidates": sum(commits["generate"].owed for commits in done),
                "rejected": dict(sum((Counter(commits["screen"].reasons) for commits in done), Counter())),
                "shards": len(done),
            }
        )
    )


def peak_mb() -> float:
    """This process's largest resident size in MB; unlike `ru_maxrss` it starts anew after exec."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1000


def run_child(workspace: Path, sources: int, added: int, options: argparse.Namespace) -> dict[str, Any]:
    """One fresh process over a workspace, whose pool has got the last `added` sources since it was configured."""
    sizes = ["--sources", str(sources), "--small", str(sources - added)]
    command = [sys.executable, __file__, "--child", str(workspace), *sizes]
    command += ["--shard-size", str(options.shard_size), *(["--duplicates"] if options.duplicates else [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment)
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def expected(sources: int, built: int, duplicates: bool) -> dict[str, dict[str, int]]:
    """What a build has to ask of the adapters and to reject, where so many of its sources are built already."""
    rejected = {"duplicate": sources // 5, "near_duplicate": sources // 10} if duplicates else {}
    new = sources - built
    pass_ = new - 3 * new // 10 if duplicates else new
    return {"asked": {"load": new, "edit": 6 * pass_, "vote": 30 * pass_}, "rejected": rejected}


def measure(folder: Path, sources: int, options: argparse.Namespace, built: int = 0) -> dict[str, float]:
    """Build a size, build it again, and check that it asked and rejected what it had to, and then asked nothing.

    Args:
        folder: The workspace; new, or one with the first `built` sources in it.
        sources: The size.
        options: Of the command line.
        built: How many of the sources are done already.
    """
    finished, new = _stamps(folder), sources - built
    first, again = (run_child(folder, sources, new if built else 0, options) for _ in range(2))
    wanted = expected(sources, built, options.duplicates)
    asked = {role: first["asked"].get(role, 0) for role in wanted["asked"]}
    if {"asked": asked, "rejected": first["rejected"]} != wanted or again["asked"]:
        raise SystemExit(f"wrong work: {asked}, {first['rejected']}, expected {wanted}; again {again['asked']}")
    if finished.items() - _stamps(folder).items():
        raise SystemExit("a finished shard was touched")
    files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    taken, repeated = sum(first["seconds"].values()), sum(again["seconds"].values())
    peak = max(first["peaks"].values())
    grown = f"; {built} were there, {new} are new" if built else ""
    print(f"{sources} sources, {first['candidates']} candidates, {5 * first['candidates']} votes{grown}")
    if built:
        print(f"  reused: all {len(finished)} files of finished shards untouched; asked only for new sources: {asked}")
    if options.duplicates:
        print(f"  rejected as planted: {first['rejected']} of {sources}")
    print(f"  {taken:.1f} s ({first['cpu']:.1f} s CPU), {1000 * taken / new:.1f} ms a new source")
    print(f"    by step: {_listed(first['seconds'], '.1f')}")
    print(f"  peak memory {peak:.0f} MB; by the end of each step: {_listed(first['peaks'], '.0f')}")
    print(f"  again, nothing to do: {repeated:.2f} s, {repeated / taken:.1%}; {_listed(again['seconds'], '.2f')}")
    print(
        f"  workspace: {len(files)} files, {sum(files) / 1e6:.0f} MB, {first['shards']} shards, "
        f"{first['triplets']} triplets; load average {os.getloadavg()[1]:.1f}",
        flush=True,
    )
    return {"time": taken / new, "cpu": first["cpu"] / new, "peak": peak}


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of every file that finished shards left, by its name; nobody may touch one again."""
    files = ((path, path.stat()) for path in folder.glob("stages/*/*/*"))
    return {path.relative_to(folder).as_posix(): (stat.st_ino, stat.st_mtime_ns) for path, stat in files}


def _listed(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=5000, help="the large size (5000)")
    parser.add_argument("--small", type=int, default=1000, help="the size it is compared with (1000)")
    parser.add_argument("--shard-size", type=int, default=64, help="sources per shard (64)")
    parser.add_argument("--duplicates", action="store_true", help="three of ten sources repeat another")
    parser.add_argument("--grow", action="store_true", help="grow the large build out of the small one")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options)
        return
    small, large = options.small, options.sources
    if options.duplicates and (small % 10 or large % 10):
        parser.error("with --duplicates sizes are multiples of 10")
    with tempfile.TemporaryDirectory(prefix="fedbench-scale-") as folder:
        first = measure(Path(folder, str(small)), small, options)
        built = small if options.grow else 0
        second = measure(Path(folder, str(small if built else large)), large, options, built)
    ratios = ", ".join(f"{name} × {second[name] / first[name]:.2f}" for name in first)
    growth = 1000 * (second["peak"] - first["peak"]) / (large - small)
    print(f"{large} against {small} sources, time and CPU by source, peak memory as it is: {ratios}")
    print(f"peak memory grows by {growth:.1f} kB a source")


if __name__ == "__main__":
    main()
