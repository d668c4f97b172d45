"""The workspace on disk: whole files or none, and one line for whatever the disk does to us."""

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemas.expressions import Expression
from schemas.outcomes import Abstention
from schemas.records import Ballots, Key, Source, Vote
from tasks.dataset import parquet
from tasks.engine.errors import WorkspaceError
from tasks.engine.store import Store, arrow_schema
from tests import fakes

SOURCES = [
    Source(key=Key("a", "ü/1"), path="x"),
    Source(key=Key("a", "2"), path="", label=Expression.FEAR, label_confidence=0.1 + 0.2, stamp="s"),
]
BALLOTS = [
    Ballots(votes=(), faces=0),
    Ballots(
        votes=(Vote(voter="v", granularity="fine", abstained=Abstention.NO_FACE, raw="?\n"),), faces=2, change=1e-300
    ),
]


@pytest.mark.parametrize(("record", "rows"), [(Source, SOURCES), (Ballots, BALLOTS), (Source, [])])
def test_rows_come_back_as_they_went(tmp_path: Path, record: Any, rows: list[Any]) -> None:
    store = Store(tmp_path)
    name = store.write_part("f", record, rows)
    assert store.read_part("f", name, record) == rows
    assert store.write_part("f", record, rows) == name
    assert [path.name for path in tmp_path.glob("f/*")] == [name]
    assert pq.read_schema(tmp_path / "f" / name).equals(arrow_schema(record))


def test_a_reader_sees_one_whole_version(tmp_path: Path) -> None:
    store = Store(tmp_path)
    versions = [bytes([letter]) * 50_000 for letter in b"abcd"]
    store.write("f", versions[0])
    done = threading.Event()

    def write() -> None:
        for turn in range(200):
            store.write("f", versions[turn % 4], durable=False)
        done.set()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    while not done.is_set():
        assert store.read("f") in versions
    for writer in writers:
        writer.join()
    assert not list(tmp_path.glob("tmp/*"))


def test_what_is_damaged_says_what_to_delete(tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = store.write_part("f", Source, SOURCES)
    path = tmp_path / "f" / name
    path.write_bytes(path.read_bytes()[:-40])
    (tmp_path / "x.json").write_text('{"a":')
    assert store.read_json("y.json") is None
    for read, named in (
        (lambda: store.read_json("x.json"), "x.json"),
        (lambda: store.read_part("f", name, Source), name),
        (lambda: store.read_part("f", "gone.parquet", Source), "gone.parquet"),
    ):
        with pytest.raises(WorkspaceError, match=named) as caught:
            read()
        one_line(caught.value)


def one_line(error: WorkspaceError) -> None:
    """What a user is told: one line, with a way out."""
    assert error.hint
    assert "\n" not in str(error)


# -- in use -----------------------------------------------------------------------------------------------------

_HOLD = """
import sys
from pathlib import Path
from tasks.engine.store import Store
with Store(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_workspace_in_use_names_the_process_that_holds_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WorkspaceError, match=f"in use by process {holder.pid} ") as caught, store.lock():
            pass
        one_line(caught.value)
        holder.kill()
    with store.lock():  # the kernel freed it
        assert (tmp_path / "lock").read_text() == str(os.getpid())
    with store.lock():
        pass


def test_the_holder_removes_what_a_killed_writer_left(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / "tmp" / "dataset").mkdir(parents=True)
    (tmp_path / "tmp" / "1-1").write_bytes(b"half")
    with store.lock():
        assert not (tmp_path / "tmp").exists()
        store.write("f", b"whole")


# -- a bad disk -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["/proc/fedbench", "/sys/fedbench", "{tmp}/file", "{tmp}/file/below", "/dev/null"])
def test_a_workspace_that_cannot_be_is_one_line(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").write_text("")
    path = Path(root.format(tmp=tmp_path))
    fakes.install()
    with pytest.raises(WorkspaceError, match=f"cannot use {path}") as caught:
        fakes.build(path, fakes.config())
    one_line(caught.value)


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "quota"), (errno.EIO, "Input/output error")],
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str, call: str
) -> None:
    store = Store(tmp_path)
    store.write("f", b"old")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace")}[call], fail)
    with pytest.raises(WorkspaceError, match=words) as caught:
        store.write("f", b"new")
    one_line(caught.value)
    assert store.read("f") == b"old"
    assert not list(tmp_path.glob("tmp/*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Gives a file system of a size, or gives the one there is another size; skips where mounting is not allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def sized(size: str) -> Path:
        options = f"size={size}" + (",remount" if disk.is_mount() else "")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("may not mount a tmpfs here")
        return disk

    yield sized
    if disk.is_mount():
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_stops_a_build_cleanly_and_room_resumes_it(
    tmp_path: Path, small_disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever in the build it fills up: one line, nothing half-written, and nothing done twice."""
    world = fakes.install()
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 1)  # as large data sets, this one is written bit by bit
    settings = fakes.config("generate.measure.targets=[happy, sad]", sources=5)
    whole = fakes.build(tmp_path / "whole", settings)
    pages = sum(-(-path.stat().st_size // 4096) for path in (tmp_path / "whole").rglob("*") if path.is_file())
    world.asked.clear()
    for twelfth in range(1, 12):
        workspace = small_disk(f"{4 * pages * twelfth // 12}k") / "workspace"
        with pytest.raises(WorkspaceError, match=r"cannot use .*: the disk is full") as caught:
            fakes.build(workspace, settings)
        one_line(caught.value)
        aside = {*workspace.rglob("tmp/**/*")}
        for path in {*workspace.rglob("*.json")} - aside:
            json.loads(path.read_bytes())
        for path in {*workspace.rglob("*.parquet")} - aside:
            pq.read_table(path)
        assert not (workspace / "datasets").exists()
    finished = fakes.build(small_disk("64m") / "workspace", settings)
    assert finished.tree() == whole.tree()
    assert world.counts()["edit"] <= whole.counts["edit"] + 11 * 2  # two edits of a row are in flight


def test_a_full_disk_is_one_line_wherever_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without a mount: every tenth file that is opened for writing finds no room."""
    fakes.install()
    settings = fakes.config("generate.measure.targets=[happy]", "shard_size=1", sources=3)
    whole = fakes.build(tmp_path / "whole", settings).tree()
    original, opened = Path.open, 0

    def open_(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        nonlocal opened
        opened += "w" in mode
        if opened == 10:
            opened = 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return original(self, mode, *args, **kwargs)

    told = []
    with monkeypatch.context() as full:
        full.setattr(Path, "open", open_)
        while not (tmp_path / "full" / "datasets").exists():
            try:
                fakes.build(tmp_path / "full", settings)
            except WorkspaceError as error:
                told.append(error)
    assert len(told) > 3
    for stop in told:
        one_line(stop)
    assert {stop.message.rpartition(": ")[2] for stop in told} == {"the disk is full"}
    assert fakes.build(tmp_path / "full", settings).tree() == whole
