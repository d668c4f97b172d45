"""What is asked of the nodes of a cluster before a build begins; no Ray is needed to ask."""

import socket
from pathlib import Path
from typing import Any

import pytest

from flows import ray_cluster
from flows.parts import Request
from flows.ray_worker import on_node, program
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.shards import Shard
from tasks.rounds import Job
from tests import fakes


def node(host: str = "a", cpus: int = 4, gpus: int = 0, gb: float = 16) -> dict[str, Any]:
    resources = {"CPU": cpus, "memory": gb * 1e9} | ({"GPU": gpus} if gpus else {})
    return {"Alive": True, "NodeManagerHostname": host, "Resources": resources}


def check(nodes: list[dict[str, Any]], requests: list[Request], *sets: str) -> None:
    ray_cluster._check_nodes(fakes.config("runner=ray", *sets), requests, nodes)


def test_a_request_has_to_fit_on_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "address", lambda: "http://head:4200/api")
    nodes = [node("a", gpus=1, gb=8), node("b", cpus=8)]
    check(nodes, [Request(4, 1, 8), Request(8, 0, 16)])
    for asked in (Request(8, 1, 8), Request(4, 2, 8), Request(4, 1, 9)):
        with pytest.raises(ConfigError, match=r"no node .* there are: 4 CPU, 1 GPU, 8.0 GB; 8 CPU, 0 GPU, 16.0 GB"):
            check(nodes, [asked])
        check(nodes, [asked], "ray.wait_for_nodes=true")
    with pytest.raises(ConfigError, match="no node"):
        check([nodes[0], nodes[1] | {"Alive": False}], [Request(8, 0, 1)])


def test_nodes_elsewhere_need_an_address_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "address", lambda: "http://127.0.0.1:4200/api")
    check([node("a"), node("a")], [])
    with pytest.raises(ConfigError, match="cannot reach the Prefect server"):
        check([node("a"), node("b")], [])


def test_a_node_with_another_program_or_workspace_does_no_job(tmp_path: Path) -> None:
    job = Job(str(tmp_path), fakes.config(), ("screen",), Shard(0, "id", ()), {}, None)
    done: list[Job] = []

    def work(job: Job) -> dict[str, Any]:
        done.append(job)
        return {}

    with pytest.raises(WorkspaceError, match=f"{socket.gethostname()} runs another fedbench"):
        on_node(work, "another", job)
    with pytest.raises(WorkspaceError, match="does not see the workspace"):
        on_node(work, program(), job)
    assert done == []
