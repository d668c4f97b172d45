"""How fast is screening? Photos per second of the screening stage, against a plain loop over the same libraries.

Ours is `open_run` and the screening of a build with two workers: photos are read, measured, stored as PNG, written
down and decided on; Prefect, whose start is a constant of seconds, is left out. The plain loop (plain.py) reads,
measures and stores the same photos one after the other with every library's default threads and settings; "unstored"
is the same loop that keeps nothing. Each turn of each side is a fresh process with its models loaded and warm; the
sides take turns in going first. It fails only if they did not measure the same, never on a clock.
"""
# ruff: noqa: E402 - the repo need not be installed

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import cv2
import numpy as np

from benchmarks.meter import Place, metered
from benchmarks.plain import Plain, different
from flows.options import load_config
from flows.quiet import SETTINGS
from tasks import pipeline, screen
from tasks.engine import images
from tasks.engine.store import Store
from tasks.faces import analyzer, identity
from tasks.leakage import hashes
from tasks.sources import folder
from tasks.sources.samples import SamplePool
from tests import fakes

WARM_UP: Final = 4
LOOPS: Final = ("plain", "unstored")
# Where the CPU time of ours goes; what OpenCV's own threads do is not in it.
PARTS: Final[tuple[Place, ...]] = (
    ("decoding", folder, "decode"),
    ("detecting", analyzer.MediapipeAnalyzer, "_detect"),
    ("landmarks", analyzer.MediapipeAnalyzer, "_measure"),
    ("vectors", identity.Embedder, "_embed"),
    ("hashes of pixels", hashes, "pixel_sha256"),
    ("perceptual hashes", hashes, "perceptual_hashes"),
    ("exposure", screen, "exposure_shares"),
    ("sharpness", screen, "sharpness"),
    ("PNG encoding", images, "encode_png"),
    ("files", Store, "write"),
    ("Parquet", Store, "write_part"),
)
SIDES: Final = (480, 640, 800, 1024, 1280, 720)  # longer side of the photos in pixels, in turn


def write_photos(place: Path, count: int) -> None:
    """Crops of the sample photos as JPEGs of several sizes, each like no other."""
    pool = SamplePool(SamplePool.Params(variants=20, rejects=True))
    place.mkdir()
    for number, source in enumerate(pool.list()):
        if number == count:
            return
        pixels = pool.load(source).pixels
        scale = SIDES[number % len(SIDES)] / max(pixels.shape[:2])
        resized = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(place / f"{number:05d}.jpg"), resized[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, 92])
    raise SystemExit(f"there are only {number + 1} samples")


def ours(photos: Path, workspace: Path, workers: int) -> pipeline.Run:
    """Screen the folder as a build does."""
    sets = [f"pools.0.params.root={photos}", "screen.measure.label_panel=[]", f"workers={workers}", "shard_size=16"]
    run = pipeline.open_run(workspace, load_config("folder", None, sets))
    pipeline._screened(run, fakes.mapper(workers))
    return run


def measures(run: pipeline.Run) -> dict[str, dict[str, Any]]:
    """By file name, what a run's screening stored."""
    facts: dict[str, dict[str, Any]] = {}
    for shard in run.executor.shards:
        for key, value in run.executor.measured("screen", shard, shard.sources).items():
            vector = np.frombuffer(value.embedding or b"", "<f4").tolist()
            facts[key.source_id] = value.model_dump(mode="json", exclude={"embedding"}) | {"embedding": vector}
    return facts


def child(options: argparse.Namespace) -> None:
    """One turn of one side: warm up, measure, and print seconds, CPU seconds and measures as JSON."""
    warm, photos = options.folder / "warm", options.folder / "photos"
    if options.side != "ours":
        loop = Plain()
        loop(sorted(warm.iterdir()))
        with tempfile.TemporaryDirectory(dir=options.folder) as kept:
            started, cpu = time.perf_counter(), time.process_time()
            facts, parts = loop(sorted(photos.iterdir()), Path(kept) if options.side == "plain" else None), {}
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as workspace:
            ours(warm, Path(workspace, "warm"), options.workers)
            analyzer.forget()
            identity.forget()
            with metered(PARTS) as meter:
                started, cpu = time.perf_counter(), time.process_time()
                run = ours(photos, Path(workspace, "real"), options.workers)
                seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
            facts, parts = measures(run), meter.seconds
    print(json.dumps({"seconds": seconds, "cpu": cpu, "facts": facts, "parts": parts}))


def turn(side: str, aside: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One turn of a side, in a fresh process; ours has the settings that the command line makes, the plain loop has
    of them only those that keep libraries silent."""
    plain = {name: value for name, value in SETTINGS.items() if "THREADS" not in name}
    environment = {**os.environ, **(SETTINGS if side == "ours" else plain)}
    command = [sys.executable, __file__, "--side", side, "--folder", str(aside), "--workers", str(options.workers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment)
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def check(taken: dict[str, dict[str, Any]]) -> None:
    """Stop if the sides did not measure the same."""
    ours = taken["ours"]["facts"]
    for side in LOOPS:
        loop = taken[side]["facts"]
        wrong = {name: different(ours[name], facts) for name, facts in loop.items() if different(ours[name], facts)}
        if ours.keys() != loop.keys() or wrong:
            raise SystemExit(
                f"ours and {side} did not measure the same of {len(wrong)} photos: {dict(list(wrong.items())[:3])}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=240, help="how many (240)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (3)")
    parser.add_argument("--workers", type=int, default=2, help="threads of ours (2)")
    parser.add_argument("--side", choices=("ours", *LOOPS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        child(options)
        return
    ratios: dict[str, list[dict[str, float]]] = {side: [] for side in LOOPS}
    with tempfile.TemporaryDirectory(prefix="fedbench-screening-") as name:
        aside = Path(name)
        write_photos(aside / "photos", options.photos)
        write_photos(aside / "warm", WARM_UP)
        for number in range(options.rounds):
            order = ("ours", *LOOPS) if number % 2 else (*LOOPS, "ours")
            taken = {side: turn(side, aside, options) for side in order}
            check(taken)
            for side in LOOPS:
                ratios[side].append({key: taken[side][key] / taken["ours"][key] for key in ("seconds", "cpu")})
            rates = ", ".join(
                f"{side} {options.photos / taken[side]['seconds']:.1f} photos/s ({taken[side]['cpu']:.1f} s CPU)"
                for side in ("ours", *LOOPS)
            )
            times = " and ".join(f"× {ratios[side][-1]['seconds']:.2f} {side}" for side in LOOPS)
            print(f"round {number + 1}: {rates}; ours is {times}; load average {os.getloadavg()[0]:.1f}", flush=True)
    parts = sorted(taken["ours"]["parts"].items(), key=lambda part: -part[1])
    rest = taken["ours"]["cpu"] - sum(seconds for _, seconds in parts)
    print(f"CPU of ours: {', '.join(f'{what} {seconds:.2f}' for what, seconds in [*parts, ('other', rest)])} s")
    for side, words in (("plain", "that stores the same; target: at least × 1.5"), ("unstored", "that stores nothing")):
        wall, cpu = (statistics.median(ratio[key] for ratio in ratios[side]) for key in ("seconds", "cpu"))
        print(
            f"screening: × {wall:.2f} the photos per second of a plain loop {words}, for × {1 / cpu:.2f} its CPU "
            f"seconds (median of {options.rounds}, {options.workers} workers, {os.cpu_count()} cores, "
            f"{options.photos} photos)"
        )


if __name__ == "__main__":
    main()
