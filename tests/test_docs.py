"""Every `fedbench` line of the docs is a command that exists, with options that it has, and configs that are valid."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from pydantic import TypeAdapter

from flows.cli import app
from flows.options import load_config, read_yaml
from flows.score_options import score_config
from schemas.routes import Route

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def lines(page: Path) -> list[str]:
    """The lines of shell blocks that call fedbench."""
    shell = "\n".join(blocks(page, "bash")).replace("\\\n", " ")
    return [line for line in shell.splitlines() if line.startswith("fedbench ")]


COMMANDS = [(page.name, line) for page in PAGES for line in lines(page)]
CONFIGS = [(page.name, block) for page in PAGES for block in blocks(page, "yaml")]


def test_there_are_some() -> None:
    assert len(COMMANDS) > 30
    assert len(CONFIGS) > 2


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=[f"{page}: {line[:60]}" for page, line in COMMANDS])
def test_the_command_exists(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: Any = typer.main.get_command(app)
    while isinstance(command, click.Group):
        assert words[0] in command.commands, f"{page}: no verb {words[0]}"
        command = command.commands[words.pop(0)]
    context = command.make_context("fedbench", words)  # parses; runs nothing
    for option in context.params.get("sets") or ():
        if not option.startswith("pools"):
            load_config("demo", None, ["generate.measure.top_up=[{target: sad}]", option])


@pytest.mark.parametrize(("page", "text"), CONFIGS, ids=[f"{page}: {text[:40]}" for page, text in CONFIGS])
def test_the_config_is_one(page: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    values = read_yaml(tmp_path / "config.yaml")
    assert values, page
    if values.keys() == {"routes"}:  # what an adapter that asks outside is given
        TypeAdapter(list[Route]).validate_python(values["routes"])
    elif "editors" in values:
        score_config(tmp_path, file=tmp_path / "config.yaml")
    else:
        load_config(None, tmp_path / "config.yaml")
