"""Nothing that is read can run: no loader of pickles, no evaluated text, no picture with more in it than pixels."""

import ast
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import fakes

ROOT = Path(__file__).parents[2]
FILES = [
    *(
        path
        for room in ("flows", "tasks", "schemas", "prompts", "benchmarks", "infra")
        for path in (ROOT / room).rglob("*.py")
    ),
    *(ROOT / "requirements").glob("*.py"),
]
# Calls that may run what they read, and what makes each harmless (keyword → value), if anything does.
LOADERS: dict[str, dict[str, object] | None] = {
    "pickle.load": None,
    "pickle.loads": None,
    "joblib.load": None,
    "dill.load": None,
    "marshal.loads": None,
    "shelve.open": None,
    "torch.load": {"weights_only": True},
    "pd.read_pickle": None,
    "yaml.unsafe_load": None,
    "yaml.full_load": None,
    "eval": None,
    "exec": None,
    "os.system": None,
    "torch.hub.load": None,
    "subprocess.getoutput": None,
}
# Packages whose loaders take safetensors only where they are told to.
FROM_PRETRAINED = "from_pretrained"
# Files with an unpickler of their own that knows arrays alone, and a YAML loader derived from the safe one.
UNPICKLERS = {"tasks/distances/lpips.py"}
YAML_LOADERS = {"flows/options.py"}


def name_of(node: ast.expr) -> str:
    return ast.unparse(node)


def calls(path: Path) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))


def keywords(call: ast.Call) -> dict[str, object]:
    return {one.arg: one.value.value for one in call.keywords if one.arg and isinstance(one.value, ast.Constant)}


def faults(path: Path) -> Iterator[str]:
    place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    for call in calls(path):
        name = name_of(call.func)
        if name in LOADERS:
            wanted = LOADERS[name]
            if wanted is None or not wanted.items() <= keywords(call).items():
                yield f"{place}:{call.lineno}: {name}"
        if name == "yaml.load" and place not in YAML_LOADERS:
            yield f"{place}:{call.lineno}: yaml.load"
        if any(keywords(call).get(word) is True for word in ("shell", "trust_remote_code", "allow_pickle")):
            yield f"{place}:{call.lineno}: {name}"
    for node in ast.walk(ast.parse(path.read_text())):
        bases = [name_of(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
        if place not in UNPICKLERS and any(base.endswith("Unpickler") for base in bases):
            yield f"{place}: an unpickler"


def test_no_loader_of_ours_can_run_what_it_reads() -> None:
    assert len(FILES) > 300
    assert [fault for path in FILES for fault in faults(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "pickle.load(f)",
        "torch.load(p)",
        "torch.load(p, weights_only=False)",
        "np.load(p, allow_pickle=True)",
        "yaml.load(t, yaml.Loader)",
        "eval(x)",
        "subprocess.run(x, shell=True)",
        "AutoModel.from_pretrained(x, trust_remote_code=True)",
        "class U(pickle.Unpickler): pass",
    ],
)
def test_the_search_finds_them(tmp_path: Path, line: str) -> None:
    (tmp_path / "x.py").write_text(line)
    assert list(faults(tmp_path / "x.py"))


def test_models_of_the_hub_are_safetensors_and_run_no_code_of_theirs() -> None:
    """Options are spelled out in dictionaries there: each file that loads one says both."""
    found = [path for path in FILES if FROM_PRETRAINED in path.read_text() and path.is_relative_to(ROOT / "tasks")]
    assert found
    for path in found:
        text = path.read_text()
        assert "local_files_only" in text, path
        assert "use_safetensors" in text or "Tokenizer" in text or "Processor" in text, path
        assert not re.search(r"trust_remote_code[\"']?\s*[=:]\s*True", text), path


def chunks(data: bytes) -> list[bytes]:
    """The names of a PNG's chunks; every byte of the file belongs to one."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    names, place = [], 8
    while place < len(data):
        length, name = struct.unpack(">I4s", data[place : place + 8])
        names.append(name)
        place += 12 + length
    assert place == len(data), "nothing behind the end"
    return names


def test_published_pictures_are_pixels_and_nothing_else(tmp_path: Path) -> None:
    """No EXIF, no text, no time, no profile; whatever the source files carried."""
    fakes.install()
    built = fakes.build(tmp_path / "w", fakes.config(sources=12))
    assert built.published
    pictures = [
        cell["bytes"]
        for path in built.published.folder.glob("*/*.parquet")
        for row in pq.read_table(path).to_pylist()
        for cell in (row.get("source"), row.get("ground_truth"), row.get("image"))
        if cell
    ]
    pictures += [path.read_bytes() for path in (tmp_path / "w/images").rglob("*.png")]
    assert len(pictures) > 50
    assert {tuple(chunks(data)) for data in pictures} == {(b"IHDR", b"IDAT", b"IEND")}
