"""The `diffusion` editor on tiny pipelines of the true classes: random weights, saved and loaded as a user's are."""

import inspect
import json
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from schemas.expressions import Expression, others
from schemas.outcomes import FailureKind
from tasks.editors import EDITORS, EditRequest, diffusion_pipeline, diffusion_qwen
from tasks.editors.diffusion_pipeline import Pipeline
from tasks.editors.diffusion_settings import accepted
from tasks.editors.table import shipped
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.providers.in_process import digest_of
from tests.commands import environment, run
from tests.doors import SHUT
from tests.photos import photo, picture
from tests.torch import tiny

pytestmark = pytest.mark.torch
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BUILDERS: dict[str, Callable[[Path], Path]] = {
    "qwen-image-edit-2511": tiny.qwen,
    "qwen-image-edit": lambda folder: tiny.qwen(folder, "QwenImageEditPipeline"),
    "flux-kontext": tiny.kontext,
    "flux-fill": tiny.fill,
    "instruct-pix2pix": tiny.pix2pix,
}
EVERY = pytest.mark.parametrize("name", BUILDERS)
SIDE = 64
SOURCE = picture(cv2.resize(photo("happy").pixels, (128, 128), interpolation=cv2.INTER_AREA))
LAST_BIT = 2  # of 255: what another batch size may change


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: build(tmp_path_factory.mktemp(name)) for name, build in BUILDERS.items()}


def params(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    """A row of the table with a tiny pipeline in place of the hub's, in 2 steps at 64 px."""
    call = {"num_inference_steps": 2} | more.pop("call", {})
    where = {"folder": str(folder), "revision": digest_of(folder)}
    small = {"area": SIDE * SIDE, "reference_area": SIDE * SIDE, "dtype": "float32"}
    return {"model": name, "call": call} | where | small | more


def requests(seeds: Any = range(6)) -> list[EditRequest]:
    """Instructions of several lengths."""
    targets = others(Expression.HAPPY)
    return [
        EditRequest(SOURCE, Expression.HAPPY, targets[place], f"change it to {targets[place]}{', a bit' * place}", seed)
        for place, seed in enumerate(seeds)
    ]


def edit(folder: Path, name: str, asked: Any = None, **more: Any) -> list[Any]:
    return list(EDITORS.get("diffusion", params(folder, name, **more)).edit(asked or requests(), SHUT))


def apart(one: Any, other: Any) -> int:
    """The largest difference of two lists of pictures, of 255."""
    return max(int(np.abs(a.astype(int) - b.astype(int)).max()) for a, b in zip(one, other, strict=True))


# -- edits ------------------------------------------------------------------------------------------------------


@EVERY
def test_batch_size_order_and_company_change_no_edit(folders: dict[str, Path], name: str) -> None:
    together = edit(folders[name], name)
    assert [each.shape for each in together] == [(SIDE, SIDE, 3)] * 6
    assert min(float(each.std()) for each in together) > 5
    assert len({each.tobytes() for each in together}) == 6
    assert edit(folders[name], name)[0].tobytes() == together[0].tobytes()
    for batch in (1, 4):
        assert apart(edit(folders[name], name, batch=batch), together) <= LAST_BIT
    assert apart(edit(folders[name], name, requests()[::-1]), together[::-1]) <= LAST_BIT


@EVERY
def test_seed_instruction_and_source_change_it(folders: dict[str, Path], name: str) -> None:
    (one,) = edit(folders[name], name, requests([0]))
    (other,) = edit(folders[name], name, requests([1]))
    assert apart([one], [other]) > 10
    same_seed = edit(folders[name], name, requests([0] * 6))
    effects = [apart([each], same_seed[:1]) for each in same_seed[1:]]
    assert min(effects) > 0
    assert max(effects) > 2 * LAST_BIT
    negative = picture(255 - SOURCE.pixels)
    request = requests([0])[0]
    (elsewhere,) = edit(
        folders[name], name, [EditRequest(negative, request.source_expression, request.target, request.instruction, 0)]
    )
    assert apart([one], [elsewhere]) > 0


@EVERY
def test_it_is_what_the_pipelines_own_call_gives_one_by_one(folders: dict[str, Path], name: str) -> None:
    import torch
    from diffusers import DiffusionPipeline
    from PIL import Image

    from tasks.faces import ANALYZERS
    from tasks.faces.geometry import face_mask

    pipe = DiffusionPipeline.from_pretrained(folders[name])
    pipe.set_progress_bar_config(disable=True)
    # At the reference size that the pipeline itself chooses.
    values: Any = EDITORS.parse("diffusion", params(folders[name], name, reference_area=0))
    shown = cv2.resize(SOURCE.pixels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    call = dict(values.call)
    if values.sized:
        call |= {"height": SIDE, "width": SIDE}
    if name == "flux-kontext":
        call["max_area"] = SIDE * SIDE
    if values.mask:
        mask = face_mask(SOURCE.pixels.shape, ANALYZERS.get("mediapipe", {}).analyze(SOURCE)[0], values.mask_dilation)
        small = cv2.resize(mask.astype(np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        call["mask_image"] = Image.fromarray(small * 255)
    asked = requests(range(2))
    alone = [
        np.asarray(
            pipe(
                image=Image.fromarray(SOURCE.pixels if name.startswith("qwen") else shown),
                prompt=request.instruction,
                generator=torch.Generator().manual_seed(request.seed),
                **call,
            ).images[0]
        )
        for request in asked
    ]
    assert apart(edit(folders[name], name, asked, reference_area=0), alone) <= LAST_BIT


def test_without_true_masks_a_batch_would_be_wrong(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    name = "qwen-image-edit-2511"
    right, padded = edit(folders[name], name), diffusion_qwen._padded
    monkeypatch.setattr(diffusion_qwen, "_padded", lambda rows: (padded(rows)[0], padded(rows)[1] * 0 + 1))
    assert apart(edit(folders[name], name)[:1], right[:1]) > LAST_BIT, "the shortest prompt sees its padding"


@EVERY
def test_half_precision_works(folders: dict[str, Path], name: str) -> None:
    half = edit(folders[name], name, dtype="bfloat16")
    assert all(isinstance(each, np.ndarray) for each in half)
    assert 0 < apart(half, edit(folders[name], name)) < 128


def test_sizes_pass_through(folders: dict[str, Path]) -> None:
    name = "qwen-image-edit-2511"
    plain = edit(folders[name], name)
    assert edit(folders[name], name, area=96 * 96)[0].shape == (96, 96, 3)
    assert apart(edit(folders[name], name, reference_area=96 * 96), plain) > LAST_BIT


def test_call_scheduler_and_step_cache_pass_through(folders: dict[str, Path]) -> None:
    name = "flux-kontext"
    plain = edit(folders[name], name)
    for changed in (
        {"call": {"guidance_scale": 9.0}},
        {"scheduler": {"shift": 9.0, "use_dynamic_shifting": False}},
        {"call": {"num_inference_steps": 3}},
    ):
        assert apart(edit(folders[name], name, **changed), plain) > LAST_BIT, changed
    pix2pix = folders["instruct-pix2pix"]
    other = edit(pix2pix, "instruct-pix2pix", scheduler={"class": "DDIMScheduler"})
    assert apart(other, edit(pix2pix, "instruct-pix2pix")) > LAST_BIT


def test_a_step_cache_skips_steps_and_begins_anew(folders: dict[str, Path]) -> None:
    name, call = "qwen-image-edit-2511", {"num_inference_steps": 6}
    cache = {"class": "FirstBlockCacheConfig", "threshold": 10.0}
    cached = edit(folders[name], name, call=call, step_cache=cache)
    assert apart(cached, edit(folders[name], name, call=call)) > 0
    assert apart(edit(folders[name], name, call=call, step_cache=cache), cached) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"step_cache": {"class": "FirstBlockCacheConfig"}},
        {"scheduler": {"class": "FlowMatchHeunDiscreteScheduler"}},
        {"call": {"num_inference_steps": "few"}},
    ],
)
def test_what_only_the_first_edit_shows_ends_the_run_in_one_line(
    folders: dict[str, Path], changed: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="the editor 'flux-kontext' cannot edit as it is told: ") as caught:
        edit(folders["flux-kontext"], "flux-kontext", **changed)
    assert "\n" not in str(caught.value)


def test_loras_are_fused_in(folders: dict[str, Path], tmp_path: Path) -> None:
    import torch
    from diffusers import FluxKontextPipeline
    from peft import LoraConfig, get_peft_model_state_dict

    name = "flux-kontext"
    pipe = FluxKontextPipeline.from_pretrained(folders[name])
    config = LoraConfig(r=2, init_lora_weights=False, target_modules=["to_k", "to_q"])
    torch.manual_seed(0)
    pipe.transformer.add_adapter(config)
    pipe.save_lora_weights(tmp_path, transformer_lora_layers=get_peft_model_state_dict(pipe.transformer))
    with pytest.raises(ConfigError, match="if it is what you mean: revision: ") as caught:
        edit(folders[name], name, loras=[{"repository": "mine", "revision": "x"}], lora_folder=str(tmp_path))
    lora = {"repository": "mine", "revision": caught.value.hint[-64:]}
    plain, with_lora = (
        edit(folders[name], name),
        edit(folders[name], name, loras=[lora], lora_folder=str(tmp_path)),
    )
    assert apart(with_lora, plain) > LAST_BIT
    weak = edit(folders[name], name, loras=[lora | {"scale": 0.0}], lora_folder=str(tmp_path))
    assert apart(weak, plain) <= 1
    with pytest.raises(ConfigError, match=r"holds no weights for the editor|cannot be loaded"):
        edit(folders["instruct-pix2pix"], "instruct-pix2pix", loras=[lora], lora_folder=str(tmp_path))


# -- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("flux-kontext", {"call": {"guidance": 2}}, "call: FluxKontextPipeline takes no guidance"),
        ("instruct-pix2pix", {"call": {"heigth": 2}}, "takes no heigth"),
        ("flux-kontext", {"call": {"height": 2}}, "call.height is not for you to set"),
        ("flux-kontext", {"call": {"generator": 2}}, "call.generator is not for you to set"),
        ("flux-kontext", {"call": {"prompt_embeds": 2}}, "call.prompt_embeds is not for you"),
        ("flux-kontext", {"scheduler": {"shfit": 2}}, "scheduler: FlowMatchEulerDiscreteScheduler takes no shfit"),
        ("flux-kontext", {"scheduler": {"class": "Nothing"}}, "diffusers has no Nothing"),
        ("flux-kontext", {"step_cache": {"class": "Nothing"}}, "step_cache: no class 'Nothing'"),
        ("flux-kontext", {"step_cache": {"class": "FirstBlockCacheConfig", "x": 1}}, "takes no x"),
        ("flux-kontext", {"attention": "magic"}, "attention: no 'magic'"),
        ("flux-kontext", {"device": "abacus"}, "device: no 'abacus'"),
        ("flux-kontext", {"device": "cuda:7"}, "torch sees none here"),
        ("flux-kontext", {"offload": "disk"}, "offload: no 'disk'"),
        ("flux-kontext", {"batching": "embeds"}, "batching: 'embeds' is for"),
        ("flux-kontext", {"mask": "face"}, "mask: FluxKontextPipeline takes no mask_image"),
        ("instruct-pix2pix", {"sized": True}, "takes no height"),
        ("flux-kontext", {"pipeline": "os"}, "is no pipeline of diffusers"),
    ],
)
def test_what_the_pipeline_does_not_know_is_refused_at_the_start(
    folders: dict[str, Path], name: str, changed: dict[str, Any], words: str
) -> None:
    import torch

    if "cuda" in str(changed) and torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ConfigError, match=words) as caught:
        EDITORS.check("diffusion", params(folders[name], name, **changed))
    assert "\n" not in str(caught.value)
    assert str(folders[name]) not in caught.value.message


@pytest.mark.parametrize("part", ["transformer", "text_encoder", "vae"])
def test_a_lost_weight_is_never_made_up(folders: dict[str, Path], tmp_path: Path, part: str) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(folders["flux-kontext"], tmp_path / "ruined")
    (file,) = (folder / part).glob("*.safetensors")
    save_file(dict(sorted(load_file(file).items())[1:]), file, {"format": "pt"})
    with pytest.raises(ConfigError, match=f"the part '{part}' of the editor 'flux-kontext' lacks weights"):
        edit(folder, "flux-kontext")


@pytest.mark.parametrize("file", ["transformer/*.safetensors", "text_encoder_2/*.safetensors", "tokenizer/*.json"])
def test_a_torn_file_is_one_line(folders: dict[str, Path], tmp_path: Path, file: str) -> None:
    folder = shutil.copytree(folders["flux-kontext"], tmp_path / "torn")
    torn = max(folder.glob(file), key=lambda path: path.stat().st_size)
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
    with pytest.raises(ConfigError, match="the editor 'flux-kontext' cannot be loaded: ") as caught:
        edit(folder, "flux-kontext")
    assert "\n" not in str(caught.value)


def test_pickles_are_not_opened_and_code_is_not_run(folders: dict[str, Path], tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    folder = shutil.copytree(folders["flux-kontext"], tmp_path / "pickled")
    file = folder / "vae" / "diffusion_pytorch_model.safetensors"
    torch.save(load_file(file), file.with_suffix(".bin"))
    file.unlink()
    with pytest.raises(ConfigError, match="kept as a pickle"):
        edit(folder, "flux-kontext")
    folder = shutil.copytree(folders["flux-kontext"], tmp_path / "code")
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps(index | {"_class_name": ["code", "Mine"]}))
    (folder / "code.py").write_text("raise SystemExit('ran code from the folder')\n")
    with pytest.raises(ConfigError, match="is no pipeline of diffusers"):
        edit(folder, "mine")


@pytest.mark.parametrize("name", [row.name for row in shipped() if row.runs == "here"])
def test_every_row_of_the_table_is_taken_by_its_class(name: str) -> None:
    import diffusers

    (row,) = (each for each in shipped() if each.name == name)
    takes = accepted(getattr(diffusers, row.pipeline))
    needed = {*row.call, row.picture, *(["height", "width"] if row.sized else []), *(["mask_image"] * bool(row.mask))}
    assert needed <= takes
    assert set(row.scheduler) <= set(inspect.signature(diffusers.FlowMatchEulerDiscreteScheduler).parameters)


# -- accidents --------------------------------------------------------------------------------------------------


def test_numbers_that_are_none_are_noticed(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(folders["flux-kontext"], tmp_path / "nan")
    (file,) = (folder / "transformer").glob("*.safetensors")
    save_file({name: tensor * float("nan") for name, tensor in load_file(file).items()}, file, {"format": "pt"})
    for result in edit(folder, "flux-kontext"):
        assert isinstance(result, ItemFailed)
        assert result.kind is FailureKind.BAD_OUTPUT
        assert "are no numbers" in str(result)


def test_a_batch_too_large_for_the_memory_is_halved(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    name, sizes, call = "qwen-image-edit-2511", list[int](), Pipeline._call

    def tight(self: Pipeline, editing: Any) -> Any:
        sizes.append(len(editing.seeds))
        if len(editing.seeds) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB\nmore")
        return call(self, editing)

    right = edit(folders[name], name)
    monkeypatch.setattr(Pipeline, "_call", tight)
    editor = EDITORS.adapter_class("diffusion")(EDITORS.parse("diffusion", params(folders[name], name, batch=8)))
    assert apart(editor.edit(requests(), SHUT), right) <= LAST_BIT  # type: ignore[attr-defined]
    assert sizes == [6, 3, 1, 1, 1, 1, 1, 1]
    assert len(editor.notes()) == 2


def test_it_is_loaded_once_for_all_threads(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    name, made, start = "instruct-pix2pix", list[Any](), Pipeline.__init__
    monkeypatch.setattr(diffusion_pipeline, "_loaded", {})
    monkeypatch.setattr(Pipeline, "__init__", lambda self, spec: (made.append(spec), start(self, spec))[1])
    with ThreadPoolExecutor(4) as pool:
        edits = list(pool.map(lambda _: edit(folders[name], name)[0].tobytes(), range(4)))
    assert len(made) == 1
    assert len(set(edits)) == 1


# -- by an id of the hub, in processes of their own -------------------------------------------------------------

CODE = """
import hashlib, json, sys
from tasks.engine.errors import ConfigError
from tests.torch.test_diffusion import EDITORS, requests, SHUT
told = json.loads(sys.argv[1])
try: EDITORS.get("diffusion", told | {"model": "somebody/other", "repository": ""})
except ConfigError as error: print(error)
edits = EDITORS.get("diffusion", told).edit(requests(), SHUT)
print(hashlib.sha256(b"".join(edit.tobytes() for edit in edits)).hexdigest())
"""


def test_an_id_of_the_hub_is_read_from_its_cache_alone_and_gives_the_same_bytes(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    name = "flux-kontext"
    shutil.copytree(folders[name], tmp_path / "hub/hub/models--somebody--tiny/snapshots" / COMMIT)
    told = params(folders[name], name) | {"model": "somebody/tiny", "folder": "", "revision": COMMIT}
    told |= {"call": {"num_inference_steps": 2, "_auto_resize": False}, "batching": "prompts"}
    env = environment(tmp_path, HF_HOME=str(tmp_path / "hub"), HTTPS_PROXY="http://127.0.0.1:9", OMP_NUM_THREADS="1")
    digests = []
    for _ in range(2):
        done = run([sys.executable, "-c", CODE, json.dumps(told)], env, tmp_path)
        assert done.returncode == 0, done.stderr
        missing, digest = done.stdout.splitlines()
        assert f"hf download somebody/other --revision {COMMIT}" in missing
        digests.append(digest)
    assert digests[0] == digests[1]
