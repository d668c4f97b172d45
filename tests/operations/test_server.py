"""Ten runs, scheduled and parameterized, through a real server with its workers: killed, refused, waiting, alerting."""

import json
import os
import signal
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from schemas.config import BuildConfig
from tasks.boards.answers import add
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.waiting import in_review
from tests.commands import environment, fedbench, free_port, run, started, wait_until
from tests.review.asking import answer, best

pytestmark = pytest.mark.slow

PLANTED = "sk-planted-0123456789abcdef"


def small(name: str, **more: Any) -> dict[str, Any]:
    """A config as a form gives it: two photos in two shards."""
    return {"name": name, "pools": [{"name": "samples", "params": {}}], "limit": 2, "shard_size": 1} | more


# Enough work, one shard after the other, to be killed in the middle of it.
LONG = small("long", limit=8, workers=1)


@dataclass
class Here:
    """A server that is up.

    Attributes:
        folder: Its workspaces lie there, and what it writes.
        pid: Of `fedbench server up`.
        told: What the alert address was sent.
    """

    folder: Path
    env: dict[str, str]
    pid: int
    told: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def ask(self, path: str, body: Any = None) -> Any:
        """One request to the API; 503, which SQLite gives when it is busy, is asked again."""
        data = None if body is None else json.dumps(body, default=str).encode()
        for _ in range(20):
            try:
                ask = urllib.request.Request(f"{self.env['PREFECT_API_URL']}/{path}", data)
                ask.add_header("Content-Type", "application/json")
                with urllib.request.urlopen(ask, timeout=30) as found:
                    return json.load(found)
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
        raise AssertionError("503 for ever")

    def start(self, deployment: str, parameters: dict[str, Any] | None = None, seconds: float = 0.0) -> str:
        """Schedule a run of a deployment; its id."""
        id_ = self.ask(f"deployments/name/{deployment}")["id"]
        when = datetime.now(UTC) + timedelta(seconds=seconds)
        state = {"type": "SCHEDULED", "state_details": {"scheduled_time": when.isoformat()}}
        made = self.ask(f"deployments/{id_}/create_flow_run", {"parameters": parameters or {}, "state": state})
        return str(made["id"])

    def state(self, id_: str) -> tuple[str, str, str]:
        """Type, name and message."""
        state = self.ask(f"flow_runs/{id_}")["state"]
        return state["type"], state["name"], state["message"] or ""

    def ended(self, id_: str, seconds: float = 400) -> tuple[str, str, str]:
        final = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
        wait_until(lambda: self.state(id_)[0] in final, seconds, f"run {id_} ends: {self.state(id_)}", pause=0.5)
        return self.state(id_)

    def processes(self, words: str) -> list[int]:
        """Our own processes (below `up`) whose command line says something."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                with suppress(OSError):
                    said = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    whose = (folder / "environ").read_bytes()
                    if words in said and f"PREFECT_HOME={self.env['PREFECT_HOME']}".encode() in whose:
                        found.append(int(folder.name))
        return found

    def engines(self) -> list[int]:
        """Processes that run flows."""
        return [pid for pid in self.processes("prefect") if pid not in self.processes("prefect server start")
                and pid not in self.processes("prefect worker start")]  # fmt: skip

    def begun(self, id_: str, workspace: Path) -> None:
        """Wait until a run has finished a shard's edits, and is at the next."""
        there = lambda: list(workspace.glob("stages/instruct/*/decided-*.json"))  # noqa: E731
        wait_until(there, 300, f"run {id_} is under way: {self.state(id_)}", pause=0.1)


class Alerts(BaseHTTPRequestHandler):
    """Takes alerts, at a secret path."""

    told: list[str] = []  # noqa: RUF012 - the fixture gives the class its own

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.told.append(json.loads(text)["text"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def alerts() -> Iterator[tuple[str, list[str]]]:
    Alerts.told = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Alerts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{PLANTED}", Alerts.told
    server.shutdown()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, alerts: tuple[str, list[str]]) -> Iterator[Here]:
    folder, port = tmp_path_factory.mktemp("up"), free_port()
    env = environment(
        folder / "workspace/prefect",
        PREFECT_WORKER_QUERY_SECONDS="1",
        FEDBENCH_ALERT_WEBHOOK=alerts[0],
        GEMINI_API_KEY=PLANTED,
        FEDBENCH_LOG="json",
    )
    command = fedbench("server", "up", "-w", folder / "workspace", "--port", str(port), "--workers", "2")
    with started(command, env, folder, folder / "up.log") as process:
        one = Here(folder, env | {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}, process.pid, alerts[1])
        wait_until(lambda: "Ctrl-C" in (folder / "up.log").read_text(), 300, "everything is up", pause=0.5)
        yield one
    assert one.processes("prefect") == []


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the command makes of the long config on its own."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "long.json").write_text(json.dumps(LONG))
    command = fedbench("build", "--config", folder / "long.json", "-w", folder / "workspace")
    made = run(command, environment(folder / "home"), folder, 400)
    assert made.returncode == 0, made.stderr
    return tree(folder / "workspace/datasets/long/v1")


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_up_says_where_the_first_is(here: Here) -> None:
    again = run(fedbench("server", "up", "-w", here.workspace), here.env, here.folder)
    assert again.returncode == 0
    (line,) = again.stdout.splitlines()
    assert here.env["PREFECT_API_URL"].removesuffix("/api") in line
    assert str(here.pid) in line


def test_deploying_again_changes_nothing(here: Here) -> None:
    before = [sorted(one["name"] for one in here.ask(f"{kind}/filter", {})) for kind in ("deployments", "automations")]
    for words in (["server", "deploy"], ["server", "automations"]):
        again = run(fedbench(*words), here.env, here.folder)
        assert again.returncode == 0, again.stderr
    after = [sorted(one["name"] for one in here.ask(f"{kind}/filter", {})) for kind in ("deployments", "automations")]
    assert before == after
    assert len(after[0]) == 6
    pools = {pool["name"]: pool["concurrency_limit"] for pool in here.ask("work_pools/filter", {})}
    assert pools == {"cpu": None, "gpu": 1}


def test_runs_are_scheduled_parameterized_and_seen(here: Here) -> None:
    """Six of the ten: four builds by schedule (one of them on the GPU's pool), a rebuild, and scores of it."""
    runs = [
        here.start("build-dataset/build", {"config": small("benchmark", seed=seed)}, seconds=seed) for seed in range(3)
    ]
    runs.append(
        here.start("build-dataset/grow-training-set",
                   {"config": small("grown"), "workspace": str(here.folder / "grown")}, seconds=2)
    )  # fmt: skip
    for one in runs:
        assert here.ended(one)[:2] == ("COMPLETED", "Completed"), here.state(one)
    rebuilt = here.start("rebuild-benchmark/rebuild-benchmark")  # its defaults: the run `benchmark`
    assert here.ended(rebuilt)[0] == "COMPLETED", here.state(rebuilt)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    assert (here.workspace / "datasets/benchmark" / day / "manifest.json").exists()
    scores = {"name": "s", "dataset": "benchmark/v1", "editors": [{"called": "copy", "adapter": {"name": "copy"}}],
              "measure": {"distance": None}, "cut": {"gain": "au"}}  # fmt: skip
    scored = here.start("score-editors/score-editors", {"config": scores})
    assert here.ended(scored)[0] == "COMPLETED", here.state(scored)
    shown = {one["key"]: one["data"] for one in here.ask("artifacts/latest/filter", {})}
    kinds = ("funnel", "rates", "costs", "sheet", "report")
    assert {f"{kind}-benchmark" for kind in kinds} | {"diff-benchmark", "scores-s"} <= shown.keys()
    assert "data:image/jpeg;base64," in shown["sheet-benchmark"]
    link = shown["report-benchmark"].partition("](")[2].rstrip(")")
    with urllib.request.urlopen(link, timeout=10) as page:
        assert b"<html" in page.read()


def test_a_bad_parameter_is_refused_in_words(here: Here) -> None:
    before = len(here.ask("flow_runs/filter", {}))
    wrong = json.dumps({"config": small("bad", seed=-1)})
    command = [sys.executable, "-m", "prefect", "deployment", "run", "build-dataset/build", "--params", wrong]
    told = run(command, here.env | {"COLUMNS": "300"}, here.folder)
    assert told.returncode != 0
    assert "config.seed" in told.stdout
    assert "-1 is less than the minimum of 0" in told.stdout
    with pytest.raises(urllib.error.HTTPError, match="409"):
        here.start("build-dataset/build", {"worksapce": "elsewhere"})
    assert len(here.ask("flow_runs/filter", {})) == before
    # What no schema can say is checked by the run, and its message is the line.
    run_ = here.start("build-dataset/build", {"config": small("bad", pools=[{"name": "nope", "params": {}}])})
    kind, name, message = here.ended(run_)
    assert (kind, name) == ("FAILED", "Failed")
    assert message.startswith("unknown")
    assert "Traceback" not in message


def test_a_killed_run_is_crashed_and_the_next_finishes_with_the_same_bytes(
    here: Here, expected: dict[str, bytes]
) -> None:
    workspace = here.folder / "killed"
    parameters = {"config": LONG, "workspace": str(workspace)}
    first = here.start("build-dataset/build", parameters)
    here.begun(first, workspace)
    for pid in here.engines():
        os.kill(pid, signal.SIGKILL)
    assert here.ended(first, 60)[:2] == ("CRASHED", "Crashed")
    again = here.start("build-dataset/build", parameters)
    assert here.ended(again)[0] == "COMPLETED", here.state(again)
    assert tree(workspace / "datasets/long/v1") == expected


def test_a_lost_run_is_marked_by_its_missing_heartbeat(here: Here, expected: dict[str, bytes]) -> None:
    """Worker and run die together, so nobody is left to say so: the automation does, and the worker is back."""
    workspace = here.folder / "lost"
    parameters = {"config": LONG, "workspace": str(workspace)}
    first = here.start("build-dataset/build", parameters)
    here.begun(first, workspace)
    for pid in [*here.processes("worker start --pool cpu"), *here.engines()]:
        os.kill(pid, signal.SIGKILL)
    assert here.state(first)[0] == "RUNNING"
    kind, name, message = here.ended(first, 240)
    assert (kind, name) == ("CRASHED", "Crashed")
    assert "heartbeat" in message
    under_way = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}
    wait_until(lambda: not here.ask("flow_runs/filter", under_way), 60, "so is its sub-flow", pause=1)
    again = here.start("build-dataset/build", parameters)
    assert here.ended(again)[0] == "COMPLETED", here.state(again)
    assert tree(workspace / "datasets/long/v1") == expected
    assert "cpu worker ended" in (here.folder / "up.log").read_text()


class Board(BaseHTTPRequestHandler):
    """A Label Studio with three people and no project: what they say lies in the workspace already."""

    def do_GET(self) -> None:
        people = [{"id": number, "email": f"ann{number}@fedbench.local"} for number in (1, 2, 3)]
        self._say(people if self.path.startswith("/api/users") else {"results": [], "next": None})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._say({"access": "a", "refresh": "r"})

    def _say(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def test_a_build_waits_for_people_and_collecting_lets_it_go_on(here: Here) -> None:
    workspace = here.folder / "reviewed"
    settings = small(
        "reviewed", limit=4, review={"measure": {"board": {"name": "label_studio"}}, "gold": 0, "audit": 0}
    )
    parameters = {"config": settings, "workspace": str(workspace)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Board)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (workspace / "review").mkdir(parents=True)
    access = {"url": f"http://127.0.0.1:{server.server_port}", "people": {"admin": {"email": "a", "token": "t"}}}
    (workspace / "review/access.json").write_text(json.dumps(access))
    (workspace / "review/access.json").chmod(0o600)
    waits = here.start("build-dataset/build", parameters)
    kind, name, message = here.ended(waits)
    assert (kind, name) == ("COMPLETED", "WaitingForReview")
    assert message.startswith("waiting for review: people have yet to decide")
    collected = here.start("collect-review/collect-review", parameters)
    assert here.ended(collected)[:2] == ("COMPLETED", "WaitingForReview")
    opened = open_run(workspace, BuildConfig.model_validate(settings), extend=False)
    asked = list(in_review(opened.executor, opened.executor.commits()))
    assert asked
    add(Store(workspace), [answer(one, who, best(one)) for one in asked for who in ("ann1", "ann2", "ann3")])
    again = here.start("collect-review/collect-review", parameters)
    assert here.ended(again)[:2] == ("COMPLETED", "Completed"), here.state(again)
    assert (workspace / "datasets/reviewed/v1/manifest.json").exists()
    server.shutdown()


def test_who_wants_to_know_was_told(here: Here) -> None:
    """After all of the above: by the address, and in the terminal."""
    for words in ("is Failed. unknown", "is Crashed.", "is WaitingForReview. waiting for review"):
        wait_until(lambda: [one for one in here.told if words in one], 60, f"{words}: {here.told}")  # noqa: B023
    waiting = [one for one in here.told if "WaitingForReview" in one]
    assert len(waiting) == 1, "what only collects does not alert"
    said = (here.folder / "up.log").read_text()
    for words in ("Failed. unknown", "Crashed.", "WaitingForReview. waiting for review"):
        assert words in said


def test_no_secret_is_anywhere(here: Here) -> None:
    """Logs, messages, parameters and the database: a planted key is in none of them."""
    for path in [*here.workspace.glob("prefect/*.log"), here.folder / "up.log"]:
        assert PLANTED not in path.read_text(errors="replace"), path
    for path in here.workspace.glob("prefect/prefect.db*"):
        assert PLANTED.encode() not in path.read_bytes(), path


def test_nothing_outlives_a_killed_up(here: Here) -> None:
    """With a run under way; whoever starts it again finds everything there."""
    workspace = here.folder / "orphaned"
    one = here.start("build-dataset/build", {"config": LONG, "workspace": str(workspace)})
    here.begun(one, workspace)
    os.kill(here.pid, signal.SIGKILL)
    wait_until(lambda: not here.processes("prefect"), 30, "all ended")
