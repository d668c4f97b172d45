"""The examples in CONTRIBUTING.md are real: they run, and pass what every adapter must pass."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention
from tasks.editors import EditRequest
from tasks.faces.geometry import face_mask
from tests.doors import SHUT
from tests.photos import photo, picture

ROOT = Path(__file__).parents[1]


def example(title: str) -> ModuleType:
    """The code block below a heading, as a module."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    match = re.search(rf"## {title}.*?```python\n(.*?)```", text, re.DOTALL)
    assert match, title
    module = ModuleType(title)
    exec(compile(match[1], f"CONTRIBUTING.md: {title}", "exec"), module.__dict__)
    return module


def test_the_voter_votes() -> None:
    module: Any = example("A voter in 20 lines")
    voter = module.SmileVoter(module.SmileVoter.Params())
    smiling, stern = photo("astronaut"), photo("hopper")
    assert voter.vote(smiling, SHUT).answer is Polarity.POSITIVE
    assert voter.vote(stern, SHUT).abstained is Abstention.CANNOT_TELL
    assert voter.vote(picture(np.zeros((64, 64, 3), np.uint8)), SHUT).abstained is Abstention.NO_FACE


def test_the_editor_edits_only_the_face() -> None:
    module: Any = example("An editor in 20 lines")
    editor = module.BlurEditor(module.BlurEditor.Params())
    source = photo("astronaut")
    requests = [EditRequest(source, Expression.HAPPY, target, "", 0) for target in (Expression.SAD, Expression.NEUTRAL)]
    edits = editor.edit(requests, SHUT)
    (face,) = module.ANALYZERS.get("mediapipe", {}).analyze(source)
    inside = face_mask(source.pixels.shape, face)
    assert len(edits) == 2
    assert (edits[0][~inside] == source.pixels[~inside]).all()
    assert (edits[0][inside] != source.pixels[inside]).any()


@pytest.mark.parametrize("title", ["A voter in 20 lines", "An editor in 20 lines"])
def test_the_promise_of_20_lines(title: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    code = re.search(rf"## {title}.*?```python\n(.*?)```", text, re.DOTALL)
    assert code
    body = code[1][code[1].index("class ") :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20
