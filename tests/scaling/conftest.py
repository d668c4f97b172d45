"""A Prefect server, and a Ray cluster of two nodes, on this machine's loopback address."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.server import trouble
from tests.commands import ROOT, environment, free_port, started, wait_until

CLOSED = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
    "RAY_USAGE_STATS_ENABLED": "0",
}


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment for processes that talk to a server of their own, which runs as long as the tests."""
    home, port = tmp_path_factory.mktemp("prefect"), free_port()
    env = environment(home, PREFECT_API_URL=f"http://127.0.0.1:{port}/api")
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with started(command, env, ROOT, home / "server.log"):
        wait_until(lambda: not trouble(env["PREFECT_API_URL"]), 180, "the Prefect server answers", pause=0.5)
        yield env


@dataclass(frozen=True)
class Two:
    """A cluster of a head and another node, each with one core.

    Attributes:
        env: The environment of a process that builds on it.
        cluster: Ray's own.
        second: The other node.
    """

    env: dict[str, str]
    cluster: Any
    second: Any

    def raylet(self) -> int:
        """Process id of the second node's raylet."""
        return _raylet(self.second)

    def at_work(self) -> list[int]:
        """Process ids of the workers that are at a shard."""
        return [
            pid
            for node in self.cluster.list_all_nodes()
            for pid in family(_raylet(node))
            if "ray::run_shard" in cmdline(pid)
        ]


def _raylet(node: Any) -> int:
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


def cmdline(pid: int) -> str:
    """How a process calls itself; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def family(pid: int) -> list[int]:
    """A process and all its living descendants."""
    try:
        children = [line for path in Path(f"/proc/{pid}/task").glob("*/children") for line in path.read_text().split()]
    except OSError:
        children = []
    return [pid, *(each for child in children for each in family(int(child)))]


@pytest.fixture
def two_nodes(prefect_api: dict[str, str]) -> Iterator[Two]:
    """New for every test, since some kill a node."""
    with pytest.MonkeyPatch.context() as patch:
        # The nodes and their workers inherit this process's environment.
        for name in set(os.environ) - set(prefect_api):
            patch.delenv(name)
        for name, value in (prefect_api | CLOSED).items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster

        folder = tempfile.mkdtemp(prefix="fedbench-two-", dir="/tmp")
        Path(folder, "ray").mkdir()
        patch.setenv("RAY_TMPDIR", folder)  # where Ray notes the newest cluster, for all who start without an address
        head = {"num_cpus": 1, "include_dashboard": False, "temp_dir": folder, "memory": 2 * 10**9}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            second = cluster.add_node(num_cpus=1, memory=2 * 10**9)
            yield Two(prefect_api | CLOSED | {"RAY_ADDRESS": cluster.address}, cluster, second)
        finally:
            cluster.shutdown()
            shutil.rmtree(Path(folder), ignore_errors=True)
