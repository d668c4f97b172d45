"""Where a segment is cut, and what its parts ask for."""

from typing import Any

import pytest

from flows.parts import Part, Where, parts, request
from schemas.config import BuildConfig
from tasks.engine.errors import ConfigError
from tasks.pipeline import CANDIDATES, SCREENING, make_stages
from tests import fakes

ROUTE = {"model": "openai/some", "provider": "here", "api_base": "http://127.0.0.1:9/v1", "family": "some"}
OUTSIDE = {"name": "mllm", "params": {"name": "Some", "routes": [ROUTE]}}
API = {"name": "api", "params": {"name": "Some", "routes": [ROUTE]}}
DIFFUSION = {"name": "diffusion", "params": {"model": "qwen-image-edit-2511"}}


def cut(segment: tuple[str, ...], **values: Any) -> list[tuple[str, str]]:
    config = BuildConfig.model_validate({"runner": "ray"} | values)
    stages = {stage.name: stage for stage in make_stages(config, {})}
    return [(part.name, str(part.where)) for part in parts(segment, config, stages)]


def test_with_threads_a_segment_stays_whole() -> None:
    verify = {"measure": {"panel": [OUTSIDE]}}
    assert cut(CANDIDATES, runner="threads", verify=verify) == [("generate-to-instruct", "here")]


def test_what_asks_nobody_goes_elsewhere_in_one_piece() -> None:
    assert cut(CANDIDATES) == [("generate-to-instruct", "cpu")]
    assert cut(SCREENING) == [("screen", "cpu")]


def test_whoever_asks_outside_stays_in_the_coordinator() -> None:
    writer = {"measure": {"describer": OUTSIDE}}
    assert cut(CANDIDATES, verify={"measure": {"panel": ["fer", OUTSIDE]}}, caption=writer, instruct=writer) == [
        ("generate", "cpu"),
        ("verify", "here"),
        ("rank", "cpu"),
        ("caption-to-instruct", "here"),
    ]
    assert cut(CANDIDATES, generate={"measure": {"editor": API}})[0] == ("generate", "here")
    assert cut(SCREENING, screen={"measure": {"label_panel": [OUTSIDE]}}) == [("screen", "here")]
    checker = {"measure": {"describer": OUTSIDE, "checker": OUTSIDE | {"params": OUTSIDE["params"] | {"name": "B"}}}}
    checker["measure"]["checker"]["params"]["routes"] = [ROUTE | {"family": "other"}]
    assert cut(CANDIDATES, instruct=checker) == [("generate-to-review", "cpu"), ("instruct", "here")]


def test_a_second_editor_outside_keeps_all_editing_here() -> None:
    top_up = [{"target": "sad", "editor": API, "called": "bought"}]
    assert cut(CANDIDATES, generate={"measure": {"top_up": top_up}})[0] == ("generate", "here")


def test_only_a_stage_that_computes_on_a_gpu_asks_for_one() -> None:
    generate = {"measure": {"editor": DIFFUSION}}
    assert cut(CANDIDATES, generate=generate) == [("generate", "gpu"), ("verify-to-instruct", "cpu")]
    on_cpu = {"measure": {"editor": DIFFUSION | {"params": DIFFUSION["params"] | {"device": "cpu"}}}}
    assert cut(CANDIDATES, generate=on_cpu) == [("generate-to-instruct", "cpu")]
    assert cut(CANDIDATES, ray={"needs": {"verify": {"gpus": 0.5}}})[1] == ("verify", "gpu")
    assert cut(CANDIDATES, generate=generate, runner="processes") == [("generate-to-instruct", "cpu")]


def test_a_part_asks_for_the_most_that_one_of_its_stages_does() -> None:
    config = fakes.config("ray.needs={rank: {cpus: 3}, verify: {memory_gb: 7}, generate: {gpus: 0.5}}")
    assert request(Part(("generate",), Where.GPU), config) == (1, 0.5, 8)
    assert request(Part(("verify", "rank"), Where.CPU), config) == (3, 0, 7)
    assert request(Part(("screen",), Where.CPU), config) == (1, 0, 1)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("ray.needs={publish: {cpus: 1}}", "ray.needs"),
        ("ray.needs={verify: {cpus: 0}}", "ray.needs.verify.cpus"),
        ("ray.address=ray://head:10001", "HOST:PORT"),
        ("runner=dask", "'threads', 'processes' or 'ray'"),
    ],
)
def test_a_wrong_value_is_named(option: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        fakes.config(option)
