"""A whole build with models outside, over real HTTP on sample photos: votes, captions, dense instructions, checks."""

import json
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.config import BuildConfig
from tasks import pipeline
from tasks.dataset.verify import verify
from tasks.engine.account import accounts
from tasks.engine.store import Store
from tasks.pipeline import Run
from tasks.results import Result, finish
from tests.builds import LABEL_PANEL, built
from tests.dataset.test_publish import rows_of
from tests.doors import expert, routes
from tests.fakes import tree
from tests.providers.loopback import TRANSIENT, Asked, Loopback

MODELS = ("Ada", "Bo", "Cy", "Di", "Shy")
FAULTS = tuple(fault for fault in TRANSIENT if fault not in ("hang", "drip"))


def answer(asked: Asked) -> str:
    """As the embedded experts see it; Shy declines one picture in three, and Di now and then talks too much."""
    luck = zlib.crc32(asked.model.encode() + b"".join(asked.pictures))
    if asked.model == "Shy" and luck % 3 == 0:
        return "I'm sorry, I can't judge the expressions of real people."
    if asked.model == "Di" and luck % 4 == 0 and "cannot be read" not in asked.text:
        return "What a lovely picture!"
    if asked.model == "reader" and luck % 2 and "raise" not in asked.text:
        return json.dumps({"reason": "", "choice": "cannot tell"})
    return expert(asked)


def config(provider: Loopback, **calls: Any) -> BuildConfig:
    def mllm(name: str, **params: Any) -> dict[str, Any]:
        family = params.pop("family", "loopback")
        ways = routes(provider, name, family=family, limit={"concurrency": 32}, price=PRICE)
        return {"name": "mllm", "params": {"name": name, "side": 512, "routes": ways} | params}

    panel = [mllm(name, granularity="coarse") for name in MODELS]
    return BuildConfig.model_validate(
        {
            "name": "outside",
            "limit": 8,
            "shard_size": 2,
            "acknowledge_external_api": False,
            "calls": {"backoff_s": 0.01, "attempts": 8} | calls,
            "screen": {"measure": {"label_panel": LABEL_PANEL}},
            "verify": {"measure": {"panel": panel}},
            "caption": {"measure": {"describer": mllm("writer")}},
            "instruct": {"measure": {"describer": mllm("writer"), "checker": mllm("reader", family="other")}},
        }
    )


PRICE = {"input_per_mtok": 1.0, "output_per_mtok": 10.0, "as_of": "2026-11-29"}


@dataclass(frozen=True)
class Outside:
    """A finished build, and how often the provider was asked and answered for it."""

    folder: Path
    provider: Loopback
    run: Run
    result: Result
    met: Counter[str]


def build(folder: Path, settings: BuildConfig) -> tuple[Run, Result]:
    pipeline._worker.cache_clear()
    with Store(folder).lock():
        run, done = built(folder, settings)
        return run, finish(run, done)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside") / "workspace"
    with Loopback(answer=answer, share=0.15, faults=FAULTS) as provider:
        run, result = build(folder, config(provider))
        met = Counter(provider.met)
    # From here on nobody answers at that address.
    yield Outside(folder, provider, run, result, met)
    run.executor.context.call.close()


def test_every_vote_is_there_with_its_words(outside: Outside) -> None:
    rows = rows_of(outside.result.dataset, "data") + rows_of(outside.result.dataset, "rejected")
    voted = [row["votes"] for row in rows if row["votes"]]
    assert len(voted) >= 20
    for votes in voted:
        assert [vote["voter"] for vote in votes] == list(MODELS)
        assert {vote["granularity"] for vote in votes} == {"coarse"}
        for vote in votes:
            assert vote["model"] == vote["voter"]
            assert vote["raw"]
            assert (vote["polarity"] is None) == (vote["abstained"] is not None)
            assert vote["abstained"] in (None, "refused" if vote["voter"] == "Shy" else "cannot_tell")
    assert any(votes[4]["abstained"] == "refused" for votes in voted)
    assert Counter(vote["voter"] for votes in voted for vote in votes if vote["repaired"]).keys() == {"Di"}


def test_the_data_set_verifies_and_counts_its_checks(outside: Outside) -> None:
    assert verify(outside.result.dataset) == []
    rows = rows_of(outside.result.dataset, "data")
    manifest = json.loads((outside.result.dataset / "manifest.json").read_text())
    counts = Counter(row["back_check"] for row in rows)
    assert manifest["back_checks"] == dict(counts)
    assert "not_checked" not in counts
    assert counts["passed"]
    assert [role["adapter"] for role in manifest["roles"]] == ["warp", *MODELS, "writer", "auto", "writer", "reader"]
    assert manifest["roles"][-1]["family"] == "other"
    text = json.dumps(manifest)
    assert "127.0.0.1" not in text
    assert "per_mtok" not in text
    card = (outside.result.dataset / "README.md").read_text()
    assert f"passed {counts['passed']}" in card
    assert "| checker |" in card


def test_the_ledger_is_the_providers_own_count(outside: Outside) -> None:
    totals = outside.run.executor.context.call.totals()
    assert sum(total.calls for total in totals) == outside.met.total()
    assert sum(total.failed for total in totals) == outside.met.total() - outside.met["ok"]
    assert {total.role for total in totals} == {"voter", "writer", "checker"}
    assert sum(total.unknown for total in totals) == 0
    assert all(total.cost > 0 for total in totals)


def test_the_report_shows_the_votes_and_the_ledger(outside: Outside) -> None:
    text = outside.result.report.read_text()
    for word in (*MODELS, "abstains: refused", "Another model had to find the ground truth", "routes=openai/Ada"):
        assert word in text, word
    rows = rows_of(outside.result.dataset, "data") + rows_of(outside.result.dataset, "rejected")
    for name in MODELS:
        votes = [vote for row in rows for vote in row["votes"] or () if vote["voter"] == name]
        sheets = text[text.index('<section id="sheets"') :]
        assert sheets.count(f'<span class="voter">{name}</span>') == len(votes)
        counts = Counter(vote["polarity"] for vote in votes)
        cells = [len(votes), *(counts[each] for each in ("positive", "neutral", "negative"))]
        table = "".join(f"<td>{cell}</td>" for cell in ["coarse", *cells])
        assert f'<th scope="row">{name}</th>{table}' in re.sub(r">\s+<", "><", text)
    assert "nobody reviewed" in text
    assert "No pool says anything about gender, race, age." in text
    held = accounts(outside.folder / "answers.sqlite", "outside")
    assert {account.provider for account in held} == {"loopback"}
    assert len(held) == len(MODELS) + 2, "the writer of captions and instructions is one"
    for account in held:
        total = account.total
        assert f"<td>{total.model}</td><td>{total.calls}</td><td>{account.answered}</td>" in text
        assert f"<td>{total.tokens_in}</td><td>{total.tokens_out}</td><td>{account.dollars:.4f}</td>" in text
        assert account.answered == total.calls - total.failed
    assert f"<td>{outside.met.total()}</td><td>{outside.met['ok']}</td>" in text, "the provider's own count"


def test_status_and_calibration_tell_it_too(outside: Outside) -> None:
    said = [CliRunner().invoke(app, [*verb, "-w", str(outside.folder), "--json"]) for verb in (
        ["status"], ["panel", "calibration"])]  # fmt: skip
    assert [one.exit_code for one in said] == [0, 0], said
    status, calibration = (json.loads(one.stdout) for one in said)
    assert sum(each["calls"] for each in status["calls"]) == outside.met.total()
    assert sum(each["answered"] for each in status["calls"]) == outside.met["ok"]
    assert all(each["dollars"] > 0 for each in status["calls"])
    assert [each["voter"] for each in calibration["voters"]] == list(MODELS)
    shy = calibration["voters"][-1]
    assert shy["abstained"].keys() == {"refused"}
    assert shy["agrees_with_people"] is None
    every = calibration["groups"][0]
    assert every["candidates"] == shy["asked"]
    assert every["passed"]["panel"]["hits"] <= every["passed"]["valid"]["hits"]
    kept = next(row for row in outside.result.funnel if row.stage == "verify").kept
    assert every["passed"]["panel"]["hits"] == kept, "the rule of this run"
    text = CliRunner().invoke(app, ["status", "-w", str(outside.folder)], env={"COLUMNS": "160"}).stdout
    assert "openai/Shy" in text
    text = CliRunner().invoke(app, ["panel", "calibration", "-w", str(outside.folder)], env={"COLUMNS": "160"}).stdout
    assert "nobody reviewed" in text
    assert (calibration["shards_without_verdicts"], "fedbench build" in text) == (0, False)


def test_calibration_without_verdicts_says_so(outside: Outside, tmp_path: Path) -> None:
    shutil.copytree(outside.folder, tmp_path / "w", ignore=shutil.ignore_patterns("images", "edits", "verify"))
    text = CliRunner().invoke(app, ["panel", "calibration", "-w", str(tmp_path / "w")], env={"COLUMNS": "160"}).stdout
    shards = len(outside.run.executor.shards)
    assert f"{shards} of {shards} shards have no verdicts" in text


def test_it_replays_without_a_network_to_the_same_bytes(outside: Outside, tmp_path: Path) -> None:
    outside.run.executor.context.call.close()
    (tmp_path / "answers.sqlite").write_bytes((outside.folder / "answers.sqlite").read_bytes())
    _, result = build(tmp_path, config(outside.provider, replay_only=True))
    assert tree(result.dataset) == tree(outside.result.dataset)
