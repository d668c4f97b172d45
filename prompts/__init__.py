"""Every text that steers a model or a person: one versioned template a file."""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Final

import jinja2

_FOLDER = Path(__file__).parent
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER), undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True
)

# What a prompt is shown with when nothing is at hand: `fedbench prompts show`.
EXAMPLES: Final[dict[str, dict[str, str]]] = {
    "simple_instruction": {"source": "neutral", "target": "happy"},
    "back_check": {
        "instruction": "Pull both mouth corners up clearly and narrow the eyes slightly. Keep identity, hair, head "
        "pose and background unchanged.",
        "count": "3",
        "letters": "A, B, C",
    },
    "dense_instruction": {"mistaken": ""},
    "review_face": {"expression": "fear"},
    "review_guide": {name: f"{name}.svg" for name in ("fear", "surprise", "anger", "disgust")},
    "review_screen": {"single": ""},
    "repair": {"problem": "it names two expressions", "form": '{"signs": "...", "expression": "the word"}'},
    "sc": {"instruction": "change the expression from neutral to happy"},
    "sc_swapped": {"instruction": "change the expression from neutral to happy"},
}


def names() -> list[str]:
    """The prompts there are."""
    return sorted(path.stem for path in _FOLDER.glob("*.j2"))


@cache
def sha256_of(name: str) -> str:
    """Hash of a prompt's file: a changed wording is a changed prompt."""
    return hashlib.sha256((_FOLDER / f"{name}.j2").read_bytes()).hexdigest()


@cache
def version_of(name: str) -> int:
    """The number in a prompt's first line, for people."""
    header = re.match(r"\{# version: (\d+) #\}", (_FOLDER / f"{name}.j2").read_text(encoding="utf-8"))
    assert header, f"prompts/{name}.j2 does not begin with its version"
    return int(header[1])


def render(name: str, **values: str) -> str:
    """The prompt with its values; a missing value is an error."""
    return _ENVIRONMENT.get_template(f"{name}.j2").render(**values).strip()


def form(text: str) -> str:
    """The form of the answer that a rendered prompt asks for: its last line."""
    return text.rsplit("\n", 1)[-1]


def example(name: str) -> str:
    """The prompt with example values."""
    return render(name, **EXAMPLES.get(name, {}))
