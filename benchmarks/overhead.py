"""What the pipeline costs beside its models: a build over a bare loop of the same models on the same photos.

The build is `open_run` + `build` + writing the data set: records, checks, commits, everything but Prefect and the
HTML report. The bare loop (bare.py) does the same model work with as many threads, in one pass over the sources,
and writes and reads every PNG once. Both run in turn, several times, models loaded and nothing else remembered.
It fails only if the two did not ask the models the same number of times or their edits differ, never on a clock.
"""
# ruff: noqa: E402 - the repo need not be installed

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import cv2

from benchmarks import bare
from benchmarks.bare import Bare
from benchmarks.meter import Place, metered
from flows.options import load_config
from schemas.config import BuildConfig
from tasks import generate, pipeline
from tasks.dataset.parquet import RowWriter
from tasks.dataset.write import publish
from tasks.describers.blendshapes import BlendshapeDescriber
from tasks.editors import warp
from tasks.engine import execute, images
from tasks.engine.store import Store
from tasks.faces import analyzer, identity
from tasks.leakage import hashes
from tasks.voters.expert import ExpertVoter

WARM_UP: Final = 8  # sources, before either side
# The work both sides must have done equally often, counted where it is done: behind every memory of results.
MODELS: Final[tuple[Place, ...]] = (
    ("edits", warp, "warp_face"),
    ("analyses", analyzer.MediapipeAnalyzer, "_analyze"),
    ("embeddings", identity.Embedder, "_embed"),
    ("votes", ExpertVoter, "vote"),
    ("captions", BlendshapeDescriber, "caption"),
    ("instructions", BlendshapeDescriber, "instruct"),
)
# Where the rest of the time goes; the bare loop has only the first of these.
REST: Final[tuple[Place, ...]] = (
    ("PNG encoding", images, "encode_png"),
    ("PNG encoding", bare, "encode_png"),
    ("PNG decoding", images, "decode_png"),
    ("PNG reading and hash check", images.ImageStore, "read"),
    ("file writing", Store, "write"),
    ("parts written", Store, "write_part"),
    ("parts read", Store, "read_part"),
    ("row digests", execute, "digest"),
    ("changed pixels", generate, "changed_pixels"),
    ("local change", generate, "local_change"),
    ("registration", generate, "register"),
    ("perceptual hash", hashes, "perceptual_hashes"),
    ("pixel hash", hashes, "pixel_sha256"),
    ("data set rows", RowWriter, "add"),
)


@dataclass(frozen=True)
class Took:
    """One side of one round: wall and CPU seconds, calls of the models, CPU seconds by part, digests of the edits."""

    wall: float
    cpu: float
    calls: Counter[str]
    parts: dict[str, float]
    edits: list[str]


def config(limit: int, workers: int, shard_size: int) -> BuildConfig:
    """The demo's config on varied crops of the sample photos; none is a duplicate, over a cap or unfit."""
    return load_config(
        "demo",
        sets=[
            "name=overhead",
            "pools.0={name: samples, params: {variants: 20, rejects: false}}",
            f"limit={limit}",
            f"workers={workers}",
            f"shard_size={shard_size}",
            "screen.cut={duplicates: false, max_per_clip: null, max_per_movie: null, max_per_identity: null,"
            " min_inter_eye_px: 0, max_yaw: 180, max_pitch: 180, min_sharpness: 0, max_second_face: 1,"
            " max_overexposed: 1, max_underexposed: 1}",
        ],
    )


class Build:
    """The pipeline as the flow runs it, with plain threads in Prefect's place."""

    def __init__(self, config: BuildConfig, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self.publishing = 0.0

    def __call__(self) -> list[str]:
        """Build everything; the digests of all edits, sorted. `publishing` is then the seconds the data set took."""
        run = pipeline.open_run(self._folder, self._config)
        done = pipeline.build(run, self._map)
        started = time.perf_counter()
        publish(run, done)
        self.publishing = time.perf_counter() - started
        edits: list[str] = []
        for shard, commits in zip(run.executor.shards, done, strict=True):
            rows = run.executor.decided("generate", shard, commits["generate"])
            edits += [row.value.image for row in rows if row.value is not None]
        return sorted(edits)

    def _map(self, jobs: Sequence[pipeline.Job]) -> Iterable[tuple[pipeline.Job, Any]]:
        with ThreadPoolExecutor(self._config.workers) as threads:
            yield from zip(jobs, threads.map(pipeline.work, jobs), strict=True)


def measured(side: Callable[[], list[str]]) -> Took:
    """Run one side from nothing but loaded models."""
    analyzer.forget()
    identity.forget()
    pipeline._worker.cache_clear()
    with metered((*MODELS, *REST)) as meter:
        wall, cpu = time.perf_counter(), time.process_time()
        edits = side()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    models = {name for name, _, _ in MODELS}
    return Took(wall, cpu, Counter({name: meter.calls[name] for name in models}), meter.seconds, edits)


def one_round(number: int, settings: BuildConfig, folder: Path) -> tuple[float, float, float, bool]:
    """Both sides once; the ratios of wall (without and with publishing) and CPU time, and whether the work was equal.

    The bare loop has no data set: publishing reads every picture once more and writes it into Parquet.
    """
    pipeline_side = Build(settings, folder / f"build-{number}")
    sides: list[Any] = [Bare(settings, folder / f"bare-{number}"), pipeline_side]
    took = [measured(side) for side in (sides if number % 2 else sides[::-1])]
    loop, build = took if number % 2 else took[::-1]
    wall, cpu = build.wall / loop.wall, build.cpu / loop.cpu
    stages = (build.wall - pipeline_side.publishing) / loop.wall
    equal = (build.calls, build.edits) == (loop.calls, loop.edits)
    for name, side in (("build", build), ("bare loop", loop)):
        print(f"round {number}: {name} {side.wall:.1f} s ({side.cpu:.1f} s CPU)")
    same = "equal" if equal else "DIFFERENT"
    print(f"  stages × {stages:.3f}, with publishing × {wall:.3f}, CPU × {cpu:.3f}; calls and edits are {same}")
    if number == 1 or not equal:
        print(f"  calls {dict(sorted(build.calls.items()))}" + ("" if equal else f" against {dict(loop.calls)}"))
        print("  CPU seconds of the build, of the bare loop:")
        for name in dict.fromkeys(name for name, _, _ in (*MODELS, *REST)):
            print(f"    {name:28}{build.parts.get(name, 0):8.2f}{loop.parts.get(name, 0):8.2f}")
    sys.stdout.flush()
    return stages, wall, cpu, equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=100, help="sources (100)")
    parser.add_argument("--workers", type=int, default=2, help="threads on both sides (2)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the sides take turns in going first (3)")
    parser.add_argument("--shard-size", type=int, default=10, help="sources a shard; 64 would leave a thread idle (10)")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    settings = config(options.sources, options.workers, options.shard_size)
    with tempfile.TemporaryDirectory(prefix="fedbench-overhead-") as name:
        measured(Build(config(WARM_UP, options.workers, 2), Path(name, "warm-build")))
        measured(Bare(config(WARM_UP, options.workers, 2), Path(name, "warm-bare")))
        stages, walls, cpus, equal = zip(
            *(one_round(number, settings, Path(name)) for number in range(1, options.rounds + 1)), strict=True
        )
    print(
        f"overhead: × {statistics.median(stages):.3f} wall for the stages, × {statistics.median(walls):.3f} with the "
        f"data set published, × {statistics.median(cpus):.3f} CPU (median of {options.rounds}; Prefect and the report "
        "left out); target: at most 1.15"
    )
    if not all(equal):
        raise SystemExit("the two sides did not do the same work")


if __name__ == "__main__":
    main()
