"""Every text that steers a model or a person: one versioned template a file."""

import hashlib
from functools import cache
from pathlib import Path

import jinja2

_FOLDER = Path(__file__).parent
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER), undefined=jinja2.StrictUndefined, autoescape=False
)


def names() -> list[str]:
    """The prompts there are."""
    return sorted(path.stem for path in _FOLDER.glob("*.j2"))


@cache
def sha256_of(name: str) -> str:
    """Hash of a prompt's file: a changed wording is a changed prompt."""
    return hashlib.sha256((_FOLDER / f"{name}.j2").read_bytes()).hexdigest()


def render(name: str, **values: str) -> str:
    """The prompt with its values; a missing value is an error."""
    return _ENVIRONMENT.get_template(f"{name}.j2").render(**values).strip()
