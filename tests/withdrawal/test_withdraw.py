"""A withdrawal leaves nothing of a source but its tombstone, and all of the others; killed anywhere, it is finished."""

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from schemas.outcomes import Reason
from schemas.published import PICTURES
from schemas.records import Key
from schemas.tombstones import Unfinished
from tasks.dataset.hydrate import hydrate
from tasks.dataset.read import data_set
from tasks.dataset.release import packed, released
from tasks.dataset.texts import recover
from tasks.dataset.verify import verify
from tasks.dataset.withdrawn import clean, look, withdrawn_in
from tasks.engine.calls import Calls, CallSettings, Reply, Request
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.images import Picture
from tasks.engine.store import Store
from tasks.engine.tombstones import FILE, read_withdrawals
from tasks.leakage.eye import Eye
from tasks.leakage.sides import portraits
from tasks.report.html import write_report
from tasks.withdrawal.withdraw import Wish, withdraw
from tests import fakes
from tests.test_kill import FORKS, Points

SETTINGS: Final = fakes.config(sources=20)
DAY: Final = "2026-11-30"
KILLS: Final = 10


@dataclass(frozen=True)
class Filled:
    """A workspace with everything a workspace can hold, and what must not be found in it any more.

    Attributes:
        root: The workspace; no test may change it.
        key: A published source.
        secrets: Bytes that are its own: hashes, vectors, texts, pictures, where it lies.
        calls: Ledger sums before.
    """

    root: Path
    key: Key
    secrets: dict[str, bytes]
    calls: list[Any]


def telling(name: str) -> Any:
    """A describer's method whose text says which picture it is about."""
    plain = getattr(fakes.FakeDescriber, name)

    def told(self: Any, *given: Any) -> str:
        pictures = [one for one in given if isinstance(one, Picture)]
        return f"{plain(self, *given)}, told of {pictures[-1].digest[:16]}"

    return told


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    root = tmp_path_factory.mktemp("filled") / "workspace"
    fakes.install()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("caption", "instruct"):
            patch.setattr(fakes.FakeDescriber, name, telling(name))
        made = fakes.build(root, SETTINGS)
    assert made.published is not None
    write_report(made.run, made.done, "reports/fakes")
    for kind, pictures in (("full", PICTURES), ("index", ())):
        released(made.published.folder, root / f"releases/fakes/v1/{kind}", pictures)
    packed(made.published.folder, root / "releases/fakes/v1/pack", PICTURES)
    portraits(str(made.published.folder), Eye.of(SETTINGS.screen.measure), memory=made.run.store, threads=1)
    row = pq.read_table(made.published.folder / "data").to_pylist()[0]
    key = Key(row["pool"], row["source_id"])
    (root / "crashes.log").write_text(f"verify crashed on {key}:\n...\n")
    calls = Calls(root / "answers.sqlite", CallSettings(), "fakes")
    for number, picture in enumerate((row["source_sha256"], "0" * 64, row["ground_truth_sha256"])):
        reply = Reply(f"the person smiles, says {picture[:20]} " * 300, cost=0.25)
        calls.ask(Request("voter", "acme", "m", {"n": number}, "p", (picture,)), partial(lambda one: one, reply))
    totals = calls.totals()
    calls.close()
    secrets = {f"hash {digest}": digest.encode() for digest in own_digests(root, key)}
    secrets |= {f"picture {digest}": data[-80:] for digest, data in pictures_of(root, own_digests(root, key)).items()}
    secrets |= {f"text {text}": text.encode() for text in (row["caption"], row["dense_instruction"])}
    secrets |= {f"vector {place}": vector for place, vector in enumerate(vectors_of(root, key))}
    secrets |= {"path": f"{key.source_id}.png".encode(), "raw": row["source_sha256"][:20].encode()}
    assert len(secrets) > 20
    assert any(name.startswith("vector") for name in secrets)
    return Filled(root, key, secrets, totals)


def part_rows(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(root.glob("stages/*/*/part-*.parquet")):
        yield from pq.ParquetFile(path).read().to_pylist()


def of(row: dict[str, Any]) -> Key:
    return Key(row["key"]["pool"], row["key"]["source_id"])


def own_digests(root: Path, key: Key) -> set[str]:
    """Hashes in the source's rows and in nobody else's."""
    mine: set[str] = set()
    others: set[str] = set()
    for row in part_rows(root):
        value = row["value"] or {}
        names = ("image", "source_image", "pixel_sha256", "file_sha256")
        found = {str(value[name]) for name in names if value.get(name)}
        (mine if of(row) == key else others).update(found)
    return mine - others


def pictures_of(root: Path, digests: set[str]) -> dict[str, bytes]:
    paths = {digest: root / f"images/{digest[:2]}/{digest}.png" for digest in digests}
    return {digest: path.read_bytes() for digest, path in paths.items() if path.exists()}


def vectors_of(root: Path, key: Key) -> list[bytes]:
    return [
        row["value"]["embedding"] for row in part_rows(root) if of(row) == key and (row["value"] or {}).get("embedding")
    ]


def searchable(path: Path) -> bytes:
    """A file's bytes; of Parquet also what they say: vectors and pictures as they are, all else as text."""
    data = path.read_bytes()
    if path.suffix != ".parquet":
        return data
    said = pq.ParquetFile(path).read().to_pylist()
    return data + repr(said).encode() + b"".join(blobs(said))


def blobs(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from blobs(inner)


def found_in(root: Path, secrets: dict[str, bytes]) -> set[str]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return {
        f"{path.relative_to(root)}: {name}"
        for path in files
        for data in [searchable(path) + path.name.encode()]
        for name, secret in secrets.items()
        if secret in data
    }


def copy(filled: Filled, folder: Path) -> Path:
    return Path(shutil.copytree(filled.root, folder / "workspace"))


def do(root: Path, *keys: Key, **wish: Any) -> list[str]:
    with Store(root).lock():
        return withdraw(Store(root), Wish([str(key) for key in keys], day=DAY, **wish))[1]


def published(root: Path) -> list[Path]:
    return [*root.glob("datasets/*/*"), *root.glob("releases/*/*/*")]


# -- what is left -----------------------------------------------------------------------------------------------


def test_nothing_of_it_is_left_anywhere(filled: Filled, tmp_path: Path) -> None:
    before = found_in(filled.root, filled.secrets)
    places = {line.partition("/")[0] for line in before if "/" in line.partition(":")[0]}
    assert places == {"datasets", "edits", "images", "leakage", "releases", "reports", "runs", "stages"}
    assert any(line.startswith("answers.sqlite") for line in before)
    root = copy(filled, tmp_path)
    outside = Path(shutil.copytree(filled.root / "releases/fakes/v1/full", tmp_path / "outside"))
    assert do(root, filled.key, folders=[outside]) == ["acme", "acme"]
    assert found_in(root, filled.secrets) == set()
    assert found_in(outside, filled.secrets) == set()
    assert not (root / "reports/fakes").exists()
    assert not (root / "crashes.log").exists()
    assert not list(root.rglob("*unfinished*"))
    for folder in (*published(root), outside):
        assert verify(folder) == []
    assert len(published(root)) == 4


def test_the_others_stay_as_they_were(filled: Filled, tmp_path: Path) -> None:
    root = copy(filled, tmp_path)
    do(root, filled.key)

    def measured(place: Path) -> list[str]:
        rows = [
            repr(row)
            for commit in sorted(place.glob("stages/*/*/measured-*.json"))
            for part in json.loads(commit.read_text())["parts"]
            for row in pq.ParquetFile(commit.parent / part).read().to_pylist()
            if of(row) != filled.key
        ]
        return sorted(rows)

    assert measured(root) == measured(filled.root)
    for old, new in zip(published(filled.root), published(root), strict=True):
        for part in ("data", "rejected"):
            before, after = (
                [row for path in sorted((side / part).iterdir()) for row in pq.read_table(path).to_pylist()]
                for side in (old, new)
            )
            kept = [row for row in before if row["source_id"] != filled.key.source_id]
            left = [row for row in after if row["source_id"] != filled.key.source_id]
            assert left == kept
            stones = [row for row in after if row["source_id"] == filled.key.source_id]
            assert [row["reason"] for row in stones] == (
                ["withdrawn"] if "reason" in after[0] and part == "rejected" else []
            )
    calls = Calls(root / "answers.sqlite", CallSettings(), "fakes")
    assert calls.totals() == filled.calls
    with sqlite3.connect(root / "answers.sqlite") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (1,)


def test_the_next_build_neither_opens_it_nor_pays_again(filled: Filled, tmp_path: Path) -> None:
    root = copy(filled, tmp_path)
    do(root, filled.key)
    edited = {row["key"]["source_id"] for row in part_rows(root) if row["key"]["target"]}
    fakes.install()
    built = fakes.build(root, SETTINGS)
    asked = {(role, subject.partition(":")[0]) for role, subject in built.asked if role in ("load", "edit")}
    assert ("load", filled.key.source_id) not in asked
    assert not {f"{int(subject):05d}" for role, subject in asked if role == "edit"} & edited
    screen = [
        built.run.executor.decided("screen", shard, done["screen"])
        for shard, done in zip(built.run.executor.shards, built.done, strict=True)
    ]
    assert [str(row.key) for rows in screen for row in rows if row.reason is Reason.WITHDRAWN] == [str(filled.key)]
    assert built.published is not None
    assert verify(built.published.folder) == []
    assert data_set(built.published.folder).funnel[0].reasons["withdrawn"] == 1
    assert "1 source was withdrawn" in (built.published.folder / "README.md").read_text()
    assert found_in(root, filled.secrets) == set()
    again = fakes.build(root, SETTINGS)
    assert again.asked == []


def test_the_same_picture_goes_and_comes_not_back_under_another_name(tmp_path: Path) -> None:
    world = fakes.install()
    settings = fakes.config(sources=18)
    root = tmp_path / "workspace"
    fakes.build(root, settings)
    do(root, Key("fake", "00000"))  # 00001 shows the same
    do(root, Key("fake", "00017"))
    assert [stone.source_id for stone in read_withdrawals(Store(root)).tombstones] == ["00000", "00001", "00017"]
    world.extra = 1  # 00018 shows what 00017 showed
    built = fakes.build(root, settings)
    assert ("load", "00018") in built.asked
    assert ("load", "00017") not in built.asked
    assert "analyze" not in built.counts
    rows = [row for path in root.glob("stages/screen/*/part-*") for row in pq.ParquetFile(path).read().to_pylist()]
    assert {row["reason"] for row in rows if row["key"]["source_id"] == "00018" and "reason" in row} == {"withdrawn"}
    assert [row["value"]["image"] for row in rows if row["key"]["source_id"] == "00018" and row["value"]] == [None]


def test_a_selection_may_lack_what_was_withdrawn(tmp_path: Path) -> None:
    fakes.install()
    built = fakes.build(tmp_path / "workspace", fakes.config("publish.cut.target=4", sources=40))
    assert built.published is not None
    rows = pq.read_table(built.published.folder / "data").to_pylist()
    do(tmp_path / "workspace", Key("fake", rows[0]["source_id"]), Key("fake", rows[1]["source_id"]))
    assert verify(built.published.folder) == []
    assert data_set(built.published.folder).triplets < 4


def test_a_cleaned_index_and_pack_still_hydrate(filled: Filled, tmp_path: Path) -> None:
    fakes.install()
    root = copy(filled, tmp_path)
    do(root, filled.key)
    release = root / "releases/fakes/v1"
    result = hydrate(release / "index", release / "pack", SETTINGS, tmp_path / "full")
    assert (result.faults, result.identical) == ([], True)
    assert fakes.tree(tmp_path / "full") == fakes.tree(release / "full")


def test_older_copies_elsewhere_honour_a_newer_release(filled: Filled, tmp_path: Path) -> None:
    fakes.install()
    root = copy(filled, tmp_path)
    do(root, filled.key)
    index, pack = (
        Path(shutil.copytree(filled.root / "releases/fakes/v1" / name, tmp_path / name)) for name in ("index", "pack")
    )
    gone = withdrawn_in(root / "releases/fakes/v1/index")
    assert gone == {filled.key}
    with pytest.raises(ConfigError, match="is a pack, and the data set it belongs to is not here"):
        look([pack], gone)
    clean(look([pack, index], gone), gone)
    result = hydrate(index, pack, SETTINGS, tmp_path / "full")
    assert result.faults == []
    assert "sources were withdrawn" in result.note
    assert verify(tmp_path / "full") == []
    assert found_in(tmp_path / "full", filled.secrets) == set()
    with pytest.raises(ConfigError, match="nothing is withdrawn"):
        withdrawn_in(filled.root / "releases/fakes/v1/index")


# -- refusals ---------------------------------------------------------------------------------------------------


def test_what_cannot_be_cleaned_stops_it_before_anything_is_written(filled: Filled, tmp_path: Path) -> None:
    root = copy(filled, tmp_path)
    clone = Path(shutil.copytree(root / "releases/fakes/v1/index", tmp_path / "clone"))
    (clone / ".git").mkdir()
    with pytest.raises(ConfigError, match="is a git clone"):
        do(root, filled.key, folders=[clone])
    manifest = root / "releases/fakes/v1/index/manifest.json"
    manifest.write_text(manifest.read_text()[:-9])
    with pytest.raises(ConfigError, match="cannot be cleaned"):
        do(root, filled.key)
    assert not (root / FILE).exists()


def test_a_build_waits_for_a_withdrawal_to_be_finished(filled: Filled, tmp_path: Path) -> None:
    fakes.install()
    root = copy(filled, tmp_path)
    do(root, filled.key)
    state = read_withdrawals(Store(root)).model_copy(update={"unfinished": Unfinished(keys=(str(filled.key),))})
    Store(root).write_json(FILE, state.model_dump(mode="json"))
    with pytest.raises(WorkspaceError, match="stopped before its end"):
        fakes.build(root, SETTINGS)
    do(root)
    fakes.build(root, SETTINGS)


# -- kills ------------------------------------------------------------------------------------------------------


def child(root: Path, outside: Path, key: Key, notes: Path, fatal: int | None) -> None:
    """Withdraw in this process, and die at a point if one is given."""
    os.fsync = lambda _: None  # type: ignore[assignment]
    points = Points(fatal)
    points.around(Store, "write", after=True)
    points.around(Path, "rename", after=True)
    points.around(Path, "unlink", after=True)
    points.around(shutil, "rmtree", after=True)
    do(root, key, folders=[outside])
    notes.write_text(json.dumps(points.passed))


def run(filled: Filled, folder: Path, fatal: int | None = None) -> int | None:
    process = FORKS.Process(
        target=child, args=(folder / "workspace", folder / "outside", filled.key, folder / "points", fatal)
    )
    process.start()
    process.join(60)
    return process.exitcode


def prepared(filled: Filled, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    copy(filled, folder)
    shutil.copytree(filled.root / "releases/fakes/v1/full", folder / "outside")
    return folder


def left(folder: Path) -> dict[str, bytes]:
    """All that a withdrawal leaves, but for locks and the counters in SQLite's header."""
    ignored = ("workspace/lock", "workspace/answers.sqlite", "points")
    return {name: data for name, data in fakes.tree(folder).items() if not name.startswith(ignored)}


@pytest.fixture(scope="module")
def undisturbed(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        FORKS.set_forkserver_preload([__name__])
        forkserver.ensure_running()
    folder = prepared(filled, tmp_path_factory.mktemp("undisturbed"))
    assert run(filled, folder) == 0
    return left(folder), json.loads((folder / "points").read_text())


@pytest.mark.parametrize("share", range(KILLS))
def test_killed_anywhere_it_is_finished(
    filled: Filled, undisturbed: tuple[dict[str, bytes], list[str]], tmp_path: Path, share: int
) -> None:
    expected, points = undisturbed
    resume(filled, expected, prepared(filled, tmp_path), share * (len(points) - 1) // (KILLS - 1))


def resume(filled: Filled, expected: dict[str, bytes], folder: Path, point: int) -> None:
    assert run(filled, folder, point) == -signal.SIGKILL
    for place in (*published(folder / "workspace"), folder / "outside"):
        if place.exists() and not place.name.startswith("."):
            assert verify(place) == []
    assert run(filled, folder) == 0
    assert left(folder) == expected
    assert found_in(folder / "workspace", filled.secrets) == set()


@pytest.mark.slow
def test_killed_at_every_point_it_is_finished(
    filled: Filled, undisturbed: tuple[dict[str, bytes], list[str]], tmp_path: Path
) -> None:
    expected, points = undisturbed
    for point in range(len(points)):
        folder = prepared(filled, tmp_path / "one")
        resume(filled, expected, folder, point)
        shutil.rmtree(folder)


def test_a_folder_that_was_moved_away_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "v1"
    (tmp_path / ".v1.unfinished").mkdir()
    (tmp_path / ".v1.unfinished-replaced").mkdir()
    recover(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["v1"]
