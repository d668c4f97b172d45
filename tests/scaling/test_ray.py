"""Builds on a Ray cluster of two nodes: the bytes are those of threads, whoever is killed midway."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas.config import BuildConfig
from tests import fakes
from tests.commands import ROOT, started, wait_until
from tests.scaling import plugged
from tests.scaling.conftest import Two

pytestmark = pytest.mark.ray

MANY, FEW = 2000, 240
SHARD = 10
EDITS_OF_A_SHARD = 2 * SHARD


def settings(sources: int, runner: str = "ray") -> BuildConfig:
    targets = "generate.measure.targets=[happy, sad]"
    return fakes.config(f"runner={runner}", "workers=2", f"shard_size={SHARD}", targets, sources=sources)


def command(folder: Path, config: BuildConfig) -> list[str]:
    """Of a build with the fakes in `folder`/workspace."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(config.model_dump_json())
    return [sys.executable, "-m", "tests.scaling.on_ray", str(folder / "workspace"), str(folder / "config.json")]


@dataclass(frozen=True)
class Plain:
    """What a build in threads leaves, and how many edits it asks for."""

    tree: dict[str, bytes]
    commits: dict[str, bytes]
    edits: int


def decided(workspace: Path) -> dict[str, bytes]:
    """Every decided commit: it holds the digest of each row that was kept."""
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.glob("stages/*/*/decided-*")}


def built(folder: Path, sources: int) -> Plain:
    """Build in threads of this process."""
    fakes.install()
    found = fakes.build(folder / "workspace", settings(sources, "threads"), threads=2)
    return Plain(found.tree(), decided(folder / "workspace"), found.counts["edit"])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    return built(tmp_path_factory.mktemp("plain"), FEW)


def edits(workspace: Path) -> list[tuple[str, int]]:
    """Subject and process of every edit that was asked for."""
    return [(subject, pid) for role, subject, pid in plugged.asked(workspace) if role == "edit"]


def build(two: Two, folder: Path, sources: int, midway: Callable[[], None], after: int) -> Path:
    """Build on the cluster; once so many edits are made, do what shall happen midway."""
    workspace, log = folder / "workspace", folder / "log"
    with started(command(folder, settings(sources)), two.env, ROOT, log) as process:
        reached = lambda: len(edits(workspace)) >= after or process.poll() is not None  # noqa: E731
        wait_until(reached, 900, "so many edits", pause=0.2)
        assert process.poll() is None, log.read_text()
        midway()
        assert process.wait(900) == 0, log.read_text()
    return workspace


def check(workspace: Path, plain: Plain) -> None:
    """Whether a workspace holds what the build in threads left in its own."""
    assert fakes.tree(workspace / "datasets" / "fakes" / "v1") == plain.tree
    assert decided(workspace) == plain.commits
    assert not (workspace / "answers.sqlite").exists()


def test_two_thousand_sources_give_the_bytes_of_threads(tmp_path: Path, two_nodes: Two) -> None:
    plain = built(tmp_path / "threads", MANY)
    workspace = build(two_nodes, tmp_path / "ray", MANY, lambda: None, 1)
    check(workspace, plain)
    assert len(edits(workspace)) == plain.edits
    workers = Counter(pid for _, _, pid in plugged.asked(workspace))
    assert len(workers) == 2, "one process a node, from the first shard to the last"


def test_a_worker_that_is_killed_costs_its_shard_in_flight(tmp_path: Path, two_nodes: Two, plain: Plain) -> None:
    def kill() -> None:
        os.kill(edits(tmp_path / "workspace")[-1][1], signal.SIGKILL)

    workspace = build(two_nodes, tmp_path, FEW, kill, plain.edits // 3)
    check(workspace, plain)
    assert plain.edits <= len(edits(workspace)) <= plain.edits + EDITS_OF_A_SHARD
    assert len({pid for _, _, pid in plugged.asked(workspace)}) == 3, "and one in place of the dead"


def test_a_node_that_is_lost_costs_its_shard_in_flight(tmp_path: Path, two_nodes: Two, plain: Plain) -> None:
    def kill() -> None:
        os.kill(two_nodes.raylet(), signal.SIGKILL)

    workspace = build(two_nodes, tmp_path, FEW, kill, plain.edits // 3)
    check(workspace, plain)
    assert plain.edits <= len(edits(workspace)) <= plain.edits + EDITS_OF_A_SHARD
