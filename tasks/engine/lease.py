"""Who may write a workspace in a bucket: a small object, put on conditions, that lapses after a crash."""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tasks.engine.bucket import Bucket, Conflict, Got
from tasks.engine.errors import ConfigError, WorkspaceError

NAME: Final = "lease.json"
SECONDS: Final = "FEDBENCH_LEASE_S"
_HINT: Final = "run again when the other run has ended; what is stored is kept"


class Lease:
    """A lease on a workspace. Renewed four times in its length by a thread of its own, while it is held.

    The length, 60 s (ours), is `FEDBENCH_LEASE_S`. Ages are told by the store's clock alone.

    Attributes:
        workspace: The workspace's own name, given by whoever took the first lease; empty before.
        found: ETag of the object that this lease found, if nobody held it; None where there was none, else empty.
    """

    def __init__(self, bucket: Bucket, sleep: Callable[[float], object] = time.sleep) -> None:
        self._bucket, self._sleep = bucket, sleep
        self._token = secrets.token_hex(16)
        self._seconds = _seconds()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._renewed = 0.0
        self._lost = ""
        self._mine = ""
        self.workspace = ""
        self.found: str | None = None

    def take(self) -> None:
        """Take it, from a holder that has ended or let it lapse.

        Where a holder may be dead, wait until it shows a sign of life, or its time is over.

        Raises:
            WorkspaceError: A living run holds it, or the store ignores conditions.
        """
        seen: Got | None = None
        while True:
            found = self._bucket.get(NAME)
            body = _body(found)
            if body.get("holder") == self._token:
                break  # a put that was answered too late, and sent again
            if found and body.get("holder") and found.age <= float(body.get("seconds", 60)) and not _ended(body):
                if seen and seen.etag != found.etag:
                    raise WorkspaceError(f"the workspace {self._bucket.url} is in use by {body.get('who')}", _HINT)
                seen = seen or found
                self._sleep(min(1.0, self._seconds / 8))
                continue
            self.workspace = str(body.get("workspace") or secrets.token_hex(8))
            self.found = None if found is None else "" if body.get("holder") else found.etag
            if self._put(found.etag if found else None):
                break
        self._check_conditions()
        self._lost = ""
        self._stop.clear()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Stop where it is not ours any more.

        Raises:
            WorkspaceError: Somebody took it over, or it was not renewed in time (the network; a machine asleep).
        """
        if not self._lost and time.monotonic() - self._renewed > self._seconds:
            self._lost = "it was not renewed in time"
        if self._lost:
            raise WorkspaceError(f"the hold on the workspace {self._bucket.url} is lost: {self._lost}", _HINT)

    def give_back(self) -> str | None:
        """Free it for the next; the ETag of the object then, None where it was lost or the store cannot be reached."""
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        try:
            self.check()
            return self._bucket.put(NAME, self._text(holder=""), matching=self._mine).etag
        except (WorkspaceError, Conflict):
            return None  # it lapses by itself

    def _renew(self) -> None:
        while not self._stop.wait(self._seconds / 4):
            try:
                if not self._put(self._mine):
                    body = _body(self._bucket.get(NAME))
                    if body.get("holder") != self._token:
                        self._lost = f"{body.get('who') or 'somebody'} has taken it over"
                        return
            except WorkspaceError:
                continue  # `check` says when it is too late

    def _put(self, matching: str | None) -> bool:
        """Put it under our name; whether it could be."""
        began = time.monotonic()
        try:
            self._mine = self._bucket.put(
                NAME, self._text(self._token), absent=matching is None, matching=matching
            ).etag
        except Conflict:
            found = self._bucket.get(NAME)
            if found is None or _body(found).get("holder") != self._token:
                return False
            self._mine = found.etag
        self._renewed = began
        return True

    def _check_conditions(self) -> None:
        try:
            self._bucket.put(NAME, self._text(self._token), absent=True)
        except Conflict:
            return
        raise WorkspaceError(
            f"the store of {self._bucket.url} ignores conditions (If-None-Match): two runs could not be kept apart",
            "use a store that knows conditional writes; see docs/object-store.md",
        )

    def _text(self, holder: str) -> bytes:
        values = {
            "workspace": self.workspace,
            "holder": holder,
            "who": f"process {os.getpid()} on {socket.gethostname()}",
            "pid": os.getpid(),
            "machine": _machine(),
            "seconds": self._seconds,
            "beat": secrets.token_hex(4),  # equal bytes would have an equal ETag, and look like no sign of life
        }
        return json.dumps(values, indent=1, sort_keys=True).encode() + b"\n"


def _body(found: Got | None) -> dict[str, Any]:
    try:
        value = json.loads(found.data) if found else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _ended(body: dict[str, Any]) -> bool:
    """Whether a holder was a process of this very machine (and container) that is no more."""
    if not body.get("machine") or body["machine"] != _machine() or not isinstance(body.get("pid"), int):
        return False
    return not Path(f"/proc/{body['pid']}").exists()


def _machine() -> str:
    """This boot of this machine and its namespace of processes; empty where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _seconds() -> float:
    text = os.environ.get(SECONDS, "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 3600:
        raise ConfigError(f"{SECONDS}={text} is no length of a lease", "give seconds from 1 to 3600")
    return seconds
