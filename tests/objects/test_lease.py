"""One run at a time: a living holder is respected, a dead one is not waited for long, and who lost the lease stops."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tasks.engine import lease as leases
from tasks.engine.bucket import Bucket, Conflict, Listed
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.lease import Lease
from tasks.engine.places import mirror_at, place
from tasks.engine.store import Store
from tests.objects.conftest import elsewhere

pytestmark = pytest.mark.s3
HOLD = """
import sys, time
from tasks.engine.places import place
from tasks.engine.store import Store
with Store(place(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(url: str, cache: Path) -> "subprocess.Popen[bytes]":
    """Another process, on what passes for another machine, that holds a workspace until its input ends."""
    env = os.environ | {"FEDBENCH_CACHE": str(cache)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, url], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_second_run_refuses_while_the_first_one_lives(bucket: Bucket, tmp_path: Path) -> None:
    process = holder(bucket.url, tmp_path / "other")
    store = Store(place(bucket.url))
    words = rf"in use by process {process.pid} on "
    with pytest.raises(WorkspaceError, match=words), store.lock():
        pass
    process.communicate()
    with store.lock():
        store.write_json("withdrawn.json", {})


def test_a_dead_holder_of_this_machine_is_not_waited_for(bucket: Bucket, tmp_path: Path) -> None:
    process = holder(bucket.url, tmp_path / "other")
    process.send_signal(signal.SIGKILL)
    process.wait()
    began = time.monotonic()
    with Store(place(bucket.url)).lock():
        assert time.monotonic() - began < 3


def test_a_dead_holder_elsewhere_is_waited_for_as_long_as_its_lease_says(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = holder(bucket.url, tmp_path / "other")
    process.send_signal(signal.SIGKILL)
    process.wait()
    monkeypatch.setattr(leases, "_machine", lambda: "another boot")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        time.sleep(seconds)

    lease = Lease(bucket, sleep)
    lease.take()
    assert 1 < sum(slept) < 7  # of a lease of 4 s, told in whole seconds
    lease.give_back()


def written_on(store: Store, bucket: Bucket) -> None:
    """Write until the lease, which somebody else takes meanwhile, is seen to be lost."""
    with store.lock():
        store.write_json("runs/a/one.json", 1)
        body = json.loads((bucket.get("lease.json") or pytest.fail("no lease")).data)
        bucket.put("lease.json", json.dumps(body | {"holder": "b", "who": "process 7 on elsewhere"}).encode())
        for _ in range(100):
            store.write_json("runs/a/two.json", 2)
            time.sleep(0.1)


def test_who_lost_the_lease_stops_before_the_next_commit(bucket: Bucket) -> None:
    store = Store(place(bucket.url))
    with pytest.raises(WorkspaceError, match=r"is lost: process 7 on elsewhere has taken it over"):
        written_on(store, bucket)
    mirror = mirror_at(store.root)
    assert mirror is not None
    assert mirror.lease is None
    body = json.loads((bucket.get("lease.json") or pytest.fail("no lease")).data)
    assert body["holder"] == "b", "it was given back by somebody who did not hold it"


def test_a_machine_that_slept_stops_too(bucket: Bucket) -> None:
    lease = Lease(bucket)
    lease.take()
    lease._stop.set()
    lease._renewed -= 60
    with pytest.raises(WorkspaceError, match="not renewed in time"):
        lease.check()
    assert lease.give_back() is None


def test_a_put_that_was_answered_too_late_is_no_loss(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Bucket.put

    def twice(self: Bucket, name: str, data: Any, **condition: Any) -> Listed:
        put(self, name, data, **condition)
        return put(self, name, data, **condition)  # as a retry does, of which the first try had arrived

    monkeypatch.setattr(Bucket, "put", twice)
    lease = Lease(bucket)
    with pytest.raises(Conflict):
        twice(bucket, "other", b"", absent=True)
    lease.take()
    lease.check()
    assert lease._put(lease._mine)
    lease.check()


def test_a_store_that_ignores_conditions_is_refused(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Bucket.put
    monkeypatch.setattr(Bucket, "put", lambda self, name, data, **_: put(self, name, data))
    with pytest.raises(WorkspaceError, match="ignores conditions"):
        Lease(bucket).take()


@pytest.mark.parametrize("text", ["", "soon", "0", "nan", "1e9"])
def test_a_length_that_is_none_is_told(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("FEDBENCH_LEASE_S", text)
    with pytest.raises(ConfigError, match=re.escape(f"FEDBENCH_LEASE_S={text}")):
        Lease(bucket)


def test_a_bucket_that_was_emptied_is_no_bucket_with_copies(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(place(bucket.url))
    with store.lock():
        store.write("images/ab/one.png", b"one")
    bucket.delete(list(bucket.listing()))
    with Store(place(bucket.url)).lock():
        assert store.size("images/ab/one.png") is None
        store.write("images/ab/one.png", b"one")
    elsewhere(monkeypatch, tmp_path / "other")
    assert Store(place(bucket.url)).read("images/ab/one.png") == b"one"
