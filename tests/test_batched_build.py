"""A whole build whose models outside are asked in batches: few of them, and the same data set as asked singly."""

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.config import BuildConfig
from tasks import pipeline
from tasks.engine.batch_file import batches
from tasks.engine.calls import Calls
from tasks.engine.errors import BatchesWaiting
from tests.commands import environment, fedbench, kill_group, run, started
from tests.fakes import tree
from tests.providers.loopback_batches import Batching
from tests.test_panel_build import MODELS, answer, build, config


def batched(provider: Batching, **batch: Any) -> BuildConfig:
    """The config of `test_panel_build`, every route with `batch`."""
    values = config(provider, batches={"poll_s": 0.01} | batch).model_dump(mode="json")
    panel = values["verify"]["measure"]["panel"]
    instruct = values["instruct"]["measure"]
    for one in (*panel, values["caption"]["measure"]["describer"], instruct["describer"], instruct["checker"]):
        for route in one["params"]["routes"]:
            route["batch"] = True
    return BuildConfig.model_validate(values)


@pytest.fixture
def provider() -> Iterator[Batching]:
    with Batching(answer=answer) as held:
        yield held


def answers(folder: Path) -> list[Any]:
    with sqlite3.connect(folder / "answers.sqlite") as db:
        return db.execute("SELECT key, request, raw, kind, message FROM answers ORDER BY key").fetchall()


def test_a_build_by_batch_is_the_same_data_set_at_half_the_price(
    provider: Batching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Calls] = []
    monkeypatch.setattr(pipeline, "Calls", lambda *args: opened.append(Calls(*args)) or opened[-1])
    single, by_batch = tmp_path / "single", tmp_path / "by-batch"
    run, result = build(single, config(provider))
    (asked, paid) = len(provider.met), sum(total.cost for total in run.executor.context.call.totals())
    run.executor.context.call.close()
    del provider.met[:]

    waiting = 0
    while True:  # a build that holds no process, called again and again
        try:
            run, other = build(by_batch, batched(provider, wait=False))
            break
        except BatchesWaiting:
            waiting += 1
            opened[-1].close()
    calls = run.executor.context.call
    assert waiting > 2
    assert tree(other.dataset) == tree(result.dataset)
    assert answers(by_batch) == answers(single)
    assert len(provider.met) == asked
    assert provider.calls.count("chat") == 0
    totals = calls.totals()
    assert sum(total.cost for total in totals) == pytest.approx(paid / 2)
    assert sum(total.unknown + total.failed for total in totals) == 0
    calls.close()
    # All votes of all shards about all edits went together, one batch for each model; so did what was asked again.
    assert [batch.state for batch in batches(by_batch / "answers.sqlite", "outside")] == ["done"] * len(
        provider.batches
    )
    first = provider.batches[: len(MODELS)]
    assert {sent.lines[0]["body"]["model"] for sent in first} == set(MODELS)
    assert len({len(sent.lines) for sent in first}) == 1
    assert len(provider.batches) <= len(MODELS) + 1 + 1 + 4


@pytest.mark.slow
def test_a_build_that_is_killed_while_it_waits_goes_on_from_its_batches(provider: Batching, tmp_path: Path) -> None:
    provider.polls = 10**6
    path, log = tmp_path / "build.yaml", tmp_path / "log"
    path.write_text(yaml.safe_dump(batched(provider, poll_s=0.2).model_dump(mode="json")))
    command = fedbench("build", "--config", path, "-w", tmp_path / "workspace")
    env = environment(tmp_path / "prefect")
    with started(command, env, tmp_path, log) as process:
        until = time.monotonic() + 240
        while provider.calls.count("look") < 2 * len(MODELS):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
        kill_group(process)
    assert "is sent, 36 requests" in log.read_text()
    assert "in_progress, 0 of 36" in log.read_text()
    told = json.loads(run(fedbench("calls", "--json", "-w", tmp_path / "workspace"), env, tmp_path).stdout)
    states = [(batch["state"], batch["told"]) for batch in told["batches"]]
    assert states == [("sent", "in_progress, 0 of 36 answered")] * len(MODELS)
    assert told["notes"] == ["180 calls are in batches that providers have yet to answer: the next build collects them"]
    assert [len(sent.lines) for sent in provider.batches] == [36] * len(MODELS)
    provider.polls = 1
    done = run(command, env, tmp_path, timeout=280)
    assert done.returncode == 0, done.stderr
    # Votes were sent once; what follows are second rounds, captions, instructions and checks.
    assert all(len(sent.lines) < 36 for sent in provider.batches[len(MODELS) :])
    with sqlite3.connect(tmp_path / "workspace" / "answers.sqlite") as db:
        sent_and_distinct = db.execute("SELECT count(*), count(DISTINCT key) FROM ledger WHERE NOT cached").fetchone()
    lines = sum(len(sent.lines) for sent in provider.batches)
    assert sent_and_distinct == (lines, lines)


@pytest.mark.slow
def test_a_build_that_waits_for_nobody_says_so_and_exits_with_6(provider: Batching, tmp_path: Path) -> None:
    provider.polls = 10**6
    path = tmp_path / "build.yaml"
    path.write_text(yaml.safe_dump(batched(provider, wait=False).model_dump(mode="json")))
    command = fedbench("build", "--config", path, "-w", tmp_path / "workspace")
    done = run(command, environment(tmp_path / "prefect"), tmp_path, timeout=280)
    assert done.returncode == 6, done.stderr
    assert "5 batches with 180 requests are in flight" in done.stderr
    assert "run the same command again to collect them" in done.stderr
