"""Providers that draw and fail as real ones do: every edit settles, every call is counted, nothing is paid twice."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.engine.blobs import Blobs
from tasks.engine.calls import Calls
from tests.providers.asking import KEY, KEY_ENV
from tests.providers.drawing import edit_all, editor, way
from tests.providers.loopback_images import FAULTS, TRANSIENT, ImageLoopback
from tests.providers.test_trouble import ledger, wait_for

Opened = Callable[..., Calls]
REFUSED = ("null", "no data")
UNREADABLE = ("not a picture", "animated")


def start(folder: Path, **order: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.providers.drawing", str(folder), json.dumps(order)]
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.Popen(command, cwd=root, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def named(folder: Path) -> set[str]:
    """The blobs that answers name."""
    with sqlite3.connect(folder / "answers.sqlite") as db:
        found = [json.loads(raw)["picture"] for (raw,) in db.execute("SELECT raw FROM answers WHERE raw IS NOT NULL")]
    return {digest for digest in found if digest}


def test_a_fifth_of_all_calls_fails_and_every_edit_settles(opened: Opened, tmp_path: Path) -> None:
    edits = range(300)
    with ImageLoopback(seed=1, share=0.2) as provider:
        by = editor(way(provider.url, timeout_s=12))
        ended = edit_all(opened(), by, edits)
        met = Counter(provider.met)
        assert set(met) == {"ok", *FAULTS}, "the seed leaves a fault out"
        answered = len(provider.met) - sum(met[fault] for fault in (*TRANSIENT, "400 policy", "400 other"))
        assert ledger(tmp_path) == {
            "answered": answered,
            "transient": sum(met[fault] for fault in TRANSIENT),
            "permanent": met["400 policy"] + met["400 other"],
        }
        kinds = Counter("picture" if len(end) == 64 else end.partition(":")[0] for end in ended)
        assert kinds.total() == len(edits)
        assert kinds["refused"] == met["400 policy"] + sum(met[fault] for fault in REFUSED)
        assert kinds["provider"] == met["400 other"]
        # Unreadable ones were asked for once more; who met nothing worse then has a picture.
        unreadable = sum(met[fault] for fault in UNREADABLE)
        assert kinds["bad_output"] <= unreadable
        assert kinds["picture"] == answered - sum(met[fault] for fault in REFUSED) - unreadable
        (total,) = opened().totals()
        assert (total.calls, total.unknown) == (len(provider.met), 0)
        assert total.images == answered - sum(met[fault] for fault in REFUSED)
        assert total.cost == pytest.approx(0.04 * total.images)
        assert set(Blobs(tmp_path).digests()) == named(tmp_path)
        assert edit_all(opened(), by, edits) == ended
        assert len(provider.met) == total.calls
    assert edit_all(opened(replay_only=True), by, edits) == ended


def test_killed_with_many_in_flight_only_those_without_an_answer_are_asked_again(
    tmp_path: Path, opened: Opened
) -> None:
    with ImageLoopback() as provider:
        provider.stick_after = 50
        child = start(tmp_path, url=provider.url, edits=300, settings={"in_flight": 200})
        wait_for(lambda: provider.active >= 200 or child.poll() is not None)
        assert child.poll() is None, child.communicate()
        wait_for(lambda: ledger(tmp_path)["answered"] == 50)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        calls = opened()
        (total,) = calls.totals()
        assert (total.calls, total.unknown) == (len(provider.met), 200)
        assert named(tmp_path) <= set(Blobs(tmp_path).digests()), "an answer's picture is on the disk before it"
        before = {wanted.picture for wanted in provider.wanted[:50]}
        provider.stick_after = None
        del provider.wanted[:]
        ended = edit_all(calls, editor(way(provider.url)), range(300))
        assert all(len(end) == 64 for end in ended)
        assert len(provider.wanted) == 300 - 50
        assert not before & {wanted.picture for wanted in provider.wanted}


def test_killed_between_picture_and_answer_the_picture_is_no_answer(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ImageLoopback() as provider:
        by = editor(way(provider.url))
        put = Blobs.put

        def killed(self: Blobs, data: bytes) -> str:
            put(self, data)
            raise KeyboardInterrupt

        monkeypatch.setattr(Blobs, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            edit_all(opened(), by, [1])
        assert (len(list(Blobs(tmp_path).digests())), named(tmp_path)) == (1, set())
        assert ledger(tmp_path) == {"unknown": 1}
        monkeypatch.undo()
        monkeypatch.setenv(KEY_ENV, KEY)
        (end,) = edit_all(opened(), by, [1])
        assert len(end) == 64
        assert (len(provider.met), len(named(tmp_path))) == (2, 1)


@pytest.mark.parametrize("model", ["hosted_vllm/m-1", "bfl/flux-1", "gemini/m-1"])
def test_a_planted_key_is_written_nowhere(tmp_path: Path, model: str) -> None:
    """The provider says it in errors and in its words; the run ends with a revoked key."""
    folder = tmp_path / "workspace"
    folder.mkdir()

    def echo(_: Any) -> bytes:
        raise ValueError(f"I can't use {KEY}")

    with ImageLoopback(seed=3, share=0.3, key=KEY) as provider:
        base = way(provider.url, model)["api_base"]
        route = {"model": model, "api_base": base, "timeout_s": 2}
        if model.startswith("gemini"):
            provider.drawn = echo
        first = start(folder, url=provider.url, edits=20, settings={"backoff_s": 0.01}, route=route)
        out = [*first.communicate(timeout=120)]
        provider.always = "401"
        second = start(folder, url=provider.url, edits=25, route=route)
        out += second.communicate(timeout=60)
        assert KEY_ENV in json.loads(out[2])["stopped"]
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file()) + "".join(out).encode()
    assert b"Incorrect API key provided: ***" in written
    if model.startswith("gemini"):
        assert b"use ***" in written
    assert KEY.encode() not in written
