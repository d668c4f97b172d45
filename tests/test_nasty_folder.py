"""The whole build over a folder of every nasty file: nothing crashes, nothing is lost, everything has its reason."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemas.outcomes import Reason, Status
from schemas.records import Source
from tasks.dataset.verify import verify
from tasks.dataset.write import publish
from tasks.engine.dossier import SourceLife, lives
from tasks.faces import ANALYZERS
from tasks.faces.geometry import landmark_box
from tasks.pipeline import Run
from tasks.sources import Loaded
from tasks.sources.folder import FolderPool, escape
from tests import nasty, photos
from tests.builds import built, config
from tests.nasty import Fate

SECRET = "secret.jpg"
COPIES = {Reason.DUPLICATE, Reason.NEAR_DUPLICATE}


@dataclass(frozen=True)
class Nasty:
    """A finished build over the folder, by the id of each source."""

    root: Path
    workspace: Path
    run: Run
    folder: Path
    fates: dict[str, Fate]
    lives: dict[str, SourceLife]


def deny(secret: str) -> Iterator[None]:
    """Let reading that file fail as it would for a user without the right (root has every right)."""
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path.name == secret:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", read_bytes)
        yield


def settings(root: Path) -> Any:
    return config(name="nasty", pools=[{"name": "folder", "params": {"root": str(root)}}], shard_size=8)


def look(root: Path, workspace: Path, fates: dict[str, Fate]) -> Nasty:
    run, done = built(workspace, settings(root))
    folder = publish(run, done).folder
    seen = [
        life
        for shard, commits in zip(run.executor.shards, done, strict=True)
        for life in lives(run.executor, shard, commits)
    ]
    by_id = {life.key.source_id: life for life in seen}
    assert len(by_id) == len(seen)
    return Nasty(root, workspace, run, folder, fates, by_id)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nasty]:
    home = tmp_path_factory.mktemp("nasty")
    root = home / "photos of mine"
    root.mkdir()
    fates = {escape(name): fate for name, fate in nasty.write_nasty(root).items()}
    (root / SECRET).write_bytes(nasty.photo_bytes(*nasty.FACE))
    shutil.copy(photos.file_of("hopper"), root / "somebody else.jpg")
    for _ in deny(SECRET):
        yield look(root, home / "workspace", fates | {SECRET: Fate("unreadable"), "somebody else.jpg": Fate()})


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.rglob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_every_file_is_counted_once(build: Nasty) -> None:
    assert build.lives.keys() == build.fates.keys()
    assert len(build.fates) >= 44
    published = {row["source_id"] for row in rows(build.folder)}
    assert published == build.fates.keys()


def test_every_file_has_its_reason(build: Nasty) -> None:
    opened = []
    for name, fate in build.fates.items():
        step = build.lives[name].steps["screen"]
        if fate.door:
            assert (step.status, step.reason) == (Status.REJECTED, Reason.UNREADABLE), name
            assert step.evidence.startswith(f"{fate.door}: "), (name, step.evidence)
        elif fate.screen and fate.screen not in COPIES:
            assert (step.status, step.reason) == (Status.REJECTED, fate.screen), name
        else:
            assert step.status is Status.KEPT or step.reason in COPIES, (name, step)
            opened.append(name)
    assert len(opened) >= 20


def test_of_equal_pictures_the_first_of_the_plan_is_kept(build: Nasty) -> None:
    plan = [source.key.source_id for shard in build.run.executor.shards for source in shard.sources]
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(build.lives, key=plan.index):
        facts = build.lives[name].measured["screen"]
        if facts.image and build.lives[name].steps["screen"].reason not in {
            Reason.SEVERAL_FACES,
            Reason.NO_FACE,
            Reason.POSE,
        }:
            groups[facts.pixel_sha256].append(name)
    kept = {name for name, life in build.lives.items() if life.reached("screen")}
    (equal,) = (group for group in groups.values() if "plain.jpg" in group)
    assert {
        "byte-equal.jpg",
        "SHOUTING.JPG",
        "caf\u00e9.jpg",
        "cafe\u0301.jpg",
        "inside-link.jpg",
        "png-named.jpg",
    } <= set(equal)
    for first, *others in groups.values():
        assert not kept & set(others)
        for name in others:
            step = build.lives[name].steps["screen"]
            if first in kept:
                assert (step.reason, step.evidence) == (Reason.DUPLICATE, f"same pixels as folder/{first}")
    for name, life in build.lives.items():
        step = life.steps["screen"]
        if step.reason in COPIES:
            (original,) = (other for other in kept if f"folder/{other}" in step.evidence.split(", needs")[0])
            assert plan.index(original) < plan.index(name)
            same = build.lives[original].measured["screen"].pixel_sha256 == life.measured["screen"].pixel_sha256
            assert same == (step.reason == Reason.DUPLICATE)


def test_the_build_goes_all_the_way_and_conserves(build: Nasty) -> None:
    kept = [life for life in build.lives.values() if life.reached("screen")]
    assert "somebody else.jpg" in {life.key.source_id for life in kept}
    assert len(kept) >= 2
    assert all(len(life.candidates) == 6 for life in kept)
    ids = Counter(row["id"] for row in rows(build.folder))
    assert ids == Counter(str(life.key) for source in build.lives.values() for life in (source.candidates or [source]))
    assert any(life.reached("publish") for source in kept for life in source.candidates)
    assert verify(build.folder) == []


def test_no_crash_was_caught_on_the_way(build: Nasty) -> None:
    assert not (build.workspace / "crashes.log").exists()
    assert not [row for row in rows(build.folder) if row.get("status") == "failed"]


def test_no_word_of_the_data_set_names_this_machine(build: Nasty) -> None:
    texts = [value for row in rows(build.folder) for value in row.values() if isinstance(value, str)]
    texts += [(build.folder / name).read_text() for name in ("README.md", "manifest.json")]
    assert any("somebody else.jpg" in text for text in texts)
    assert not [text for text in texts if str(build.root) in text or str(build.workspace) in text]


# -- changed files ----------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of all sources that are opened from now on."""
    seen: list[str] = []
    load: Callable[[FolderPool, Source], Loaded] = FolderPool.load

    def noting(pool: FolderPool, source: Source) -> Loaded:
        seen.append(source.key.source_id)
        return load(pool, source)

    monkeypatch.setattr(FolderPool, "load", noting)
    return seen


def test_a_stamp_is_size_and_time_and_empty_where_there_is_no_file(build: Nasty) -> None:
    by_id = {source.key.source_id: source for source in FolderPool(FolderPool.Params(root=str(build.root))).list()}
    status = (build.root / "plain.jpg").stat()
    assert by_id["plain.jpg"].stamp == f"{status.st_size}-{status.st_mtime_ns}"
    assert by_id["inside-link.jpg"].stamp == by_id["plain.jpg"].stamp, "a link's is that of what it leads to"
    assert by_id["dangling.jpg"].stamp == by_id["itself.jpg"].stamp == ""
    assert all(by_id[name].stamp for name in by_id if name not in {"dangling.jpg", "itself.jpg"})


def test_a_manifests_missing_file_has_no_stamp(build: Nasty, tmp_path: Path) -> None:
    manifest = tmp_path / "list.csv"
    manifest.write_text("path\nabsent.jpg\nplain.jpg\n")
    absent, plain = FolderPool(FolderPool.Params(root=str(build.root), manifest=str(manifest))).list()
    assert absent.stamp == ""
    assert plain.stamp


def test_nothing_is_opened_twice(build: Nasty, loaded: list[str]) -> None:
    again = look(build.root, build.workspace, build.fates)
    assert loaded == []
    assert again.lives == build.lives


def test_a_changed_file_is_measured_again_alone(build: Nasty, loaded: list[str], tmp_path: Path) -> None:
    root, workspace = tmp_path / "photos", tmp_path / "workspace"
    names = ("plain.jpg", "no-face.png", "truncated.jpg", "two-faces.jpg", "zero.jpg")
    root.mkdir()
    for name in names:
        shutil.copy(build.root / name, root / name)
    fates = {name: build.fates[name] for name in names}
    before = look(root, workspace, fates)
    assert sorted(loaded) == sorted(names)
    loaded.clear()
    (root / "zero.jpg").write_bytes(photos.file_of("hopper").read_bytes())
    after = look(root, workspace, fates)
    assert loaded == ["zero.jpg"]
    assert before.lives["zero.jpg"].steps["screen"].evidence == "empty: the file has no bytes"
    assert after.lives["zero.jpg"].reached("screen")
    for name in names[:-1]:
        assert after.lives[name].measured == before.lives[name].measured
        assert after.lives[name].steps == before.lives[name].steps
    assert verify(after.folder) == []
    loaded.clear()
    content = {path: path.read_bytes() for path in after.folder.rglob("*") if path.is_file()}
    os.utime(root / "plain.jpg", (1, 1))
    assert look(root, workspace, fates).lives["plain.jpg"].steps == after.lives["plain.jpg"].steps
    assert loaded == ["plain.jpg"]
    assert {path: path.read_bytes() for path in after.folder.rglob("*") if path.is_file()} == content


# -- a photo without a background -------------------------------------------------------------------------------


def test_a_face_that_fills_its_picture_ends_as_rows(tmp_path: Path) -> None:
    """As in aligned face sets: the dilated faces cover all of it, so no background is left to compare."""
    shown = photos.photo("happy")
    (face,) = ANALYZERS.get("mediapipe", {}).analyze(shown)
    x, y, width, height = landmark_box(face)
    rows_, columns = (
        slice(int(start + 0.1 * size), int(start + 0.9 * size)) for start, size in ((y, height), (x, width))
    )
    root = tmp_path / "photos"
    root.mkdir()
    nasty.Image.fromarray(shown.pixels[rows_, columns]).save(root / "tight.png")
    done = look(root, tmp_path / "workspace", {"tight.png": Fate()})
    assert done.lives["tight.png"].reached("screen")
    assert verify(done.folder) == []
    assert len(rows(done.folder)) == 6


# -- a process of its own ---------------------------------------------------------------------------------------

LOAD = """
import os, resource, sys
import cv2, PIL.Image, PIL.ImageCms, PIL.PngImagePlugin, PIL.JpegImagePlugin
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.sources.folder import FolderPool
root, before = sys.argv[1:]
pool = FolderPool(FolderPool.Params(root=root))
exec(before)
try:
    sources = list(pool.list())
except ConfigError as error:
    print(error.message)
    sources = []
for source in sources:
    try:
        print(source.key.source_id, pool.load(source).pixels.shape)
    except UnreadableImage as error:
        print(source.key.source_id, error.reason)
"""


def loads(root: Path, before: str) -> list[str]:
    """What a process says of each photo of a folder, after it did `before`."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(root), before], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may enter, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_file_without_permission_is_unreadable(public: Path) -> None:
    for name in ("closed.jpg", "open.jpg"):
        (public / name).write_bytes(nasty.photo_bytes(*nasty.FACE))
        (public / name).chmod(0 if name == "closed.jpg" else 0o644)
    become_nobody = "os.getuid() or (os.setgroups([]), os.setgid(65534), os.setuid(65534))"
    assert loads(public, become_nobody) == ["closed.jpg unreadable", "open.jpg (512, 512, 3)"]


def test_a_folder_without_permission_is_one_line(public: Path) -> None:
    (public / "closed").mkdir()
    (public / "closed" / "a.jpg").write_bytes(b"")
    (public / "closed").chmod(0)
    try:
        (line,) = loads(public, "os.getuid() or (os.setgroups([]), os.setgid(65534), os.setuid(65534))")
    finally:
        (public / "closed").chmod(stat.S_IRWXU)
    assert "cannot list" in line
    assert str(public / "closed") in line


def test_the_bomb_is_not_allocated(tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(nasty.bomb())
    (tmp_path / "plain.jpg").write_bytes(nasty.photo_bytes(*nasty.FACE))
    limit = (
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + 200 * 2**20;"
        "resource.setrlimit(resource.RLIMIT_AS, (size, size))"
    )
    assert loads(tmp_path, limit) == ["bomb.png too_large", "plain.jpg (512, 512, 3)"]
    allocate = ";import PIL.Image\ntry: PIL.Image.new('L', (30000, 30000))\nexcept MemoryError: print('it bites')"
    assert loads(tmp_path, limit + allocate)[0] == "it bites"
