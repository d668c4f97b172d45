"""How fast are the rule parts of scores? Outputs per second of the measuring step, against a plain loop.

Six editors (five intensities of the warp, and a copy) × two instructions on the sample photos. Ours is `ScoreParts`
with two threads, as a run uses it. The plain loop takes one output after the other and treats each as its libraries'
READMEs show: faces found and vectors made of source, ground truth and output, `lpips.LPIPS` called on both pairs, with
every library's default threads. The pictures are made before; both sides have their models loaded and warm, and take
turns. It fails only if the two did not measure the same, never on a clock. Needs the model extra (`make torch`).
"""
# ruff: noqa: E402 - the repo need not be installed

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np
import torch

from schemas.expressions import Expression
from schemas.records import Key
from schemas.routes import CallSettings
from schemas.score_config import ScoredEditor, ScoreMeasure
from schemas.score_steps import Made
from schemas.scoring import Granularity, RuleParts
from schemas.sections import Adapter
from tasks.distances import DISTANCES
from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.images import ImageStore
from tasks.engine.stage import Context
from tasks.engine.store import Store
from tasks.faces import ANALYZERS, EMBEDDERS, analyzer, identity
from tasks.faces.geometry import context_box, crop, face_mask, landmark_box
from tasks.metrics.background import background_rmse, registered_rmse
from tasks.metrics.change import expression_change
from tasks.metrics.identity import cosine
from tasks.metrics.registration import register
from tasks.scoring import parts
from tasks.scoring.parts import ScoreParts
from tasks.scoring.steps import Entry
from tasks.sources import POOLS

INTENSITIES: Final = (1.0, 0.3, 0.7, 1.4, 2.0, 0.0)  # 0: a copy
SIDES: Final = (Granularity.SIMPLE, Granularity.DENSE)
SETTINGS: Final = ScoreMeasure()
Outputs = dict[tuple[float, Granularity], list[Made]]


def made(images: ImageStore, call: Calls, count: int, editors: int) -> Outputs:
    """Outputs of every editor for `count` sources; those for the dense instruction are a little stronger."""
    pool = POOLS.get("samples", {})
    outputs: Outputs = {(intensity, side): [] for side in SIDES for intensity in INTENSITIES[:editors]}
    for source in pool.list():
        picture = images.put(pool.load(source).pixels)
        faces = ANALYZERS.get("mediapipe", {}).analyze(picture)
        if not faces:
            continue
        target = Expression.SURPRISE
        request = EditRequest(picture, Expression.NEUTRAL, target, "", 0)
        truth = _warped(1.05, request, call)
        if truth is None:
            continue
        for (intensity, side), rows in outputs.items():
            strength = intensity + 0.1 * (side is Granularity.DENSE) * (intensity > 0)
            pixels = picture.pixels if not intensity else _warped(strength, request, call)
            assert pixels is not None
            rows.append(
                Made(
                    key=source.key._replace(target=str(target), editor="warp"),
                    source_image=picture.digest,
                    truth_image=images.put(truth).digest,
                    image=images.put(pixels).digest,
                    instruction="",
                    seed=0,
                    raw_width=0,
                    raw_height=0,
                )
            )
        if len(rows) == count:
            break
    return outputs


def _warped(intensity: float, request: EditRequest, call: Calls) -> Any:
    (result,) = EDITORS.get("warp", {"intensity": intensity}).edit([request], call)
    return None if isinstance(result, ItemFailed) else result


def forget() -> None:
    """Nothing is remembered of an earlier turn."""
    analyzer.forget()
    identity.forget()
    parts._truths.clear()


def ours(outputs: Outputs, images: ImageStore, call: Calls, threads: int) -> list[dict[Key, RuleParts]]:
    """As a run does it: shards of a few sources at once, each through all entries."""
    context = Context(0, images, call, print)
    steps = [
        ScoreParts(Entry(ScoredEditor(called=str(i), adapter=Adapter(name="copy")), side), SETTINGS)
        for i, side in outputs
    ]
    rows = list(outputs.values())
    places = [range(start, len(rows[0]), threads) for start in range(threads)]

    def work(place: Sequence[int]) -> list[list[tuple[Key, Any]]]:
        return [list(step.measure([held[n] for n in place], context)) for step, held in zip(steps, rows, strict=True)]

    with ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(work, places))
    return [dict(pair for place in done for pair in place[entry]) for entry in range(len(rows))]


def plain(outputs: Outputs, images: ImageStore) -> Iterator[dict[Key, tuple[float, ...]]]:
    """One output after the other, everything anew for each."""
    find, embed = ANALYZERS.get("mediapipe", {}), EMBEDDERS.get("sface", {})
    model: Any = DISTANCES.get("lpips", {})._model  # type: ignore[attr-defined]
    for rows in outputs.values():
        found = {}
        for row in rows:
            forget()
            source, truth, output = (images.get(one) for one in (row.source_image, row.truth_image, row.image))
            before, wanted, face = (find.analyze(one)[0] for one in (source, truth, output))
            square = context_box(landmark_box(before), SETTINGS.box_margin)
            crops = [_tensor(crop(one.pixels, square, SETTINGS.box_side)) for one in (source, truth, output)]
            with torch.no_grad():
                distances = [float(model(crops[0], crops[place])) for place in (2, 1)]
            shape, wide = source.pixels.shape, SETTINGS.mask_dilation
            mask = face_mask(shape, before, wide) | face_mask(shape, wanted, wide)
            motion, own = register(source.pixels, output.pixels), face_mask(shape, face, wide)
            errors = [background_rmse(source.pixels, output.pixels, one) for one in (mask, mask | own)]
            if motion:
                for one in (np.zeros_like(own), own):
                    errors.append(registered_rmse(source.pixels, output.pixels, mask, one, motion))
            found[row.key] = (
                cosine(embed.embed(source, before), embed.embed(output, face)),
                errors[0],
                *distances,
                expression_change(before.blendshapes, face.blendshapes),
                expression_change(before.blendshapes, wanted.blendshapes),
            )
        yield found


def _tensor(pixels: Any) -> Any:
    return torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32) / 127.5 - 1)


def apart(mine: list[dict[Key, RuleParts]], theirs: list[dict[Key, tuple[float, ...]]]) -> float:
    """The largest difference of any value; more than 1e-4 fails."""
    worst = 0.0
    for one, other in zip(mine, theirs, strict=True):
        assert one.keys() == other.keys()
        for key, part in one.items():
            values = (part.identity, part.background_rmse, part.lpips_output, part.lpips_truth, part.au_output)
            for a, b in zip((*values, part.au_truth), other[key], strict=True):
                assert a is not None
                worst = max(worst, abs(a - b))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=10)
    parser.add_argument("--editors", type=int, default=len(INTENSITIES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    library_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        images = ImageStore(Store(Path(folder)))
        call = Calls(Path(folder) / "answers.sqlite", CallSettings())
        outputs = made(images, call, options.sources, options.editors)
        count = sum(len(rows) for rows in outputs.values())
        ratios, cpu, times = [], [], []
        mine: list[dict[Key, RuleParts]] = []
        theirs: list[dict[Key, tuple[float, ...]]] = []
        for turn in range(options.rounds + 1):  # the first warms up
            seconds = {}
            for side in ("ours", "plain") if turn % 2 else ("plain", "ours"):
                forget()
                torch.set_num_threads(1 if side == "ours" else library_threads)
                began, used = time.perf_counter(), time.process_time()
                if side == "ours":
                    mine = ours(outputs, images, call, options.threads)
                else:
                    theirs = list(plain(outputs, images))
                seconds[side] = (time.perf_counter() - began, time.process_time() - used)
            if turn:
                times.append(seconds["ours"][0])
                ratios.append(seconds["plain"][0] / seconds["ours"][0])
                cpu.append(seconds["plain"][1] / seconds["ours"][1])
        worst = apart(mine, theirs)
        rate = count / statistics.median(times)
        told = {
            "outputs": count,
            "outputs_per_s": round(rate, 2),
            "seconds_for_747_x_2_of_one_editor": round(747 * 2 / rate),
            "wall_ratio": round(statistics.median(ratios), 2),
            "cpu_ratio": round(statistics.median(cpu), 2),
            "largest_difference": worst,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        print(json.dumps(told, indent=1))
        if worst > 1e-4:
            sys.exit("the two did not measure the same")


if __name__ == "__main__":
    main()
