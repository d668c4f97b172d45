"""The `diffusion` editor without torch: its table, its errors, and what it makes of a scripted pipeline's answers."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schemas.expressions import Expression, others
from schemas.outcomes import FailureKind
from tasks.editors import EDITORS, EditRequest, diffusion
from tasks.editors.diffusion_files import lora_file, pipeline_folder
from tasks.editors.diffusion_pipeline import Editing, OutOfMemory, Result, pictures
from tasks.editors.table import Lora
from tasks.engine.errors import ConfigError, ContractError, ItemFailed
from tasks.providers.in_process import digest_of
from tests.doors import SHUT
from tests.photos import photo, picture

SOURCE = picture(np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8))


SHARDS = '{"weight_map": {"a": "w.safetensors", "b": "w2.safetensors"}}'


def requests(count: int = 6, source: Any = SOURCE) -> list[EditRequest]:
    targets = others(Expression.NEUTRAL) * 2
    return [
        EditRequest(source, Expression.NEUTRAL, target, f"to {target}, {seed}", seed)
        for seed, target in enumerate(targets[:count])
    ]


class Scripted:
    """A pipeline that answers with pictures of its seeds, and has memory for so many at once."""

    def __init__(self, room: int = 99) -> None:
        self.room, self.asked = room, list[Editing]()

    def edit(self, editing: Editing) -> list[Result]:
        self.asked.append(editing)
        if len(editing.seeds) > self.room:
            raise OutOfMemory("CUDA out of memory")
        return [np.full((editing.height, editing.width, 3), seed, np.uint8) for seed in editing.seeds]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Scripted]]:
    """Makes an editor over a scripted pipeline."""

    def make(room: int = 99, **params: Any) -> tuple[Any, Scripted]:
        scripted = Scripted(room)
        monkeypatch.setattr(diffusion, "_spec", lambda _: None)
        monkeypatch.setattr(diffusion, "load", lambda _: scripted)
        told = {"model": "qwen-image-edit-2511", "area": 64 * 64} | params
        return diffusion.DiffusionEditor(EDITORS.parse("diffusion", told)), scripted  # type: ignore[arg-type]

    return make


# -- what a name stands for -------------------------------------------------------------------------------------


def test_a_shipped_name_is_spelled_out_in_the_identity() -> None:
    params = EDITORS.identity("diffusion", {"model": "qwen-image-edit-2511"})["params"]
    assert params["repository"] == "Qwen/Qwen-Image-Edit-2511"
    assert len(params["revision"]) == 40
    assert params["call"] == {"num_inference_steps": 40, "true_cfg_scale": 4.0, "negative_prompt": " "}
    assert params["batching"] == "embeds"
    changed = EDITORS.identity("diffusion", {"model": "qwen-image-edit-2511", "call": {"num_inference_steps": 8}})
    assert changed["params"]["call"] == params["call"] | {"num_inference_steps": 8}
    quick = EDITORS.identity("diffusion", {"model": "qwen-image-edit-2511-lightning"})["params"]
    assert quick["loras"][0]["repository"] == "lightx2v/Qwen-Image-Edit-2511-Lightning"
    assert quick["scheduler"]["shift_terminal"] is None


def test_another_model_says_all_itself() -> None:
    params = EDITORS.identity("diffusion", {"model": "somebody/theirs", "call": {"steps": 3}})["params"]
    assert (params["call"], params["pipeline"], params["batching"]) == ({"steps": 3}, "", "no")


def test_the_family_is_the_rows() -> None:
    assert EDITORS.family("diffusion", {"model": "flux-kontext"}) == "flux"
    assert EDITORS.family("diffusion", {"model": "mine"}) == ""


# -- what is missing --------------------------------------------------------------------------------------------


def told(**params: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        EDITORS.check("diffusion", params)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_torch_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "diffusers" else find("json"))
    assert "needs diffusers, which is not installed (install the model extra: `make torch`" in told(
        model="flux-kontext"
    )


def test_a_model_with_code_of_its_own_is_sent_to_a_server() -> None:
    assert "'bagel' is not in diffusers" in told(model="bagel")


@pytest.mark.parametrize("revision", ["", "main", "0123abc"])
def test_what_can_move_is_refused(revision: str) -> None:
    with pytest.raises(ConfigError, match=f"revision '{revision}' of 'a/b' is no commit"):
        pipeline_folder("a/b", revision, "")
    with pytest.raises(ConfigError, match="is no commit"):
        lora_file(Lora(repository="a/b", revision=revision), "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pipeline's folder with files in name alone."""
    index = {"_class_name": "X", "vae": ["diffusers", "V"], "safety_checker": [None, None], "scheduler": ["d", "S"]}
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    for name in ("vae/config.json", "vae/w.safetensors", "scheduler/scheduler_config.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


def test_a_folder_is_pinned_by_its_digest(folder: Path) -> None:
    with pytest.raises(ConfigError, match="not those of revision 'main'") as caught:
        pipeline_folder("mine", "main", str(folder))
    assert digest_of(folder) in caught.value.hint
    assert pipeline_folder("mine", digest_of(folder), str(folder)) == folder


@pytest.mark.parametrize(
    ("ruin", "words"),
    [
        (lambda f: (f / "vae/w.safetensors").rename(f / "vae/w.bin"), "kept as a pickle"),
        (lambda f: (f / "scheduler/scheduler_config.json").unlink(), "lacks its part 'scheduler'"),
        (lambda f: (f / "model_index.json").write_text("[]"), "is no JSON object"),
        (lambda f: (f / "model_index.json").unlink(), "no pipeline of diffusers lies in"),
        (lambda f: (f / "vae/w.safetensors.index.json").write_text(SHARDS), "lacks w2"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused_at_once(folder: Path, ruin: Callable[[Path], Any], words: str) -> None:
    ruin(folder)
    with pytest.raises(ConfigError, match=words) as caught:
        pipeline_folder("mine", digest_of(folder), str(folder))
    assert "\n" not in str(caught.value)


def test_a_lora_in_a_folder_is_pinned_by_its_hash(tmp_path: Path) -> None:
    (tmp_path / "l.safetensors").write_text("x")
    with pytest.raises(ConfigError, match="if it is what you mean: revision: ") as caught:
        lora_file(Lora(file="l.safetensors"), str(tmp_path))
    digest = caught.value.hint[-64:]
    assert lora_file(Lora(file="l.safetensors", revision=digest), str(tmp_path)) == tmp_path / "l.safetensors"
    with pytest.raises(ConfigError, match="no LoRA other"):
        lora_file(Lora(file="other.safetensors", revision=digest), str(tmp_path))


# -- batches ----------------------------------------------------------------------------------------------------


def seeds(edits: Any) -> list[int]:
    return [int(edit[0, 0, 0]) for edit in edits]


@pytest.mark.parametrize(("batch", "sizes"), [(1, [1] * 6), (4, [4, 2]), (6, [6]), (64, [6])])
def test_edits_are_made_so_many_at_once(made: Any, batch: int, sizes: list[int]) -> None:
    editor, pipeline = made(batch=batch)
    assert seeds(editor.edit(requests(), SHUT)) == [0, 1, 2, 3, 4, 5]
    assert [len(each.seeds) for each in pipeline.asked] == sizes
    assert editor.edit([], SHUT) == []


def test_out_of_memory_halves_the_batch_and_says_so(made: Any) -> None:
    editor, pipeline = made(room=2, batch=8)
    assert seeds(editor.edit(requests(10), SHUT)) == list(range(10))
    assert [len(each.seeds) for each in pipeline.asked] == [8, 4, 2, 2, 2, 2, 2]
    assert editor.notes() == [
        f"qwen-image-edit-2511: out of memory for {tried} edits at once of a source of 80 x 60 px; goes on with {few}"
        for tried, few in ((8, 4), (4, 2))
    ]
    assert editor.notes() == []
    pipeline.asked.clear()
    editor.edit(requests(2), SHUT)
    assert [len(each.seeds) for each in pipeline.asked] == [2], "it remembers"
    small = picture(SOURCE.pixels[:10, :10].copy())
    pipeline.asked.clear()
    editor.edit(requests(6, small), SHUT)
    assert len(pipeline.asked[0].seeds) == 6, "a smaller source may fit"


def test_one_edit_without_memory_fails_and_the_rest_goes_on(made: Any) -> None:
    editor, pipeline = made(room=0, batch=2)
    results = editor.edit(requests(3), SHUT)
    assert [(each.kind, each.retryable) for each in results] == [(FailureKind.OUT_OF_MEMORY, True)] * 3
    assert [len(each.seeds) for each in pipeline.asked] == [2, 1, 1, 1]


@pytest.mark.parametrize("seed", [-1, None, 1.5, True, 2**64])
def test_a_seed_that_is_none_is_a_bug_of_the_caller(made: Any, seed: Any) -> None:
    with pytest.raises(ContractError, match="no non-negative integer"):
        made()[0].edit([EditRequest(SOURCE, Expression.SAD, Expression.HAPPY, "", seed)], SHUT)


# -- what the pipeline is shown ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "area", "multiple", "expected"),
    [
        ((1000, 1000), 1024 * 1024, 16, (1024, 1024)),
        ((60, 80), 64 * 64, 16, (48, 80)),
        ((2000, 500), 512 * 512, 8, (1024, 256)),
        ((4, 4000), 64 * 64, 16, (16, 2016)),
    ],
)
def test_an_edit_has_the_sources_shape(shape: Any, area: int, multiple: int, expected: tuple[int, int]) -> None:
    assert diffusion.size(shape, area, multiple) == expected


def test_the_source_is_shown_at_the_size_of_the_edit(made: Any) -> None:
    editor, pipeline = made(model="flux-kontext")
    editor.edit(requests(1), SHUT)
    (asked,) = pipeline.asked
    assert asked.pixels.shape[:2] == (asked.height, asked.width) == (48, 80)
    assert asked.mask is None
    editor, pipeline = made(model="flux-kontext", reference_area=128 * 128)
    editor.edit(requests(1), SHUT)
    assert pipeline.asked[0].pixels.shape[:2] == (112, 144)
    editor, pipeline = made()
    editor.edit(requests(1), SHUT)
    assert pipeline.asked[0].pixels is SOURCE.pixels, "Qwen's resize it by their own rule"


def test_the_instruction_is_told_as_the_model_wants_it(made: Any) -> None:
    editor, pipeline = made(model="omnigen")
    editor.edit(requests(1), SHUT)
    assert pipeline.asked[0].prompts == [f"<img><|image_1|></img> {requests(1)[0].instruction}"]


def test_fill_paints_the_face_alone(made: Any) -> None:
    editor, pipeline = made(model="flux-fill", area=256 * 256)
    editor.edit(requests(1, photo("happy")), SHUT)
    mask = pipeline.asked[0].mask
    assert mask.shape == pipeline.asked[0].pixels.shape[:2]
    assert 0.1 < mask.mean() < 0.8
    height, width = mask.shape
    assert mask[height // 2, width // 2]
    assert not mask[0].any()
    (failed,) = editor.edit(requests(1), SHUT)
    assert failed.kind is FailureKind.NO_FACE


# -- what the pipeline answers ----------------------------------------------------------------------------------


def answered(images: Any, count: int = 1, **more: Any) -> list[Result]:
    return pictures(SimpleNamespace(images=images, **more), count)


def test_numbers_become_pictures_as_the_pipelines_own_do() -> None:
    (pixels,) = answered(np.array([[[[0.0, 0.5, 1.0], [1.2, -0.1, 0.25]]]], np.float32))
    assert isinstance(pixels, np.ndarray)
    assert pixels.dtype == np.uint8
    assert pixels.tolist() == [[[0, 128, 255], [255, 0, 64]]]


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (None, "no picture"),
        ([None], "no picture"),
        ([], "0 pictures for 1 edits"),
        (np.zeros((2, 4, 4, 3)), "2 pictures for 1 edits"),
        (np.full((1, 2, 2, 3), np.nan, np.float32), "12 of 12 values of the picture are no numbers"),
        (np.full((1, 2, 2, 3), np.inf, np.float32), "no numbers"),
        ([[SOURCE.pixels] * 4], "4 frames of a video"),
        (np.zeros((1, 5, 4, 4, 3)), "5 frames of a video"),
    ],
)
def test_what_is_no_picture_fails_before_it_is_black(images: Any, words: str) -> None:
    (failed,) = answered(images)
    assert isinstance(failed, ItemFailed)
    assert failed.kind is FailureKind.BAD_OUTPUT
    assert words in str(failed)


def test_a_video_is_no_picture() -> None:
    assert [str(each) for each in pictures(SimpleNamespace(frames=[1]), 2)] == [
        "the pipeline made a video, not a picture"
    ] * 2


def test_one_bad_picture_hurts_only_itself() -> None:
    images = np.full((3, 2, 2, 3), 0.5, np.float32)
    images[1, 0, 0, 0] = np.nan
    kinds = [type(each) for each in answered(images, 3, nsfw_content_detected=[False, False, True])]
    assert kinds == [np.ndarray, ItemFailed, ItemFailed]
    (_, _, refused) = answered(images, 3, nsfw_content_detected=[False, False, True])
    assert isinstance(refused, ItemFailed)
    assert refused.kind is FailureKind.REFUSED
