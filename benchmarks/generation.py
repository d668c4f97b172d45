"""How fast are edits made? Images per second and peak memory of the diffusion editor and of a plain loop.

The plain loop calls the same pipeline (of diffusers, loaded by itself) once per edit with the same arguments and
noise, as its page shows; ours is `DiffusionEditor.edit` with the six targets of a source at once. Each turn of each
side is a fresh process with its pipeline loaded and warm; the sides take turns in going first. It fails only if the
edits are not the same, never on a clock.

By default the pipelines are tiny, with random weights, in float32 on one thread of a CPU. With `--real` they have the
real sizes (large.py), random weights and bfloat16, on a GPU.
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
from numpy.typing import NDArray

from schemas.expressions import Expression, others
from tasks.editors import EDITORS, EditRequest
from tasks.editors.diffusion import size
from tasks.engine.images import Picture
from tasks.providers.in_process import digest_of
from tests.doors import SHUT
from tests.photos import photo

MODELS: Final = ("qwen-image-edit-2511", "flux-kontext", "instruct-pix2pix")
PHOTOS: Final = ("happy", "hopper", "astronaut", "angry", "surprised", "smiling")
LAST_BIT: Final = 2  # of 255, in float32


def build(model: str, folder: Path) -> None:
    """Write a tiny pipeline of the model's class."""
    from tests.torch import tiny

    builders = {"flux-kontext": tiny.kontext, "instruct-pix2pix": tiny.pix2pix}
    builders.get(model, tiny.qwen)(folder)


def asked(sources: int) -> list[list[EditRequest]]:
    """Six edits each of so many sources of 512 px."""
    pictures = [cv2.resize(photo(PHOTOS[place % len(PHOTOS)]).pixels, (512, 512)) for place in range(sources)]
    return [
        [
            EditRequest(Picture(str(place), np.asarray(pixels, np.uint8)), Expression.HAPPY, target,
                        f"change the expression from happy to {target}", 10 * place + seed)
            for seed, target in enumerate(others(Expression.HAPPY))
        ]
        for place, pixels in enumerate(pictures)
    ]  # fmt: skip


def ours(params: dict[str, Any], sources: list[list[EditRequest]]) -> tuple[list[Any], float]:
    """The edits and their seconds; the first source is edited once before."""
    editor = EDITORS.get("diffusion", params)
    editor.edit(sources[0][:1], SHUT)
    started = time.perf_counter()
    return [edit for requests in sources for edit in editor.edit(requests, SHUT)], time.perf_counter() - started


def plain(params: dict[str, Any], sources: list[list[EditRequest]]) -> tuple[list[Any], float]:
    """As `ours`, one by one through the pipeline's own call."""
    import torch
    from diffusers import DiffusionPipeline
    from PIL import Image

    values: Any = EDITORS.parse("diffusion", params)
    if not _random(params):
        pipe: Any = DiffusionPipeline.from_pretrained(values.folder, dtype=getattr(torch, values.dtype))
    else:  # random weights of real size were never written; the editor's own copy is used
        pipe = EDITORS.get("diffusion", params)._pipeline._pipe  # type: ignore[attr-defined]
    pipe.set_progress_bar_config(disable=True)

    def edit(request: EditRequest) -> NDArray[np.uint8]:
        call, pixels = dict(values.call), request.source.pixels
        height, width = size(pixels.shape, values.area, values.multiple)
        if values.batching != "embeds":
            pixels = np.asarray(cv2.resize(pixels, (width, height), interpolation=_method(pixels, height)), np.uint8)
        if values.sized:
            call |= {"height": height, "width": width}
        if "flux-kontext" in values.model:
            call["max_area"] = height * width
        noise = torch.Generator("cpu").manual_seed(request.seed)
        made = pipe(image=Image.fromarray(pixels), prompt=request.instruction, generator=noise, **call).images[0]
        return np.asarray(made)

    edit(sources[0][0])
    started = time.perf_counter()
    return [edit(request) for requests in sources for request in requests], time.perf_counter() - started


def _method(pixels: NDArray[np.uint8], height: int) -> int:
    return cv2.INTER_AREA if pixels.shape[0] > height else cv2.INTER_LANCZOS4


def turn(side: str, told: dict[str, Any], sources: int, out: Path) -> None:
    """One turn in this process: edits into `out`, seconds and peak memory to the standard output."""
    import torch

    if _random(told):
        from benchmarks import large

        large.install(told["device"])
    else:
        torch.set_num_threads(1)
    edits, seconds = {"ours": ours, "plain": plain}[side](told, asked(sources))
    wrong = [edit for edit in edits if not isinstance(edit, np.ndarray)]
    if wrong:
        raise SystemExit(f"{len(wrong)} of {len(edits)} edits failed: {wrong[0]}")
    np.save(out, np.stack(edits))
    peak = torch.cuda.max_memory_allocated() / 1e6 if told["device"].startswith("cuda") else _peak()
    print(json.dumps({"seconds": seconds, "edits": len(edits), "peak_mb": peak}))


def _random(params: dict[str, Any]) -> bool:
    """Whether its weights are made in the process that uses them."""
    return bool(params["dtype"] == "bfloat16")


def _peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1e3


def compare(model: str, arguments: argparse.Namespace, folder: Path) -> bool:
    """Take turns and print a line per model; whether the edits were the same."""
    if arguments.real:
        from benchmarks import large

        large.write(model, folder, arguments.layers)
    else:
        build(model, folder)
    told = {
        "model": model,
        "folder": str(folder),
        "revision": digest_of(folder),
        "device": arguments.device or ("cuda" if arguments.real else "cpu"),
        "dtype": "bfloat16" if arguments.real else "float32",
        "area": arguments.side**2,
        "call": {"num_inference_steps": arguments.steps},
        "batch": arguments.batch,
    }
    rates: dict[str, list[float]] = {"ours": [], "plain": []}
    peaks: dict[str, list[float]] = {"ours": [], "plain": []}
    for number in range(arguments.rounds):
        for side in ("plain", "ours") if number % 2 else ("ours", "plain"):
            out = folder.parent / f"{side}.npy"
            command = [sys.executable, __file__, "--turn", side, json.dumps(told), str(arguments.sources), str(out)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
            found = json.loads(said)
            rates[side].append(found["edits"] / found["seconds"])
            peaks[side].append(found["peak_mb"])
    pairs = [np.load(folder.parent / f"{side}.npy").astype(int) for side in rates]
    apart = int(np.abs(pairs[0] - pairs[1]).max())
    ratio = statistics.median(a / b for a, b in zip(rates["ours"], rates["plain"], strict=True))
    print(
        f"{model:24}"
        + "".join(
            f"  {side} {statistics.median(rates[side]):.2f} images/s, {max(peaks[side]):.0f} MB" for side in rates
        )
        + f"  × {ratio:.2f}  (differ by {apart} of 255 at most)",
        flush=True,
    )
    return apart <= LAST_BIT or arguments.real  # bfloat16 rounds so much that only words can be said about it


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--sources", type=int, default=2, help="six edits each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", type=int, default=256, help="of the edits, px")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--real", action="store_true", help="real sizes, random weights, on a GPU")
    parser.add_argument("--layers", type=int, help="with --real: so many layers of each network, to try it out")
    parser.add_argument("--device", default="", help="torch's name for it")
    arguments = parser.parse_args()
    same = True
    with tempfile.TemporaryDirectory() as work:
        for model in arguments.models:
            (Path(work) / model).mkdir()
            same &= compare(model, arguments, Path(work) / model / "model")
    return 0 if same else 1


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if sys.argv[1:2] == ["--turn"]:
        turn(sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
        sys.exit()
    sys.exit(main())
