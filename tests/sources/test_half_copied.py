"""What users really have: the wrong folder, half a set, two versions in one place, a spreadsheet somebody touched.

Each gives one clear line, or rows that are counted; none is taken for something else.
"""

import io
import random
import re
import shutil
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from schemas.expressions import Expression
from schemas.outcomes import Status
from schemas.records import Source
from schemas.screening import ScreenCut, ScreenMeasure
from tasks.engine.errors import ConfigError
from tasks.engine.execute import Executor
from tasks.engine.fingerprint import sha256
from tasks.engine.images import ImageStore
from tasks.engine.shards import Shard
from tasks.engine.stage import Context
from tasks.engine.store import Store
from tasks.screen import Screen
from tasks.sources import POOLS
from tasks.sources.inspect import inspect
from tests import trees

WRITE: Final[dict[str, Callable[..., Path]]] = {
    "sfew": trees.write_sfew,
    "dfew": lambda root: trees.write_dfew(root, media=["clip_224x224_16f"]),
    "rafdb": trees.write_rafdb,
}
LAST_DFEW: Final = "xl/worksheets/sheet1.xml"


def pool(kind: str, root: Path, **params: object) -> Any:
    return POOLS.get(kind, {"root": str(root)} | params)


def listed(kind: str, root: Path, **params: object) -> dict[str, Source]:
    return {source.key.source_id: source for source in pool(kind, root, **params).list()}


def findings(kind: str, root: Path) -> dict[str, int]:
    return {finding.what: finding.count for finding in inspect(kind, str(root)).findings}


def screened(kind: str, root: Path, tmp_path: Path, **params: object) -> tuple[Counter[Status], Counter[str]]:
    """How screening lets every listed source go: statuses, and the words of unreadable ones."""
    opened = pool(kind, root, **params)
    sources = tuple(opened.list())
    stage = Screen(ScreenMeasure(), ScreenCut(), {kind: opened})
    store = Store(tmp_path / "workspace")
    context = Context(0, ImageStore(store), None, print)  # type: ignore[arg-type]
    executor = Executor(store, [stage], [Shard(0, "shard", sources)], context)
    executor.measure("screen", executor.shards[0], sources)
    (commit,) = executor.decide_run("screen", [{}])
    rows = executor.decided("screen", executor.shards[0], commit)
    assert [row.key for row in rows] == [source.key for source in sources]
    assert not commit.statuses.get(Status.FAILED)
    words = Counter(row.evidence.partition(":")[0] for row in rows if row.reason == "unreadable")
    return Counter(row.status for row in rows), words


# -- the wrong folder -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WRITE)
@pytest.mark.parametrize("other", [*WRITE, "photos", "zip", "broken zip", "file"])
def test_a_root_of_something_else_is_one_line(tmp_path: Path, kind: str, other: str) -> None:
    root = tmp_path / "root"
    if other == kind:
        return
    if other in WRITE:
        WRITE[other](root)
    elif other == "photos":
        trees.save(root / "holiday/beach.jpg", trees.face("happy", 64))
    elif other == "file":
        root.write_bytes(b"no folder")
    else:
        root.mkdir()
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as members:
            members.writestr("../../outside.png", b"zip slip")
        (root / "set.zip").write_bytes(whole.getvalue() if other == "zip" else b"PK\3\4 and then nothing")
    with pytest.raises(ConfigError) as caught:
        pool(kind, root).list()
    told = str(caught.value)
    assert str(root) in told
    assert "\n" not in told
    assert ("unzip first, fedbench never does: set.zip" in told) == ("zip" in other)
    assert not (tmp_path.parent / "outside.png").exists()


@pytest.mark.parametrize("kind", WRITE)
def test_a_folder_above_the_set_is_the_set(tmp_path: Path, kind: str) -> None:
    WRITE[kind](tmp_path / "data/unpacked")
    above, own = (listed(kind, root) for root in (tmp_path, tmp_path / "data/unpacked"))
    assert above.keys() == own.keys()
    assert [source.label for source in above.values()] == [source.label for source in own.values()]


# -- half a set -------------------------------------------------------------------------------------------------


def test_half_of_rafdb_is_counted_name_by_name(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path / "rafdb")
    originals = root / "basic/Image/original"
    (originals / "train_00001.jpg").unlink()
    (originals / "train_00002.jpg").write_bytes((originals / "train_00002.jpg").read_bytes()[:3000])
    trees.save(originals / "train_00777.jpg", trees.group())  # a photo that no label names, and that has no box
    statuses, words = screened("rafdb", root, tmp_path)
    assert statuses == {Status.KEPT: 0, Status.REJECTED: 6} | statuses
    assert sum(statuses.values()) == len(trees.RAFDB) + 1
    assert words == {"missing": 1, "truncated": 1, "no_box": 1}
    seen = findings("rafdb", root)
    assert seen["labels without files (original)"] == 1
    assert seen["files without labels (original)"] == 1


def test_half_of_dfew_is_counted_clip_by_clip(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path / "dfew", media=["clip_224x224_16f"])
    clips = root / "Clip/clip_224x224_16f"
    shutil.rmtree(clips / "00003")
    for frame in (clips / "00004").iterdir():
        frame.unlink()
    shutil.copytree(clips / "00001", clips / "00500")
    _, words = screened("dfew", root, tmp_path, frame="middle")
    assert words == {"missing": 2, "empty": 1}  # 00009 is a gap of the set itself
    assert findings("dfew", root)["labels without files (clip_224x224_16f)"] == 2
    assert findings("dfew", root)["files without labels (clip_224x224_16f)"] == 2  # 00500, and 00007 without a label
    assert "00500@middle" in listed("dfew", root, unlabelled=True, frame="middle")


def test_half_of_sfew_is_counted_picture_by_picture(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path / "sfew", labels_csv=True)
    (root / "Train/Happy/21_001100480_00000010.png").unlink()
    broken = root / "Val/Fear/Orphan_000400000_00000002.png"
    broken.write_bytes(broken.read_bytes()[:-500])
    statuses, words = screened("sfew", root, tmp_path)
    assert sum(statuses.values()) == len(trees.SFEW)
    assert words == {"missing": 1, "truncated": 1}
    assert findings("sfew", root)["labels without files (original)"] == 1


# -- two versions in one place ----------------------------------------------------------------------------------


def test_an_older_sfew_beside_the_new_one_adds_nothing(tmp_path: Path) -> None:
    root = trees.write_sfew(tmp_path)
    alone = listed("sfew", root)
    for number, (_, label, name) in enumerate(trees.SFEW[:4]):
        trees.save(root / f"SFEW_1.0/Set{1 + number % 2}/{label}/{name}.png", trees.face("happy", 200))
    assert listed("sfew", root) == alone
    assert findings("sfew", root)["pictures in no split folder, not used"] == 4


def test_both_aligned_versions_of_dfew_give_every_clip_once_and_from_one(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224", "clip_224x224_16f"])
    sources = listed("dfew", root)
    assert {source.path.split("/")[1] for source in sources.values()} == {"clip_224x224"}
    sixteen = listed("dfew", root, media="clip_224x224_16f")
    assert sources.keys() == sixteen.keys()
    assert {source.path.split("/")[1] for source in sixteen.values()} == {"clip_224x224_16f"}


def test_both_aligned_versions_of_dfew_in_one_folder_are_told(tmp_path: Path) -> None:
    root = trees.write_dfew(tmp_path, media=["clip_224x224"], frames="authors")
    other = trees.write_dfew(tmp_path / "other", media=["clip_224x224_16f"], frames="readme")
    shutil.copytree(other / "Clip/clip_224x224_16f", root / "Clip/clip_224x224", dirs_exist_ok=True)
    shutil.rmtree(other)
    seen = findings("dfew", root)
    assert seen["clips with a frame twice (two versions in one folder)"] == len(trees.DFEW) - 1
    assert listed("dfew", root).keys() == {f"{clip:05}@apex" for clip, row in trees.DFEW.items() if row[0]}


def test_no_photo_or_label_of_rafdb_compound_is_taken_for_a_basic_one(tmp_path: Path) -> None:
    root = trees.write_rafdb(tmp_path)
    alone = listed("rafdb", root)
    trees.write_rafdb(root, basic="compound", list_name="list_patition_label.txt")
    codes = "\n".join(f"{name}.jpg {number}" for number, name in enumerate([*trees.RAFDB, "train_00099"], 1))
    trees.text(root / "compound/EmoLabel/list_patition_label.txt", codes)
    trees.save(root / "compound/Image/original/train_00099.jpg", trees.group())
    assert listed("rafdb", root) == alone
    assert findings("rafdb", root)["folders of RAF-DB compound, not read"] == 1
    shutil.rmtree(root / "basic")
    with pytest.raises(ConfigError, match="no original photo of RAF-DB"):
        pool("rafdb", root).list()


# -- the spreadsheet --------------------------------------------------------------------------------------------


@pytest.fixture
def dfew(tmp_path: Path) -> Path:
    return trees.write_dfew(tmp_path / "dfew", media=["clip_224x224_16f"])


def shares(root: Path) -> dict[str, tuple[Expression | None, float | None]]:
    return {source.clip: (source.label, source.label_confidence) for source in pool("dfew", root).list()}


def test_rows_and_columns_of_the_votes_may_be_shuffled(dfew: Path) -> None:
    import openpyxl  # type: ignore[import-untyped]

    before, file = shares(dfew), dfew / "Annotation/annotation.xlsx"
    rows = [list(row) for row in openpyxl.load_workbook(file).active.values]
    for seed in range(3):
        chance = random.Random(seed)
        columns = list(range(len(rows[0])))
        chance.shuffle(columns)
        body = rows[1:]
        chance.shuffle(body)
        book = openpyxl.Workbook()
        for row in [rows[0], *body]:
            book.active.append([*(row[column] for column in columns), "a note of mine"])
        book.save(file)
        assert shares(dfew) == before
    assert None not in {share for _, share in before.values()}


def rewritten(file: Path, change: Callable[[str, bytes], bytes], **added: bytes) -> None:
    """The workbook with other members."""
    with zipfile.ZipFile(file) as members:
        parts = {name: change(name, members.read(name)) for name in members.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        for name, data in (parts | added).items():
            members.writestr(name, data)


def same(_: str, data: bytes) -> bytes:
    return data


def bomb(name: str, data: bytes) -> bytes:
    """80 MB of nothing in 80 kB."""
    return data.replace(b"<sheetData>", b"<sheetData>" + b" " * 80_000_000) if name == LAST_DFEW else data


def entities(name: str, data: bytes) -> bytes:
    """A billion laughs."""
    lines = [b'<!ENTITY a0 "ha">', *(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))]
    return b"<!DOCTYPE x [" + b"".join(lines) + b"]><x>&a11;</x>" if name == LAST_DFEW else data


def far_away(name: str, data: bytes) -> bytes:
    """One more cell, in the last row and column that a spreadsheet can have."""
    cell = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    return data.replace(b"</sheetData>", cell) if name == LAST_DFEW else data


def no_sheet(name: str, data: bytes) -> bytes:
    return re.sub(rb"<sheet .*?/>", b"", data) if name == "xl/workbook.xml" else data


@pytest.mark.parametrize(
    ("change", "added", "says"),
    [
        (bomb, {}, "larger than 64 MB"),
        (same, {"../../outside.txt": b"slip"}, "outside of it"),
        (same, {"/etc/outside": b"slip"}, "outside of it"),
        (same, {"C:\\outside": b"slip"}, "outside of it"),
        (entities, {}, ""),
        (no_sheet, {}, ""),
    ],
    ids=["bomb", "slip", "absolute", "drive", "entities", "no sheet"],
)
def test_a_hostile_spreadsheet_costs_the_votes_only(
    dfew: Path, change: Callable[[str, bytes], bytes], added: dict[str, bytes], says: str
) -> None:
    rewritten(dfew / "Annotation/annotation.xlsx", change, **added)
    tracemalloc.start()
    labels = shares(dfew)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6
    assert {share for _, share in labels.values()} == {None}
    (told,) = [row for row in inspect("dfew", str(dfew)).findings if row.what == "annotation.xlsx cannot be read"]
    assert says in told.examples[0]
    assert "\n" not in told.examples[0]


def test_a_cell_at_the_end_of_the_world_is_not_walked_to(dfew: Path) -> None:
    before = shares(dfew)
    rewritten(dfew / "Annotation/annotation.xlsx", far_away)
    assert shares(dfew) == before


# -- names ------------------------------------------------------------------------------------------------------


def test_film_names_in_any_script_are_kept_whole(tmp_path: Path) -> None:
    names = (
        "千と千尋の神隠し_000100000_00000001",
        "Amélie 2_000100000_00000001",
        "Брат_2_000200000_00000004",
        "😀_1_2",
    )
    root = tmp_path / "sfew"
    for name in names:
        trees.save(root / f"Train/Happy/{name}.png", trees.marked(trees.face("happy", 200), name))
    sources = listed("sfew", root)
    assert sources.keys() == {f"train/{name}" for name in names}
    assert {source.movie for source in sources.values()} == {"千と千尋の神隠し", "Amélie 2", "Брат_2", "😀"}
    for source in sources.values():
        loaded = pool("sfew", root).load(source)
        assert loaded.file_sha256 == sha256((root / source.path).read_bytes())
