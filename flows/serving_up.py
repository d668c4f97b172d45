"""`fedbench server up`: what is started in which order, what is said meanwhile, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path
from types import FrameType
from typing import Any, Final

from flows.console import ERR, OUT, print_json
from flows.places import CPU, GPU
from flows.report_server import reports_served
from flows.server import trouble
from flows.serving import Child, environment, only_one, port_for, running, wait_until_up, watch
from flows.states import STOPPED, WAITING_FOR_REVIEW
from tasks.engine.errors import WorkspaceError
from tasks.engine.places import in_bucket, shown

_TOLD: Final = ("Failed", "Crashed", STOPPED, WAITING_FOR_REVIEW)


def serve(workspace: Path, home: Path | None, port: int, workers: int, gpus: int, *, as_json: bool) -> None:
    """Start everything, say where, and watch it until somebody stops us.

    Raises:
        WorkspaceError: Something does not start, or does not stay.
    """
    address = shown(workspace.absolute())
    # A bucket's folder of copies goes back there; the database stays here, beside it.
    home = (home or (workspace.parent if in_bucket(address) else workspace) / "prefect").absolute()
    with only_one(home) as ours:
        if not ours:
            _say_where(running(home), home, as_json=as_json)
            return
        (home / "server.json").unlink(missing_ok=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        with ExitStack() as stack:
            reports = stack.enter_context(reports_served(workspace.absolute()))
            port = port_for(port)
            env = environment(home, address, port, reports)
            # A list that grows: whatever is started is ended, the last first, however we end.
            children: list[Child] = []
            stack.callback(_stop, children)
            _start(children, home, env, workers, gpus)
            api = env["PREFECT_API_URL"]
            where = {"url": api.removesuffix("/api"), "api": api, "reports": reports, "pid": os.getpid()}
            (home / "server.json").write_text(json.dumps(where))
            _say_where(where, home, as_json=as_json)
            watch(children, _tell, _alerts(api))


def _start(children: list[Child], home: Path, env: dict[str, str], workers: int, gpus: int) -> None:
    url, prefect = env["PREFECT_API_URL"], [sys.executable, "-m", "prefect"]

    # The database's password is the server's alone.
    public = {name: value for name, value in env.items() if not name.endswith("DATABASE_CONNECTION_URL")}

    def start(name: str, *command: str) -> Child:
        chosen = env if name == "server" else public
        child = Child(name, [*prefect, *command], home / f"{name.replace(' ', '-')}.log", chosen)
        children.append(child)
        child.start()
        return child

    ERR.print("starting the server; the first time it makes its database", style="dim")
    port = url.removesuffix("/api").rpartition(":")[2]
    wait_until_up(start("server", "server", "start", "--host", "127.0.0.1", "--port", port), url)
    ERR.print("deploying", style="dim")
    deploy = [sys.executable, "-m", "flows.cli", "server", "deploy", "--gpus", str(gpus)]
    done = subprocess.run(deploy, env=public, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WorkspaceError(f"cannot deploy: {' '.join(done.stderr.split())}", f"see {home}")
    for pool, limit in ((CPU, workers), (GPU, gpus)):
        start(f"{pool} worker", "worker", "start", "--pool", pool, "--type", "process", "--limit", str(limit))


def _stop(children: list[Child]) -> None:
    for child in reversed(children):
        child.stop()


def _leave(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # ending takes seconds, and once is enough
    raise KeyboardInterrupt


def _say_where(where: dict[str, Any], home: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(where)
        sys.stdout.flush()
    elif where.get("pid") not in (None, os.getpid()):
        OUT.out(f"already up at {where['url']} (process {where['pid']}, folder {home})", highlight=False)
    elif not where:
        OUT.out(f"another `fedbench server up` is just starting with the folder {home}", highlight=False)
    else:
        OUT.out(f"server   {where['url']}\nAPI      {where['api']}   (as PREFECT_API_URL)", highlight=False)
        OUT.out(f"reports  {where['reports']}\nlogs     {home}\nCtrl-C ends all of it.", highlight=False)


def _tell(words: str) -> None:
    ERR.print(words, highlight=False, markup=False, soft_wrap=True)


def _alerts(api: str) -> Callable[[], None]:
    """Tells each end that somebody should know of, once; what was there before us is old news."""
    seen: set[str] | None = None

    def look() -> None:
        nonlocal seen
        if trouble(api):
            return  # the server is being started again; nothing is lost, the next look finds it
        wanted = {"state": {"name": {"any_": list(_TOLD)}}, "deployment_id": {"is_null_": False}}
        body = json.dumps({"flow_runs": wanted, "sort": "END_TIME_DESC", "limit": 50}).encode()
        ask = urllib.request.Request(f"{api}/flow_runs/filter", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(ask, timeout=10) as answer:
                runs = {run["state"]["id"]: run for run in json.load(answer)}
        except (OSError, HTTPException, ValueError):
            return  # busy, or gone since: as above
        for id_, run in runs.items():
            # Collecting answers also ends waiting, every few minutes: that is no news.
            news = run["state"]["name"] != WAITING_FOR_REVIEW or "build" in run["tags"]
            if news and seen is not None and id_ not in seen:
                _tell(f"{run['name']}: {run['state']['name']}. {' '.join((run['state']['message'] or '').split())}")
        seen = (seen or set()) | runs.keys()

    return look
