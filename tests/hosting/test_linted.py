"""What the makers' own tools say of the files in infra/: hadolint, and Docker Compose's client."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.hosting
INFRA = Path(__file__).parents[2] / "infra"


def program(name: str) -> str:
    found = shutil.which(name)
    return found or pytest.fail(f"no {name} here: run `make test-hosting`, which installs it")


def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run([program("hadolint"), INFRA / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_docker_compose_understands_the_file() -> None:
    command = [program("docker-compose"), "-f", INFRA / "compose.yaml", "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "it has no warnings either"
    told = json.loads(done.stdout)
    assert {"prefect", "worker", "studio", "store"} < told["services"].keys()
    assert told["services"]["worker"]["build"]["args"] == {"GPU": "0"}
    assert {port["host_ip"] for one in told["services"].values() for port in one.get("ports", ())} == {"127.0.0.1"}


def test_a_gpu_is_one_more_file() -> None:
    files = ["-f", INFRA / "compose.yaml", "-f", INFRA / "compose.gpu.yaml"]
    done = subprocess.run(
        [program("docker-compose"), *files, "config", "--format", "json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    worker = json.loads(done.stdout)["services"]["worker"]
    assert worker["build"]["args"] == {"GPU": "1"}
    assert worker["deploy"]["resources"]["reservations"]["devices"][0]["driver"] == "nvidia"
