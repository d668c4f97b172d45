"""Folders as pools: what is listed, what is refused, what a wrong manifest is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.expressions import Expression
from schemas.records import Source
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.sources.folder import FolderPool, escape, unescape
from tests import nasty


def pool(root: Path, **params: object) -> FolderPool:
    return FolderPool(FolderPool.Params.model_validate({"root": str(root)} | params))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for name in ("Angry/a.jpg", "Happy/deep/b.PNG", "Happy/Sad/c.webp", "other/d.jpeg", "e.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(nasty.photo_bytes(*nasty.FACE))
    return root


def test_the_nearest_folder_that_names_an_expression_is_the_label(photos: Path) -> None:
    labels = {source.key.source_id: source.label for source in pool(photos).list()}
    assert labels == {
        "Angry/a.jpg": Expression.ANGER,
        "Happy/deep/b.PNG": Expression.HAPPY,
        "Happy/Sad/c.webp": Expression.SAD,
        "other/d.jpeg": None,
        "e.jpg": None,
    }
    assert [source.key.source_id for source in pool(photos, recursive=False).list()] == ["e.jpg"]


def test_loaded_bytes_are_hashed_as_they_lie(photos: Path) -> None:
    folder = pool(photos)
    loaded = folder.load(next(iter(folder.list())))
    assert loaded.pixels.shape == (512, 512, 3)
    assert len(loaded.file_sha256) == 64


def test_nasty_files_are_all_listed_and_each_meets_its_fate(tmp_path: Path) -> None:
    root = tmp_path / "nasty"
    root.mkdir()
    fates = nasty.write_nasty(root)
    folder = pool(root)
    sources = {source.key.source_id: source for source in folder.list()}
    assert sources.keys() == {escape(name) for name in fates}
    for name, fate in fates.items():
        source = Source.model_validate_json(sources[escape(name)].model_dump_json())
        if fate.door:
            with pytest.raises(UnreadableImage) as caught:
                folder.load(source)
            assert caught.value.reason == fate.door, name
            str(caught.value).encode()
        else:
            assert folder.load(source).pixels.shape[2] == 3


def test_no_pipe_is_ever_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    code = (
        "from tasks.sources.folder import FolderPool as F\n"
        f"p = F(F.Params(root={str(tmp_path)!r}))\n"
        "try: p.load(next(iter(p.list())))\n"
        "except Exception as e: print(e.reason)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "not_a_file"


def test_permission_is_a_reason(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    folder = pool(photos)
    source = next(iter(folder.list()))
    monkeypatch.setattr(Path, "read_bytes", deny)
    with pytest.raises(UnreadableImage) as caught:
        folder.load(source)
    assert caught.value.reason == "unreadable"


@pytest.mark.parametrize("make", ["absent", "file", "empty"])
def test_a_useless_root_is_a_config_error(tmp_path: Path, make: str) -> None:
    root = tmp_path / "root"
    if make == "file":
        root.write_text("x")
    elif make == "empty":
        root.mkdir()
    with pytest.raises(ConfigError, match=str(root)):
        pool(root).list()


ROWS = [
    {"path": "Angry/a.jpg", "label": "Happiness", "id": "one", "confidence": 0.9, "clip": "k7", "licence": "CC0"},
    {"path": "absent.jpg", "label": None, "id": None, "confidence": None, "clip": None, "licence": None},
]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_manifest_says_what_the_sources_are(photos: Path, tmp_path: Path, kind: str) -> None:
    manifest = tmp_path / f"list.{kind}"
    if kind == "csv":
        manifest.write_bytes(
            b"\xef\xbb\xbfpath,label,id,confidence,clip,licence\r\n"
            b"Angry/a.jpg,Happiness,one,0.9,k7,CC0\r\nabsent.jpg,,,,,\r\n"
        )
    elif kind == "jsonl":
        manifest.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), manifest)
    folder = pool(photos, manifest=str(manifest), pool="mine", licence="house rules")
    absent, one = folder.list()
    assert (one.key.pool, one.key.source_id, one.path) == ("mine", "one", "Angry/a.jpg")
    assert (one.label, one.label_confidence, one.clip, one.licence) == (Expression.HAPPY, 0.9, "k7", "CC0")
    assert (absent.key.source_id, absent.label, absent.label_confidence) == ("absent.jpg", None, None)
    assert absent.licence == "house rules"
    assert folder.load(one).pixels.shape == (512, 512, 3)
    with pytest.raises(UnreadableImage) as caught:
        folder.load(absent)
    assert caught.value.reason == "missing"


def test_without_a_label_column_the_folders_label(photos: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "list.csv"
    manifest.write_text("path,identity\nAngry/a.jpg,p1\n")
    (source,) = pool(photos, manifest=str(manifest)).list()
    assert (source.label, source.identity) == (Expression.ANGER, "p1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("path,label\na.jpg,happy\nb.jpg,hapy\n", ["row 3", "'label'", "hapy", "surprise"]),
        ("path,label\na.jpg,3\n", ["row 2", "'label'"]),
        ("path,confidence\na.jpg,1.5\n", ["row 2", "'confidence'", "0 to 1"]),
        ("path,confidence\na.jpg,nan\n", ["row 2", "'confidence'"]),
        ("path\n../a.jpg\n", ["row 2", "'path'"]),
        ("path\n/etc/a.jpg\n", ["row 2", "'path'"]),
        ("path,id\n,x\n", ["row 2", "'path'", "empty"]),
        ("path\na.jpg\n./a.jpg\n", ["row 3", "'path'", "row 2"]),
        ("path,id\na.jpg,x\nb.jpg,x\n", ["row 3", "'id'", "row 2"]),
        ("file\na.jpg\n", ["row 1", "'path'"]),
        ("path\na.jpg,b\n", ["row 2", "quote"]),
        ("", ["'path'"]),
    ],
)
def test_a_wrong_manifest_is_told_where_and_how(photos: Path, tmp_path: Path, text: str, says: list[str]) -> None:
    manifest = tmp_path / "list.csv"
    manifest.write_text(text)
    with pytest.raises(ConfigError) as caught:
        list(pool(photos, manifest=str(manifest)).list())
    for word in ["list.csv", *says]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("absent.csv", None),
        ("list.txt", b"path\n"),
        ("latin.csv", b"path\ncaf\xe9.jpg\n"),
        ("list.jsonl", b'{"path": "a.jpg"}\n["a"]\n'),
        ("half.jsonl", b'{"path": "a.jpg"}\n{"path"\n'),
        ("surrogate.jsonl", b'{"path": "\\ud800.jpg"}\n'),
        ("list.parquet", b"no parquet"),
        ("header.csv", b"path,label\n"),
    ],
)
def test_an_unreadable_manifest_is_a_config_error(photos: Path, tmp_path: Path, name: str, data: bytes | None) -> None:
    manifest = tmp_path / name
    if data is not None:
        manifest.write_bytes(data)
    with pytest.raises(ConfigError, match=name):
        list(pool(photos, manifest=str(manifest)).list())


@given(st.binary(min_size=1, max_size=30).filter(lambda raw: b"\0" not in raw))
def test_any_file_name_is_escaped_to_unicode_and_found_again(raw: bytes) -> None:
    name = os.fsdecode(raw)
    escape(name).encode()
    assert unescape(escape(name)) == name
