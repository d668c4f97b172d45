"""A Ray cluster for the time of a build: one that is there, or one of our own on this machine, closed to others."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final
from urllib.parse import urlsplit

from flows.parts import Request
from flows.server import address
from schemas.config import BuildConfig
from tasks.engine.errors import ConfigError, WorkspaceError

# Read by Ray when it is imported or starts; what a user has set stays. Without the last, a shard that never fits into
# memory would be begun anew for ever.
_ALWAYS: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_task_oom_retries": "3"}
# For a Ray of our own. Whatever its name says, the first makes Ray listen on the loopback address alone.
_CLOSED: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}
_STORE_BYTES: Final = 128 * 2**20  # shards travel as names; nothing big ever lies in Ray's object store
# Cleans up when our end of its pipe closes, however that comes about: Ray leaves its folder, and for a minute helpers
# that write logs there. Who has a file of the folder open is one of them.
_JANITOR: Final = """
cat >/dev/null; sleep 1
find /proc/[0-9]*/fd -lname "$1/*" 2>/dev/null | cut -d/ -f3 | sort -u | xargs -r kill -9 2>/dev/null
rm -rf -- "$1"
"""


def check(config: BuildConfig) -> None:
    """Whether a build could run on Ray at all, before anything is started.

    Raises:
        ConfigError: The extra is not installed, or there is no Prefect server that workers could talk to.
    """
    if config.runner != "ray":
        return
    _settle(config)
    try:
        import prefect_ray  # noqa: F401
        import ray  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"runner: ray needs the Ray extra: {error}", "make ray, or pip install --no-deps -r requirements/ray.txt"
        ) from None
    if not address():
        raise ConfigError(
            "runner: ray needs a Prefect server that its workers can reach, and none is set",
            "fedbench server up (or a server of yours), and PREFECT_API_URL=http://HOST:4200/api",
        )


@contextmanager
def connected(config: BuildConfig, requests: Sequence[Request]) -> Iterator[None]:
    """Within it, this process is a driver of the cluster; at its end, whatever it left running there is ended.

    Args:
        config: The build's.
        requests: What its parts ask of a node.

    Raises:
        ConfigError: See `check`; or no node meets a request, or nodes elsewhere cannot reach the Prefect server.
        WorkspaceError: Ray did not start, or its cluster cannot be reached.
    """
    check(config)
    import ray

    if ray.is_initialized():  # whoever did it, ends it
        yield
        return
    folder = tempfile.mkdtemp(prefix="fedbench-ray-", dir="/tmp")  # its sockets' paths must be short
    janitor = subprocess.Popen(
        ["sh", "-c", _JANITOR, "sh", folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        with _our_signals():
            _start(config, folder)
        _check_nodes(config, requests, ray.nodes())
        # Ray prints there what befell a worker, and JSON may be expected.
        with redirect_stdout(sys.stderr):
            yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
        janitor.terminate()
        janitor.communicate()


@contextmanager
def in_words(shard: int) -> Iterator[None]:
    """Within it, an error of Ray's becomes one of ours.

    Raises:
        WorkspaceError: Ray gave up on the shard.
    """
    import ray

    try:
        yield
    except ray.exceptions.RayError as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise WorkspaceError(
            f"Ray gave up on shard {shard}: {first}",
            "is there memory enough (ray.needs)? what is done stays: build again",
        ) from None


def _settle(config: BuildConfig) -> None:
    """Set what Ray reads from the environment, here and in what it starts."""
    for name, value in _ALWAYS.items():
        os.environ.setdefault(name, value)
    if not _address(config):
        for name, value in _CLOSED.items():
            os.environ.setdefault(name, value)
        # In the environment, and not as Ray would by itself in a file under the home folder.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _address(config: BuildConfig) -> str | None:
    return config.ray.address or os.environ.get("RAY_ADDRESS") or None


def _start(config: BuildConfig, folder: str) -> None:
    import ray

    where = _address(config)
    settings: dict[str, Any] = {"namespace": "fedbench", "log_to_driver": False, "logging_level": "ERROR"}
    if where is None:
        settings |= {
            "num_cpus": config.workers,
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
            "_temp_dir": folder,
        }
    try:
        if where and ":" in where:  # Ray would try for minutes
            host, _, port = where.rpartition(":")
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(where or "local", **settings)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        first = str(error).strip().splitlines()[0]
        if where is None:
            raise WorkspaceError(f"Ray did not start: {first}", "runner: processes does without") from None
        raise WorkspaceError(
            f"no Ray cluster can be reached at {where}: {first}", "check ray.address and RAY_AUTH_TOKEN"
        ) from None


def _check_nodes(config: BuildConfig, requests: Sequence[Request], nodes: Sequence[dict[str, Any]]) -> None:
    """Refuse what would wait for ever."""
    alive = [node for node in nodes if node["Alive"]]
    have = [(node["Resources"].get("CPU", 0), node["Resources"].get("GPU", 0), _gb(node)) for node in alive]
    for asked in requests:
        if not config.ray.wait_for_nodes and not any(
            all(there >= wanted for there, wanted in zip(each, asked, strict=True)) for each in have
        ):
            largest = "; ".join(sorted({f"{cpus:g} CPU, {gpus:g} GPU, {memory:.1f} GB" for cpus, gpus, memory in have}))
            raise ConfigError(
                f"no node of the Ray cluster has {asked.cpus:g} CPU, {asked.gpus:g} GPU and {asked.memory_gb:g} GB, "
                f"as ray.needs asks; there are: {largest}",
                "lower ray.needs (or raise `workers`), or set ray.wait_for_nodes if an autoscaler brings some",
            )
    api = urlsplit(address()).hostname
    if len({node["NodeManagerHostname"] for node in alive}) > 1 and api in ("localhost", "127.0.0.1", "::1"):
        raise ConfigError(
            f"nodes of the Ray cluster on other machines cannot reach the Prefect server at {address()}",
            "give it an address that they can, in PREFECT_API_URL",
        )


def _gb(node: dict[str, Any]) -> float:
    return float(node["Resources"].get("memory", 0)) / 1e9


@contextmanager
def _our_signals() -> Iterator[None]:
    """Afterwards our handlers are in place again: Ray puts its own there, which would drain for long."""
    ours = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if ours else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
