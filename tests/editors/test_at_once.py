"""Editors outside are asked about all sources of a shard at once, and make what local ones do."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed, StoppedError
from tests.drawn import Pixels
from tests.fakes import FakeEditor, World, build, config, install


@pytest.fixture
def world() -> World:
    return install()


class Outside(FakeEditor):
    """Answers nobody before more edits than one source owes are asked for at once."""

    remote = True
    lock, together = threading.Lock(), threading.Event()
    asking = alone = 0

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[Pixels | ItemFailed]:
        assert len(requests) == 1
        with self.lock:
            Outside.asking += 1
            if Outside.asking == 9:
                self.together.set()
        came = self.together.wait(10)
        with self.lock:
            Outside.alone += not came
        return super().edit(requests, call)


def test_all_sources_of_a_block_are_edited_at_once(world: World, tmp_path: Path) -> None:
    settings = config("shard_size=8", sources=8)
    local = build(tmp_path / "local", settings)
    assert world.asked
    owed = local.counts["edit"]
    assert owed > 9
    EDITORS.add("fake", Outside)
    outside = build(tmp_path / "outside", settings)
    assert Outside.alone == 0, "the others were not asked meanwhile"
    assert outside.counts["edit"] == owed
    assert outside.tree() == local.tree()


def test_what_came_before_a_stop_is_kept(world: World, tmp_path: Path) -> None:
    class Stops(FakeEditor):
        remote = True

    EDITORS.add("fake", Stops)
    world.trouble = lambda role, subject: (
        StoppedError("budget") if role == "edit" and subject.endswith("surprise") else None
    )
    with pytest.raises(StoppedError):
        build(tmp_path, config("calls.in_flight=1", sources=6))
    notes = {path.name for path in tmp_path.glob("edits/*/*")}
    made = {subject for role, subject in world.asked if role == "edit" and not subject.endswith("surprise")}
    world.trouble = None
    whole = build(tmp_path, config("calls.in_flight=1", sources=6))
    again = {subject for role, subject in whole.asked if role == "edit"}
    assert notes
    assert len(made & again) == len(made) - len(notes), "only what gave no picture is asked for again"
