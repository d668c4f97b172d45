"""A user's own outputs: each finds its key, and whatever does not is named."""

import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.config import BuildConfig
from schemas.expressions import Expression
from schemas.outcomes import FailureKind
from schemas.records import Key
from tasks.dataset.manifest import described
from tasks.editors import EDITORS, EditRequest
from tasks.editors.outputs_check import match
from tasks.engine.decode import encode_png
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.generate import Generate
from tests.doors import SHUT
from tests.photos import photo

SOURCE = photo("hopper")
DEFAULT = "{pool}/{source_id}/{target}"
KEYS = [
    Key("p", "one.jpg", "happy", "outputs"),
    Key("p", "one.jpg", "sad", "outputs"),
    Key("p", "klasse/Zoë Ünal 01.png", "happy", "outputs"),
    Key("p", "dots.in.name", "fear", "outputs"),
]


def png(level: int, height: int = 40, width: int = 30) -> bytes:
    pixels = np.full((height, width, 3), level, np.uint8)
    pixels[: height // 2] //= 2
    return encode_png(pixels)


def put(root: Path, name: str, data: bytes | None = None) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(png(len(name)) if data is None else data)
    return file


def ask(key: Key, **params: Any) -> Any:
    request = EditRequest(SOURCE, Expression.NEUTRAL, Expression(key.target), "", 0, key)
    (given,) = EDITORS.get("outputs", params).edit([request], SHUT)
    return given


def every(root: Path, pattern: str = DEFAULT) -> Path:
    for level, key in enumerate(KEYS):
        put(root, name_of(key, pattern), png(50 + level))
    return root


def name_of(key: Key, pattern: str = DEFAULT) -> str:
    stem = key.source_id.removesuffix(".jpg").removesuffix(".png")
    return pattern.format(pool=key.pool, source_id=key.source_id, source_stem=stem, target=key.target) + ".png"


@pytest.mark.parametrize(
    "pattern", [DEFAULT, "{source_stem}_{target}", "edits/{target}/{source_id}", "{pool}-{source_id}-{target}"]
)
def test_a_folder_by_pattern(pattern: str, tmp_path: Path) -> None:
    root = every(tmp_path, pattern)
    for level, key in enumerate(KEYS):
        assert ask(key, root=str(root), pattern=pattern)[-1, 0, 0] == 50 + level
    found = match(str(root), pattern, dict.fromkeys(KEYS))
    assert (found.clean, found.matched, found.owed) == (True, 4, 4)


@pytest.mark.parametrize(
    "rename",
    [
        lambda name: f"{name[:-4]}.JPG",
        lambda name: f"{name[:-4]}.WebP",
        str.upper,
        str.lower,
        lambda name: unicodedata.normalize("NFD", name),
    ],
)
def test_case_extension_and_spelling_do_not_matter(rename: Callable[[str], str], tmp_path: Path) -> None:
    for level, key in enumerate(KEYS):
        put(tmp_path, rename(name_of(key)), png(50 + level))
    for level, key in enumerate(KEYS):
        assert ask(key, root=str(tmp_path))[-1, 0, 0] == 50 + level


def test_names_that_differ_in_case_alone_are_told_apart_when_both_are_there(tmp_path: Path) -> None:
    for level, name in enumerate(("p/a/sad.png", "p/A/sad.png")):
        put(tmp_path, name, png(50 + level))
    assert ask(Key("p", "a", "sad"), root=str(tmp_path))[-1, 0, 0] == 50
    assert ask(Key("p", "A", "sad"), root=str(tmp_path))[-1, 0, 0] == 51
    assert "p/a/sad.png" in str(ask(Key("P", "a", "sad"), root=str(tmp_path))), "either may be meant"


def test_a_missing_a_double_and_a_broken_output_fail_by_key(tmp_path: Path) -> None:
    root = every(tmp_path)
    put(root, "p/two.jpg/sad.png")
    put(root, "p/two.jpg/sad.jpg")
    put(root, "p/torn.jpg/sad.png", png(9)[:60])
    put(root, "p/clip.jpg/sad.png", b"RIFF no picture")
    for source, words in (
        ("gone.jpg", "no output for p/gone.jpg:sad@outputs#0: no p/gone.jpg/sad.*"),
        ("two.jpg", "several outputs for p/two.jpg:sad@outputs#0: p/two.jpg/sad.jpg, p/two.jpg/sad.png"),
        ("torn.jpg", "the output for p/torn.jpg:sad@outputs#0 cannot be read: "),
        ("clip.jpg", "the output for p/clip.jpg:sad@outputs#0 cannot be read: "),
    ):
        failed = ask(Key("p", source, "sad", "outputs"), root=str(root))
        assert isinstance(failed, ItemFailed)
        assert failed.kind is FailureKind.BAD_OUTPUT
        assert str(failed).startswith(words)
        assert str(tmp_path) not in str(failed), "messages are published"
    with pytest.raises(ConfigError, match=r"several pictures: p/two\.jpg/sad\.jpg and p/two\.jpg/sad\.png"):
        EDITORS.check("outputs", {"root": str(root)})


def test_the_check_names_all_that_is_not_as_it_should_be(tmp_path: Path) -> None:
    root = every(tmp_path)
    (root / name_of(KEYS[0])).unlink()
    put(root, name_of(KEYS[1]).replace(".png", ".jpg"))
    put(root, name_of(KEYS[2]), png(9)[:60])
    put(root, "p/one.jpg/bored.png")
    put(root, "notes.txt")
    put(root, ".hidden/x.png")
    keys = dict.fromkeys([*KEYS, Key("p", "wide", "sad"), Key("p", "again", "sad")], (40, 30))
    put(root, "p/wide/sad.png", png(7, 40, 60))
    put(root, "p/again/sad.png", (root / name_of(KEYS[3])).read_bytes())
    found = match(str(root), DEFAULT, keys)
    assert not found.clean
    assert found.missing == ("no output for p/one.jpg:happy@outputs#0: no p/one.jpg/happy.*",)
    assert [words.partition(":")[0] for words in found.doubled] == ["several outputs for p/one.jpg"]
    assert found.unreadable[0].startswith("p/klasse/Zoë Ünal 01.png/happy.png: ")
    assert found.extra == ("p/one.jpg/bored.png", "p/one.jpg/sad.jpg", "p/one.jpg/sad.png")
    assert found.shared == ("p/again/sad.png = p/dots.in.name/fear.png",)
    assert found.other_shape == ("p/wide/sad.png: 60 × 40, the source is 30 × 40",)
    assert (found.owed, found.matched, found.other_size) == (6, 3, 1)


def jsonl(root: Path, rows: list[dict[str, Any]]) -> Path:
    file = root / "outputs.jsonl"
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return file


def test_a_table_of_paths(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for level, key in enumerate(KEYS):
        put(tmp_path, f"out/{level}.png", png(50 + level))
        columns = {"pool": key.pool, "source_id": key.source_id, "target": key.target}
        named = {"key": str(key) if level == 1 else f"{key.source()}:{key.target}"}
        rows.append((columns if level == 0 else named) | {"path": f"out/{level}.png", "note": "ignored"})
    table = str(jsonl(tmp_path, rows))
    for level, key in enumerate(KEYS):
        assert ask(key, root=table)[-1, 0, 0] == 50 + level
        assert ask(key._replace(attempt=3), root=table)[-1, 0, 0] == 50 + level, "the table knows no attempts"
    assert match(table, DEFAULT, dict.fromkeys(KEYS)).clean
    EDITORS.check("outputs", {"root": table})
    found = match(table, DEFAULT, dict.fromkeys([*KEYS[1:], Key("p", "new", "sad")]))
    assert found.extra == ("row 1",)
    assert found.missing == ("no output for p/new:sad@#0: no row of it in outputs.jsonl",)


@pytest.mark.parametrize("struct", [True, False])
def test_a_table_of_bytes(struct: bool, tmp_path: Path) -> None:
    pictures: list[Any] = [png(50 + level) for level in range(len(KEYS))]
    if struct:
        pictures = [{"bytes": data, "path": "x.png"} for data in pictures]
    columns = {name: [getattr(key, name) for key in KEYS] for name in ("pool", "source_id", "target", "attempt")}
    pq.write_table(pa.table(columns | {"image": pictures}), tmp_path / "o.parquet", row_group_size=3)
    table = str(tmp_path / "o.parquet")
    for level, key in enumerate(KEYS):
        assert ask(key, root=table)[-1, 0, 0] == 50 + level
    assert isinstance(ask(KEYS[0]._replace(attempt=1), root=table), ItemFailed)
    assert match(table, DEFAULT, dict.fromkeys(KEYS)).clean


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"key": "p/a:sad", "path": "x"}, {"key": "p/a:sad@m#1", "path": "y"}], r"p/a:sad#0 \(row 1, row 2\)"),
        ([{"pool": "p", "source_id": "a", "target": "bored", "path": "x"}], "row 1: no key"),
        ([{"path": "x"}], "row 1: no key"),
        ([["a"]], "row 1 is no JSON object"),
        ([{"key": "p/a:sad", "path": "\x0c\u2028"}, ["a"]], "row 2 is no JSON object"),
    ],
)
def test_a_wrong_table_is_one_line(rows: list[Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        EDITORS.check("outputs", {"root": str(jsonl(tmp_path, rows))})
    assert "\n" not in str(caught.value)


def test_a_wrong_folder_or_pattern_is_one_line(tmp_path: Path) -> None:
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 no")
    deep, half = tmp_path / "deep.jsonl", tmp_path / "half.jsonl"
    deep.write_text("[" * 100_000)
    half.write_text('{"key": "p/a:sad", "path": "\\ud800"}')
    for params, words in (
        ({}, "nothing says"),
        ({"root": str(tmp_path / "gone")}, "does not exist"),
        ({"root": "x" * 400}, "does not exist"),
        ({"root": str(tmp_path / "empty")}, "no picture"),
        ({"root": str(torn)}, "torn.parquet"),
        ({"root": str(every(tmp_path / "full")), "pattern": "{source_id}"}, "does not tell outputs apart"),
        ({"root": str(tmp_path / "full"), "pattern": "{target}/{name}"}, "does not tell outputs apart"),
        ({"root": str(tmp_path / "full"), "pattern": "{target"}, "pattern"),
        ({"root": str(tmp_path / "full"), "pattern": "{target}{source_id:{x}}"}, "pattern"),
        ({"root": str(tmp_path / "full"), "pattern": "{target}{source_id:d}"}, "pattern"),
        ({"root": str(tmp_path / "full"), "pattern": "{target}{source_id!z}"}, "pattern"),
        ({"root": str(deep)}, "deep.jsonl: "),
        ({"root": str(half)}, "half.jsonl: "),
    ):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(ConfigError, match=words):
            EDITORS.check("outputs", params)


def test_the_identity_moves_with_the_pictures_and_not_with_their_place(tmp_path: Path) -> None:
    first, second = every(tmp_path / "a"), every(tmp_path / "b")

    def identity(root: Path) -> Any:
        return EDITORS.identity("outputs", {"root": str(root)})

    before = identity(first)
    assert identity(second) == before
    os.utime(first / name_of(KEYS[0]), (1, 1))
    assert identity(first) == before, "a time is no content"
    put(first, name_of(KEYS[0]), png(200))
    assert identity(first) != before
    put(second, "p/more/sad.png")
    assert identity(second) != before


def test_no_path_of_this_machine_is_published(tmp_path: Path) -> None:
    params = {"root": str(every(tmp_path)), "name": "my-model"}
    editor = {"name": "outputs", "params": params}
    config = BuildConfig.model_validate(
        {"generate": {"measure": {"editor": editor, "top_up": [{"target": "sad", "editor": editor, "called": "b"}]}}}
    )
    assert str(tmp_path) not in json.dumps(described(config))
    measure = config.generate.measure
    groups = Generate(measure, config.generate.cut).groups()
    assert str(tmp_path) not in json.dumps(groups)
    assert "my-model" in json.dumps(groups)
