"""What every prompt keeps: a version, its values, the form of its answer; and a vote's prompt betrays no target."""

import json
import re
from pathlib import Path

import jinja2
import pytest
from typer.testing import CliRunner

import prompts
from flows.cli import app
from schemas.answers import FORMS
from schemas.expressions import POLARITY, Polarity

FOLDER = Path(prompts.__file__).parent


@pytest.mark.parametrize("name", prompts.names())
def test_a_prompt_has_a_version_and_needs_each_of_its_values(name: str) -> None:
    assert prompts.version_of(name) >= 1
    text = prompts.example(name)
    assert text.strip() == text != ""
    assert "{#" not in text
    assert max(map(len, text.splitlines())) <= 200
    for value in prompts.EXAMPLES.get(name, {}):
        given = {key: word for key, word in prompts.EXAMPLES[name].items() if key != value}
        with pytest.raises(jinja2.UndefinedError):
            prompts.render(name, **given)


@pytest.mark.parametrize("name", FORMS)
def test_the_last_line_is_the_form_of_the_answer(name: str) -> None:
    last = prompts.example(name).splitlines()[-1]
    assert list(json.loads(last)) == list(FORMS[name].model_fields)
    schema = FORMS[name].model_json_schema()
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(FORMS[name].model_fields), "providers that hold to a schema want all required"


def test_votes_are_asked_for_without_any_value() -> None:
    for name in ("vote_fine", "vote_coarse"):
        source = (FOLDER / f"{name}.j2").read_text()
        assert "{{" not in source
        assert "{%" not in source
        assert "cannot tell" in source
        assert not re.search(r"\b(edit|edited|target|generated|synthetic|before|after|should)\b", source, re.IGNORECASE)


def test_the_classes_of_a_vote_are_ours_in_alphabetical_order() -> None:
    fine = re.findall(r"^- (\w+):", prompts.example("vote_fine"), re.MULTILINE)
    assert fine == sorted(map(str, POLARITY))
    coarse = dict(re.findall(r"^- (\w+): (.*)", prompts.example("vote_coarse"), re.MULTILINE))
    assert list(coarse) == sorted(map(str, Polarity))
    said = {"sad": "sad", "anger": "angry", "fear": "afraid", "disgust": "disgusted", "surprise": "surprised"}
    for expression, word in (said | {"happy": "happy"}).items():
        (side,) = [side for side, words in coarse.items() if word in words.split(";")[0]]
        assert side == POLARITY[expression]


def test_a_dense_instruction_is_asked_for_what_moves_and_what_stays() -> None:
    text = prompts.example("dense_instruction")
    for part in ("brows", "eyes", "cheeks", "nose", "mouth", "jaw", "identity", "hair", "pose", "background"):
        assert part in text


def test_the_command_lists_and_shows_them() -> None:
    def said(*words: str) -> str:
        result = CliRunner().invoke(app, ["prompts", *words])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    rows = json.loads(said("list", "--json"))
    assert [row["name"] for row in rows] == prompts.names()
    table = said("list")
    for row in rows:
        assert row["sha256"][:12] in table
        shown = said("show", row["name"])
        assert prompts.example(row["name"]) in shown
        assert row["sha256"] in shown
        assert json.loads(said("show", row["name"], "--json"))["text"] == prompts.example(row["name"])


def test_an_unknown_prompt_is_one_line() -> None:
    result = CliRunner().invoke(app, ["prompts", "show", "vote"])
    assert result.exit_code == 2
    assert "unknown prompt 'vote'" in result.stderr
    assert "vote_fine" in result.stderr
