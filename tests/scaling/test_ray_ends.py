"""How builds on Ray end otherwise than well: stopped, killed, given up by Ray; nothing is left behind."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import fakes
from tests.commands import ROOT, fedbench, one_line, run, started, wait_until
from tests.scaling import plugged
from tests.scaling.conftest import Two, cmdline, family
from tests.scaling.test_ray import FEW, command, settings

pytestmark = pytest.mark.ray


def alive(pids: Sequence[int]) -> list[str]:
    """Those of the processes that live, by how they call themselves; a zombie does not."""
    return [name for pid in pids if (name := cmdline(pid))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_is_stopped_takes_its_ray_with_it(
    tmp_path: Path, prefect_api: dict[str, str], number: signal.Signals
) -> None:
    workspace = tmp_path / "workspace"
    with started(command(tmp_path, settings(FEW)), prefect_api, ROOT, tmp_path / "log") as process:
        wait_until(lambda: plugged.asked(workspace) or process.poll() is not None, 600, "the first shard", pause=0.2)
        assert process.poll() is None, (tmp_path / "log").read_text()
        pids = family(process.pid)[1:]
        names = alive(pids)
        for part in ("gcs_server", "raylet", "ray::run_shard"):
            assert any(part in name for name in names), names
        (folder,) = {found for name in names for found in re.findall(r"/[t]mp/fedbench-ray-\w+", name)}
        os.kill(process.pid, number)
        assert process.wait(30) == (130 if number is signal.SIGINT else -number)
        wait_until(lambda: not alive(pids), 60, "all its processes are gone")
        wait_until(lambda: not Path(folder).exists(), 60, "its folder is gone")
    if number is signal.SIGINT:
        assert (tmp_path / "log").read_text().strip() == "fedbench: stopped; run the same command again to go on"


def test_the_demo_is_the_same_also_when_ray_gave_up_once(tmp_path: Path, two_nodes: Two) -> None:
    """With real models; the first build on Ray may not begin a shard anew, and loses a worker."""
    demo = [*fedbench("demo"), "--set", "limit=8", "-w"]
    plain = run([*demo, str(tmp_path / "threads"), "--json"], two_nodes.env, tmp_path, timeout=900)
    assert plain.returncode == 0, plain.stderr
    on_ray = [*demo, str(tmp_path / "ray"), "--set", "runner=ray", "--json"]
    # Ray itself tells of the dead worker, in colours and on stderr.
    words = [*on_ray, "--set", "ray.tries=0"]
    with (tmp_path / "out").open("w") as out, (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(words, env=two_nodes.env, cwd=tmp_path, stdout=out, stderr=log)
    try:
        wait_until(lambda: two_nodes.at_work() or process.poll() is not None, 600, "a worker at work", pause=0.2)
        os.kill(two_nodes.at_work()[0], signal.SIGKILL)
        assert process.wait(300) == 7, (tmp_path / "log").read_text()
    finally:
        process.kill()
    assert (tmp_path / "out").read_text() == ""
    lines = (tmp_path / "log").read_text().splitlines()
    told = [line for line in lines if not re.match(r" *\d+\.\d s |.*raylet", line)]
    message, hint = one_line("\n".join(told))
    assert re.match(r"Ray gave up on shard \d: ", message)
    assert "build again" in hint
    again = run(on_ray, two_nodes.env, tmp_path, timeout=900)
    assert again.returncode == 0, again.stderr
    threads, ray = (Path(json.loads(done.stdout)["dataset"]) for done in (plain, again))
    assert fakes.tree(ray) == fakes.tree(threads)


def test_a_worker_with_another_gpu_makes_room_for_a_new_one(tmp_path: Path, two_nodes: Two) -> None:
    import ray

    ray.init(two_nodes.cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        remote = ray.remote(max_calls=0, max_retries=3)(plugged.with_another_gpu)
        first, second = ray.get(remote.remote(str(tmp_path / "pids")))
    finally:
        ray.shutdown()
    assert first != second


def test_a_build_says_what_ray_lacks(tmp_path: Path, two_nodes: Two) -> None:
    words = [*fedbench("demo"), "-w", str(tmp_path / "workspace"), "--set", "runner=ray"]
    needy = run([*words, "--set", "ray.needs={rank: {cpus: 9}}"], two_nodes.env, tmp_path, timeout=300)
    assert (needy.returncode, one_line(needy.stderr)[0]) == (
        2,
        "no node of the Ray cluster has 9 CPU, 0 GPU and 1 GB, as ray.needs asks; there are: 1 CPU, 0 GPU, 2.0 GB",
    )
    nowhere = run([*words, "--set", "ray.address=127.0.0.1:9"], two_nodes.env, tmp_path, timeout=300)
    assert nowhere.returncode == 7, nowhere.stderr
    assert one_line(nowhere.stderr)[0].startswith("no Ray cluster can be reached at 127.0.0.1:9: ")
    unset = {name: value for name, value in two_nodes.env.items() if name != "PREFECT_API_URL"}
    alone = run(words, unset, tmp_path)
    assert (alone.returncode, one_line(alone.stderr)[0]) == (
        2,
        "runner: ray needs a Prefect server that its workers can reach, and none is set",
    )
