"""Rules of the house that no linter knows."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("flows", "tasks", "prompts", "schemas")
FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_has_one_purpose_and_says_it(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    assert text.startswith('"""')


def test_nobody_else_owns_our_package_names() -> None:
    owners = importlib.metadata.packages_distributions()
    assert {name: owners[name] for name in ROOMS if set(owners.get(name, [])) - {"fedbench"}} == {}


def test_no_flow_file_is_named_like_something_we_import() -> None:
    # A path entrypoint puts flows/ at the front of sys.path: flows/datasets.py would replace Hugging Face's.
    known = set(sys.stdlib_module_names) | set(importlib.metadata.packages_distributions())
    assert {path.stem for path in (ROOT / "flows").glob("*.py")} & known == set()


def test_no_path_or_index_of_a_machine_is_committed() -> None:
    pattern = re.compile(r"(?<![\w.~])/(?:home|root|tmp|work)/\w+|https?://[\w.]*(?:pypi|pythonhosted|npmjs)[\w.]*")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix in {".py", ".md", ".yaml", ".toml", ".txt", ".j2", ""} and path != Path(__file__)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_no_photo_or_model_is_committed() -> None:
    allowed = {"docs/report.png"}
    suffixes = {".jpg", ".jpeg", ".png", ".webp", ".onnx", ".tflite", ".task", ".bin", ".safetensors", ".pt"}
    names = {path.relative_to(ROOT).as_posix() for path in tracked() if path.suffix.lower() in suffixes}
    assert names <= allowed


def pins(lock: str) -> dict[str, str]:
    """Name → version, of a lock that pins every package once."""
    text = (ROOT / f"requirements/{lock}.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.\-]+==[\w.+\-]+", line) for line in lines)
    named = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in (line.split("==") for line in lines)}
    assert len(named) == len(lines)
    return named


def test_the_locks_agree_and_only_one_has_torch() -> None:
    base, api, dev, model = pins("base"), pins("api"), pins("dev"), pins("torch")
    tested = base | api | dev
    assert len(tested) == len(base) + len(api) + len(dev)
    assert not base.keys() & model.keys()
    both = tested.keys() & model.keys()
    assert {name: tested[name] for name in both} == {name: model[name] for name in both}
    assert not {"torch", "torchvision", "transformers", "diffusers"} & tested.keys()
    assert {"torch", "torchvision"} < model.keys()
    ray = pins("ray")
    assert {name: (base | api | model).get(name, ray[name]) for name in ray} == ray
    assert not base.keys() & ray.keys()
