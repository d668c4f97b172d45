"""The demo as a newcomer runs it: fast, small, repeatable; killed at any moment; and on a Prefect server with a worker.

Real processes throughout, with Prefect homes and ports of their own.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.commands import (
    ROOT,
    environment,
    fedbench,
    free_port,
    kill_group,
    one_line,
    run,
    started,
    tree_rss,
    wait_until,
)
from tests.fakes import tree

pytestmark = pytest.mark.slow

Times = dict[str, int]


def times(workspace: Path, *folders: str) -> Times:
    """Modification time of every file below these folders."""
    return {
        str(path.relative_to(workspace)): path.stat().st_mtime_ns
        for folder in folders
        for path in (workspace / folder).rglob("*")
        if path.is_file()
    }


@dataclass(frozen=True)
class Demo:
    """An undisturbed demo: its workspace, how long it took, and the most memory its processes held at once."""

    workspace: Path
    env: dict[str, str]
    seconds: float
    peak: int
    said: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Run once, from an empty Prefect home."""
    folder = tmp_path_factory.mktemp("demo")
    env, log = environment(folder / "home"), folder / "log"
    peak, began = 0, time.monotonic()
    with started(fedbench("demo", "-w", folder / "workspace"), env, folder, log) as process:
        while process.poll() is None:
            peak = max(peak, tree_rss(process.pid))
            time.sleep(0.1)  # a sample every so often is what is wanted
    assert process.returncode == 0, log.read_text()
    demo = Demo(folder / "workspace", env, time.monotonic() - began, peak, log.read_text())
    print(f"\ndemo: {demo.seconds:.1f} s, {demo.peak / 1e6:.0f} MB", file=sys.__stderr__)
    return demo


# -- fast, small, repeatable --------------------------------------------------------------------------------------


def test_the_demo_is_fast_and_small(demo: Demo) -> None:
    assert demo.seconds < 180
    assert demo.peak < 1.5e9
    assert "Traceback" not in demo.said
    assert "triplets)" in demo.said


def test_the_demo_published_a_whole_data_set(demo: Demo, tmp_path: Path) -> None:
    result = run(fedbench("verify", demo.workspace / "datasets" / "demo" / "v1", "--json"), demo.env, tmp_path)
    assert result.returncode == 0, result.stdout
    assert {"ok": True, "faults": []}.items() <= json.loads(result.stdout).items()
    assert (demo.workspace / "reports" / "demo" / "index.html").is_file()


def test_the_second_demo_finds_nothing_to_do(demo: Demo, tmp_path: Path) -> None:
    before = times(demo.workspace, "stages", "images", "edits", "datasets", "reports")
    assert before
    began = time.monotonic()
    result = run(fedbench("demo", "-w", demo.workspace, "--json"), demo.env, tmp_path)
    assert time.monotonic() - began < 10
    assert result.returncode == 0, result.stderr
    assert not json.loads(result.stdout)["written"]
    assert times(demo.workspace, "stages", "images", "edits", "datasets", "reports") == before


def test_the_demo_needs_no_torch(demo: Demo, tmp_path: Path) -> None:
    """Nor TensorFlow; checked in the process that runs the models."""
    code = (
        "import sys, atexit; from flows import cli; sys.argv = ['fedbench', *sys.argv[1:]]\n"
        "atexit.register(lambda: print('IMPORTED', *{name.partition('.')[0] for name in sys.modules}))\n"
        "cli.main()"
    )
    words = ["demo", "--set", "limit=2", "-w", str(tmp_path / "workspace")]
    result = run([sys.executable, "-c", code, *words], demo.env, tmp_path)
    assert result.returncode == 0, result.stderr
    names = set(result.stdout.rpartition("IMPORTED")[2].split())
    assert {"prefect", "mediapipe", "onnxruntime"} <= names
    assert not names & {"torch", "tensorflow", "jax"}


# -- disturbed ----------------------------------------------------------------------------------------------------


def test_a_demo_stopped_from_the_keyboard_says_so_and_can_go_on(demo: Demo, tmp_path: Path) -> None:
    workspace, log = tmp_path / "workspace", tmp_path / "log"
    with started(fedbench("demo", "-w", workspace), demo.env, tmp_path, log) as process:
        wait_until(lambda: "generate-to-instruct: 1" in log.read_text(), 120, "the first shard")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130, log.read_text()
    assert "Traceback" not in log.read_text()
    assert "run the same command again" in log.read_text()
    done = times(workspace, "stages")
    assert run(fedbench("demo", "-w", workspace), demo.env, tmp_path).returncode == 0
    assert done.items() <= times(workspace, "stages").items()
    assert tree(workspace / "datasets") == tree(demo.workspace / "datasets")


def finished_shards(workspace: Path) -> Times:
    """Every decided commit, with the part it names: what a later run must find and leave as it is."""
    found = {}
    for commit in workspace.glob("stages/*/*/decided-*.json"):
        for path in (commit, commit.parent / json.loads(commit.read_bytes())["part"]):
            found[str(path.relative_to(workspace))] = path.stat().st_mtime_ns
    return found


def count(workspace: Path, pattern: str) -> int:
    return sum(1 for _ in workspace.glob(pattern))


# Where each kill falls: what must have grown in the workspace, by how much at least and at most, and then up to how
# many seconds later. Starting Prefect takes about 10 s, screening 2 s, candidates 6 s, publishing 1 s.
KILLS: Final[list[tuple[str, str, int, int, float]]] = [
    ("start", "", 0, 0, 2.0),
    ("start", "", 0, 0, 9.0),
    ("screen", "stages/screen/*/measured-*.json", 1, 4, 0.2),
    ("screen", "stages/screen/*/measured-*.json", 1, 4, 0.2),
    ("screen", "stages/screen/*/decided-*.json", 1, 9, 0.1),
    ("candidates", "edits/*/*", 1, 15, 0.2),
    ("candidates", "stages/verify/*/measured-*.json", 1, 2, 0.2),
    ("candidates", "edits/*/*", 1, 20, 0.2),
    ("candidates", "stages/rank/*/decided-*.json", 1, 2, 0.05),
    ("candidates", "stages/*/*/decided-*.json", 6, 12, 0.05),
    ("publish", "stages/publish/*/decided-*.json", 1, 11, 0.1),
    ("publish", "tmp/dataset", 1, 1, 0.2),
    ("publish", "tmp/dataset/*/*.parquet", 1, 2, 0.02),
    ("publish", "datasets/demo/v1/manifest.json", 1, 1, 0.1),
]


def test_a_demo_killed_at_any_moment_is_finished_by_the_same_command(demo: Demo, tmp_path: Path) -> None:
    """SIGKILL to the command and to Prefect's temporary server, again and again, then once to the end."""
    chance = random.Random(7)
    workspace, fell = tmp_path / "workspace", list[str]()
    kept, edits = Times(), Times()
    for number, (where, grows, least, most, after) in enumerate(KILLS):
        before = count(workspace, grows) if grows else 0
        enough = before + chance.randint(least, most)
        with started(fedbench("demo", "-w", workspace), demo.env, tmp_path, tmp_path / f"log-{number}") as process:
            wait_until(
                lambda: process.poll() is not None or (count(workspace, grows) if grows else enough) >= enough,  # noqa: B023
                120,
                f"kill {number}, {where}",
                pause=0.002,
            )
            time.sleep(chance.uniform(0, after))  # the moment is meant to be any
            if process.poll() is None:
                fell.append(where)
            kill_group(process)
        now = times(workspace, "stages", "edits")
        assert kept.items() <= now.items(), f"kill {number}: what was finished before was written again"
        assert edits.items() <= now.items(), f"kill {number}: a stored edit was written again"
        kept, edits = finished_shards(workspace), times(workspace, "edits")
        if (workspace / "datasets").exists():
            shutil.rmtree(workspace / "datasets")  # so that the next one has something to publish
    print(f"\nkills fell in: {fell}", file=sys.__stderr__)
    assert len(fell) >= 12
    assert set(fell) == {"start", "screen", "candidates", "publish"}

    result = run(fedbench("demo", "-w", workspace), demo.env, tmp_path)
    assert result.returncode == 0, result.stderr
    assert kept.items() <= finished_shards(workspace).items()
    assert edits.items() <= times(workspace, "edits").items()
    assert tree(workspace / "datasets") == tree(demo.workspace / "datasets")
    assert count(workspace, "tmp/*") == 0
    assert run(fedbench("verify", workspace / "datasets" / "demo" / "v1"), demo.env, tmp_path).returncode == 0


# -- on a server --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """A Prefect server with our deployments and a worker, as docs tell a user to start them."""

    env: dict[str, str]
    folder: Path

    def prefect(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run([sys.executable, "-m", "prefect", *words], self.env, ROOT)

    def flow_runs(self) -> list[dict[str, Any]]:
        """What the server has recorded, sub-flows aside."""
        request = urllib.request.Request(
            f"{self.env['PREFECT_API_URL']}/flow_runs/filter", b"{}", {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return [found for found in json.load(answer) if not found["parent_task_run_id"]]


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    env = environment(
        folder / "home",
        PREFECT_API_URL=f"http://127.0.0.1:{port}/api",
        PREFECT_WORKER_QUERY_SECONDS="1",
    )
    here = Server(env, folder)
    prefect = [sys.executable, "-m", "prefect"]
    serve = [*prefect, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    work = [*prefect, "worker", "start", "--pool", "cpu", "--limit", "1"]
    with started(serve, env, ROOT, folder / "server.log"):
        wait_until(lambda: answers(f"{env['PREFECT_API_URL']}/health"), 120, "the server answers")
        result = run(fedbench("server", "deploy"), env, folder)
        assert result.returncode == 0, result.stdout + result.stderr
        with started(work, env, ROOT, folder / "worker.log"):
            yield here


def test_a_deployment_builds(server: Server) -> None:
    workspace = server.folder / "deployed"
    config = {"name": "deployed", "pools": [{"name": "samples"}], "limit": 2, "shard_size": 1}
    parameters = json.dumps({"workspace": str(workspace), "config": config})
    result = server.prefect("deployment", "run", "build-dataset/build", "--params", parameters, "--watch")
    assert result.returncode == 0, result.stdout + result.stderr + (server.folder / "worker.log").read_text()
    (found,) = [run_ for run_ in server.flow_runs() if run_["name"] == "deployed-v1"]
    assert found["state_type"] == "COMPLETED"
    assert run(fedbench("verify", workspace / "datasets/deployed/v1"), server.env, server.folder).returncode == 0


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({"shard_size": 0}, "config.shard_size"),
        ({"nope": 1}, "'nope'"),
        ({"rank": {"cut": {"top_k": "many"}}}, "config.rank.cut.top_k"),
    ],
)
def test_a_deployment_refuses_a_bad_parameter(server: Server, config: dict[str, Any], place: str) -> None:
    before = len(server.flow_runs())
    parameters = json.dumps({"config": config})
    result = server.prefect("deployment", "run", "build-dataset/build", "--params", parameters)
    assert result.returncode != 0
    assert place in result.stdout + result.stderr
    assert len(server.flow_runs()) == before


def test_a_build_on_a_server_that_is_set(server: Server) -> None:
    workspace = server.folder / "own"
    words = ["demo", "--set", "limit=2", "--set", "name=own", "-w", str(workspace)]
    result = run(fedbench(*words), server.env, server.folder)
    assert result.returncode == 0, result.stderr
    (found,) = [run_ for run_ in server.flow_runs() if run_["name"] == "own-v1"]
    assert found["state_type"] == "COMPLETED"
    # Its error is a line here too, and a failed run there.
    result = run(fedbench(*words, "--set", "max_failed=0", "--set", "seed=1", "-w", "/proc/nope"), server.env, ROOT)
    assert result.returncode == 7
    one_line(result.stderr)
