"""The table of open editors."""

import re
from pathlib import Path

from tasks.editors.table import row, shipped


def test_the_editors_of_the_paper_are_there() -> None:
    here = {each.name for each in shipped() if each.runs == "here"}
    assert here >= {
        "qwen-image-edit",
        "qwen-image-edit-2509",
        "qwen-image-edit-2511",
        "flux-kontext",
        "flux-kontext-fed",
        "flux-fill",
        "flux2-dev",
        "flux2-klein-4b",
        "instruct-pix2pix",
        "longcat-image-edit",
        "uniworld-v2-kontext",
    }
    served = {each.name for each in shipped() if each.runs == "server"}
    assert served == {"omnigen2", "step1x-edit", "bagel", "dreamomni2"}


def test_every_row_says_what_is_needed_to_run_it() -> None:
    for each in shipped():
        assert each.licence, each.name
        assert re.fullmatch("[0-9a-f]{40}|", each.revision), each.name
        assert bool(each.pipeline) == (each.runs == "here"), each.name
        assert (each.steps or 0) > 0 or each.runs == "server", each.name
        assert not {"prompt", "generator", "output_type", "height", "width", "latents"} & each.call.keys(), each.name
        assert "\n" not in each.notes, each.name


def test_a_row_is_found_by_its_name_alone() -> None:
    assert (found := row("qwen-image-edit-2511")) is not None
    assert found.repository == "Qwen/Qwen-Image-Edit-2511"
    assert (found.steps, found.guidance) == (40, 4.0)
    assert row("Qwen/Qwen-Image-Edit-2511") is None


def test_the_docs_name_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs/editors.md").read_text()
    assert [each.name for each in shipped() if f"`{each.name}`" not in page] == []
