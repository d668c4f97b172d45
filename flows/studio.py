"""Label Studio on this machine: installed into a venv of its own, with settings that keep it closed and quiet."""

import json
import os
import secrets
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from tasks.boards.access import ADMIN, Access, Person, read_access, write_access
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.folder_lock import in_turn
from tasks.engine.secrets import secret
from tasks.engine.store import Store, disk

ROOT: Final = Path(__file__).parents[1]
VENV: Final = ROOT / ".venv-studio"
SERVER: Final = ROOT / "infra" / "studio" / "server.py"
LOCKS: Final = (ROOT / "requirements" / "studio.txt", ROOT / "requirements" / "hosting.txt")
IMAGES: Final = "review/images"
DATA: Final = "review/studio"

# What a user has set (PostgreSQL, a host name, S3) stays as it is.
SETTINGS: Final[Mapping[str, str]] = {
    "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
    "ALLOWED_HOSTS": "127.0.0.1,localhost",
    "CORS_ALLOW_ALL_ORIGINS": "false",
    # A look at a task reserves it for so many seconds (by default a day).
    "TASK_LOCK_TTL": "60",
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    # The server fetches tips of the day for its start page; a proxy that is not there stops that.
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}


def install() -> Path:
    """The venv's Python; made and filled first if it is not as the lock says. Takes minutes and a gigabyte, once.

    Raises:
        WorkspaceError: pip or the disk did not go along.
    """
    venv = Path(os.environ.get("FEDBENCH_STUDIO_VENV", VENV))
    python, stamp = venv / "bin" / "python", venv / "lock.txt"
    lock = "".join(path.read_text() for path in LOCKS)
    if stamp.exists() and stamp.read_text() == lock:
        return python
    with in_turn(venv / "installing"):  # two that fill one venv at once leave a broken one
        if not (stamp.exists() and stamp.read_text() == lock):
            _fill(venv, python)
            with disk(stamp):
                stamp.write_text(lock)
    return python


def _fill(venv: Path, python: Path) -> None:
    steps = [
        [os.environ.get("PYTHON", "python3.11"), "-m", "venv", str(venv)],
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *(f"--requirement={path}" for path in LOCKS)],
    ]
    for step in steps[1:] if python.exists() else steps:
        try:
            done = subprocess.run(step, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            raise WorkspaceError(f"cannot run {step[0]}: {error.strerror}", "set PYTHON to a Python 3.11") from None
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no words"])[-1]
            raise WorkspaceError(f"cannot install Label Studio into {venv}: {why}", "mend it and run again")


def environment(workspace: Path) -> dict[str, str]:
    """What the server runs with. Beside the image folder it can read no file for anybody."""
    mine = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(workspace / DATA),
        "LOCAL_FILES_SERVING_ENABLED": "true",
        "LOCAL_FILES_DOCUMENT_ROOT": str(workspace / IMAGES),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FEDBENCH_", "PYTHON"))}
    return {**SETTINGS, **kept, **mine}


def make_accounts(store: Store, python: Path, url: str, annotators: int) -> dict[str, tuple[str, str]]:
    """Make admin and annotators, as far as they are not there; keep their tokens.

    Returns:
        By name: address and password of the accounts that are new. A password is nowhere else.
    """
    access = read_access(store)
    names = [ADMIN, *(f"ann{number}" for number in range(1, annotators + 1))]
    chosen = secret("FEDBENCH_STUDIO_PASSWORD")
    wanted: list[dict[str, Any]] = []
    for name in names:
        known = access.people.get(name)
        email = (known.email if known else "") or f"{name}@fedbench.local"
        if name == ADMIN:
            email = os.environ.get("FEDBENCH_STUDIO_ADMIN") or email
        wanted.append(
            {
                "name": name,
                "email": email.lower(),
                "password": (chosen if name == ADMIN else "") or secrets.token_urlsafe(12),
                "admin": name == ADMIN,
                "token": known is None or known.email != email.lower() or not known.token.get_secret_value(),
            }
        )
    made = _ask(store, python, wanted)
    people = dict(access.people)
    for name, account in made.items():
        before = people.get(name, Person(email=""))
        token = SecretStr(account["token"]) if "token" in account else before.token
        people[name] = Person(email=account["email"], token=token)
    write_access(store, Access(url=url, people=people, secret=access.secret))
    return {
        one["name"]: (one["email"], "" if one["name"] == ADMIN and chosen else one["password"])
        for one in wanted
        if made[one["name"]]["fresh"]
    }


def _ask(store: Store, python: Path, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    with disk(store.path(DATA)):
        for folder in (DATA, IMAGES):
            store.path(folder).mkdir(parents=True, exist_ok=True)
        store.path(DATA).chmod(0o700)
    done = subprocess.run(
        [str(python), str(SERVER), "people"],
        input=json.dumps(wanted),
        env=environment(store.root),
        cwd=store.path(DATA),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no words"])[-1]
        raise WorkspaceError(f"Label Studio cannot make accounts: {why}", "see its folder, or its database's settings")
    made: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return made


def check_port(port: int) -> None:
    """Label Studio would take another one in silence.

    Raises:
        ConfigError: Somebody listens there.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise ConfigError(f"port {port} is taken", "stop what runs there, or give --port") from None


def command(python: Path, port: int, workers: int = 0) -> list[str]:
    """The command line of the server: Django's for one machine, or gunicorn with so many processes for a team."""
    if not workers:
        return [str(python), str(SERVER), "serve", str(port)]
    where = ["--chdir", str(SERVER.parent), "--bind", f"127.0.0.1:{port}"]
    return [str(python), "-m", "gunicorn", *where, "--workers", str(workers), "--threads", "4", "server:application"]


def serve(store: Store, python: Path, port: int, workers: int) -> None:
    """Become the server; this process ends when it does."""
    os.chdir(store.path(DATA))
    line = command(python, port, workers)
    os.execve(line[0], line, environment(store.root))
