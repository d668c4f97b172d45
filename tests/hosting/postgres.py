"""A Postgres of Debian's packages: a cluster of its own in a folder, on a free port of this machine."""

import os
import pwd
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands import free_port


def programs() -> Path:
    """The folder of Postgres's programs.

    Raises:
        pytest.fail: It is not installed.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.fail("no Postgres here: apt-get install -y --no-install-recommends postgresql")
    return found[-1].parent


@dataclass
class Postgres:
    """A cluster. It refuses to run as root, so root runs it as `postgres`."""

    folder: Path
    port: int
    password: str
    name: str

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self.run(
            "pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-w", "-o", options, "start"
        )

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def run(self, program: str, *words: str) -> str:
        return _as_postgres([str(programs() / program), *words])

    def ask(self, query: str) -> str:
        """The rows of a query, as psql prints them."""
        where = ["-h", str(self.folder), "-p", str(self.port), "-U", self.name, "-d", self.name]
        return self.run("psql", *where, "-Atc", query).strip()


def _as_postgres(command: Sequence[str]) -> str:
    user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **user)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr + done.stdout
    return str(done.stdout)


@contextmanager
def postgres(folder: Path, name: str, password: str) -> Iterator[Postgres]:
    """A running cluster with one owner and one database, both called `name`; from the net a password is asked for."""
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        postgres_user = pwd.getpwnam("postgres")
        os.chown(folder, postgres_user.pw_uid, postgres_user.pw_gid)
        for parent in folder.parents[:-2]:
            parent.chmod(parent.stat().st_mode | 0o011)
    cluster = Postgres(folder, free_port(), password, name)
    _as_postgres([str(programs() / "initdb"), "-D", str(folder / "data"), "-U", name, "--auth-local=trust",
                  "--auth-host=scram-sha-256", "--no-sync", "-E", "UTF8"])  # fmt: skip
    cluster.start()
    try:
        where = ["-h", str(folder), "-p", str(cluster.port), "-U", name]
        cluster.run("psql", *where, "-d", "postgres", "-qc", f"ALTER ROLE {name} PASSWORD '{password}'")
        cluster.run("createdb", *where, name)
        yield cluster
    finally:
        cluster.stop("immediate")
