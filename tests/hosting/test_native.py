"""The processes of infra/compose.yaml without containers: Prefect's server on Postgres, deployments, a worker, a build.

Each is started with the command, the variables and the secret files that the compose file gives it, behind the same
entry point; only host names and ports are this machine's.
"""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.commands import ROOT, environment, fedbench, free_port, run, started, wait_until
from tests.fakes import tree
from tests.hosting.postgres import Postgres, postgres

pytestmark = [pytest.mark.hosting]
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "infra/compose.yaml").read_text())
SETS: Final = {"name": "demo", "pools": [{"name": "samples"}], "shard_size": 2, "limit": 6}


@dataclass
class Hosted:
    """The running service, and how to start more of it.

    Attributes:
        folder: Logs, secrets, homes.
        database: Under the server.
        port: Of the server.
    """

    folder: Path
    database: Postgres
    port: int
    stack: ExitStack

    def environment(self, service: str, **more: str) -> dict[str, str]:
        """What the compose file gives a service, with this machine's places."""
        here = f"http://127.0.0.1:{self.port}"
        told = {
            name: value.replace("/run/secrets/", f"{self.folder}/secrets/")
            .replace("http://prefect:4200", here)
            .replace("http://127.0.0.1:4200", here)
            for name, value in COMPOSE["services"][service]["environment"].items()
        }
        if service == "prefect":
            told["PREFECT_SERVER_DATABASE_HOST"] = "127.0.0.1"
            told["PREFECT_SERVER_DATABASE_PORT"] = str(self.database.port)
        plain = environment(self.folder / f"home-{service}", FEDBENCH_ROOT=str(ROOT))
        binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return plain | told | {"PATH": binaries} | more

    def command(self, service: str, **changed: str) -> list[str]:
        """Its command line behind the entry point, with some words exchanged."""
        words = [changed.get(str(word).strip("-"), str(word)) for word in COMPOSE["services"][service]["command"]]
        return [str(ROOT / "infra/entrypoint.sh"), *words]

    def start(self, service: str, command: list[str], **more: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"{service}.log"
        return self.stack.enter_context(started(command, self.environment(service, **more), self.folder, log))

    def auth(self) -> dict[str, str]:
        """For `prefect` commands of this test."""
        secret = (self.folder / "secrets/prefect_auth").read_text().strip()
        return self.environment("worker") | {"PREFECT_API_AUTH_STRING": secret}


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    folder = tmp_path_factory.mktemp("hosted")
    (folder / "infra").mkdir()
    script = folder / "infra/secrets.sh"
    script.write_bytes((ROOT / "infra/secrets.sh").read_bytes())
    subprocess.run(["sh", script], check=True, capture_output=True)
    (folder / "infra/secrets").rename(folder / "secrets")
    for name in ("gemini_api_key", "studio_token"):
        (folder / "secrets" / name).chmod(0o600)
        (folder / "secrets" / name).write_text(f"{name} of a test\n")
    password = (folder / "secrets/prefect_db_password").read_text()
    with postgres(folder / "postgres", "prefect", password) as database, ExitStack() as stack:
        one = Hosted(folder, database, free_port(), stack)
        one.start("prefect", one.command("prefect", **{"0.0.0.0": "127.0.0.1", "4200": str(one.port)}))
        wait_until(lambda: answers(f"http://127.0.0.1:{one.port}/api/ready"), 180, "the server is ready", pause=0.5)
        deploy = run([*one.command("deploy")[:1], "sh", "-euc", COMPOSE["services"]["deploy"]["command"][-1]],
                     one.environment("deploy"), ROOT)  # fmt: skip
        assert deploy.returncode == 0, deploy.stderr[-1000:]
        yield one


def test_the_server_keeps_its_records_in_postgres_and_asks_who_it_is(hosted: Hosted) -> None:
    assert int(hosted.database.ask("select count(*) from deployment")) >= 3
    assert not list(hosted.folder.rglob("prefect.db"))
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"http://127.0.0.1:{hosted.port}/api/admin/version", timeout=5)


def flow_run(hosted: Hosted, workspace: Path, **more: Any) -> str:
    """Start the deployment `build` and return the run's id."""
    parameters = json.dumps({"workspace": str(workspace), "config": SETS | more})
    made = run(["prefect", "deployment", "run", "build-dataset/build", "--params", parameters], hosted.auth(), ROOT)
    assert made.returncode == 0, made.stdout + made.stderr
    return hosted.database.ask("select id from flow_run where parent_task_run_id is null order by created desc limit 1")


def state(hosted: Hosted, run_id: str) -> str:
    return hosted.database.ask(f"select state_type from flow_run where id = '{run_id}'")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the command makes of the same config on its own."""
    folder = tmp_path_factory.mktemp("alone")
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(SETS))
    done = run(fedbench("build", "--config", config, "-w", folder / "w"), environment(folder / "home"), folder, 300)
    assert done.returncode == 0, done.stderr
    return tree(folder / "w" / "datasets")


def test_a_build_through_server_postgres_and_worker_gives_the_same_bytes(
    hosted: Hosted, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """With the database restarted under the server midway, and a key that reaches the run through its file alone."""
    hosted.start("worker", [word for word in hosted.command("worker") if word != "--with-healthcheck"])
    run_id = flow_run(hosted, tmp_path / "w")
    wait_until(lambda: list((tmp_path / "w").glob("stages/screen/*/decided-*")), 240, "screening has begun", pause=0.2)
    hosted.database.stop("immediate")
    hosted.database.start()
    wait_until(lambda: state(hosted, run_id) in ("COMPLETED", "FAILED", "CRASHED"), 240, "the run ended", pause=1)
    if state(hosted, run_id) != "COMPLETED":  # the outage may cost the record of the run, never the work
        run_id = flow_run(hosted, tmp_path / "w")
        wait_until(lambda: state(hosted, run_id) in ("COMPLETED", "FAILED", "CRASHED"), 240, "it ended", pause=1)
    assert state(hosted, run_id) == "COMPLETED", (hosted.folder / "worker.log").read_text()[-3000:]
    assert tree(tmp_path / "w" / "datasets") == expected
    recorded = int(hosted.database.ask("select count(*) from task_run"))
    assert recorded > 3
    print(f"\ntask runs in Postgres: {recorded}", file=sys.__stderr__)


def test_no_secret_is_in_the_database_or_a_log(hosted: Hosted) -> None:
    where = ["-h", str(hosted.database.folder), "-p", str(hosted.database.port), "-U", "prefect", "prefect"]
    dump = hosted.database.run("pg_dump", *where)
    said = "".join(path.read_text(errors="replace") for path in hosted.folder.glob("*.log"))
    words = [
        word
        for path in (hosted.folder / "secrets").iterdir()
        for word in re.findall("[0-9a-f]{48}|.+ of a test", path.read_text())
    ]
    assert len(words) >= 10
    assert not [word for word in words if word in dump], "a secret is in the database"
    assert not [word for word in words if word in said], "a secret is in a log"
