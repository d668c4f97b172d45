"""`fedbench leakage`: what it prints, and an exit code that says clean only where everything was checked."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from flows.cli import app
from tests import photos
from tests.commands import one_line


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Folders of photos: `clean` shares nothing with `a`, `leaks` a photo, `landscape` has a picture without a face."""
    photos_of = {
        "a": ["hopper", "smiling"],
        "clean": ["happy"],
        "leaks": ["happy", "hopper"],
        "landscape": ["landscape"],
    }
    for folder, names in photos_of.items():
        (tmp_path / folder).mkdir()
        for name in names:
            shutil.copy(photos.file_of(name), tmp_path / folder)
    return tmp_path


def leakage(a: Path | str, b: Path | str, *options: str) -> Result:
    return CliRunner().invoke(app, ["leakage", str(a), str(b), *options])


def test_exit_0_is_checked_and_clean_3_leaks_7_not_checked(folders: Path) -> None:
    clean = leakage(folders / "a", folders / "clean")
    assert clean.exit_code == 0, clean.stderr
    assert "every rule was checked" in " ".join(clean.stdout.split())
    leaks = leakage(folders / "a", folders / "leaks")
    assert leaks.exit_code == 3
    assert "1 of 2 sources of B leak" in leaks.stdout
    assert "leak_duplicate" in leaks.stdout
    blind = leakage(folders / "a", folders / "landscape")
    assert blind.exit_code == 7
    assert "identity not checked for 1 of 1 sources of B: no face found 1" in blind.stdout


def test_json_says_every_pair_rule_and_number(folders: Path) -> None:
    result = leakage(folders / "a", folders / "leaks", "--json", "--threshold", "0.9")
    assert result.exit_code == 3
    said = json.loads(result.stdout)
    assert said["must_go"] == ["folder/grace_hopper.jpg"]
    assert {leak["rule"]: leak["number"] for leak in said["leaks"]} == {
        "pixels": 0,
        "picture": 0,
        "face": 0,
        "identity": 1,
    }
    assert {leak["a"] for leak in said["leaks"]} == {"folder/grace_hopper.jpg"}
    assert (said["ok"], said["threshold"], said["sources"], said["not_checked"]) == (False, 0.9, {"a": 2, "b": 2}, [])


@pytest.mark.parametrize(
    ("b", "options", "words"),
    [
        ("nowhere", [], "B: '.*nowhere' does not exist"),
        ("clean", ["--identity", "facenet"], "unknown identity model 'facenet'"),
        ("clean", ["--threshold", "7"], "leak_identity: Input should be less than or equal to 1"),
    ],
)
def test_mistakes_are_one_line(folders: Path, b: str, options: list[str], words: str) -> None:
    result = leakage(folders / "a", folders / b, *options)
    assert result.exit_code == 2
    message, hint = one_line(result.stderr)
    assert re.search(words, message)
    assert hint
