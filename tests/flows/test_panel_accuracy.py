"""`fedbench panel accuracy` over real HTTP: priced first, asked once, told with every abstention, within the law."""

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from tasks.engine.blobs import Blobs
from tasks.engine.shown import noted
from tasks.engine.store import Store
from tests.doors import expert, routes, warped
from tests.providers.drawing import PRICE as DRAWN
from tests.providers.loopback import Asked, Loopback
from tests.providers.loopback_batches import Batching
from tests.providers.loopback_images import ImageLoopback
from tests.test_panel_build import PRICE

MODELS = ("Ada", "Bo", "Shy")


def answer(asked: Asked) -> str:
    """As the embedded expert sees it; Shy declines one picture in two."""
    if asked.model == "Shy" and zlib.crc32(b"".join(asked.pictures)) % 2:
        return "I'm sorry, I can't judge the expressions of real people."
    return expert(asked)


@pytest.fixture(scope="module")
def provider() -> Iterator[Loopback]:
    with Loopback(answer=answer) as provider:
        yield provider


def config(folder: Path, provider: Loopback, **route: Any) -> Path:
    panel = [
        {"name": "mllm", "params": {"name": name, "side": 512, "granularity": "fine" if name == "Bo" else "coarse",
                                    "routes": routes(provider, name, price=PRICE, **route)}}
        for name in MODELS
    ]  # fmt: skip
    path = folder / "panel.yaml"
    path.write_text(json.dumps({"verify": {"measure": {"panel": panel}}, "calls": {"backoff_s": 0.01}}))
    return path


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(app, ["panel", "accuracy", *map(str, words)], env={"COLUMNS": "100"})


def test_voters_panels_and_verdicts_and_a_second_run_asks_nothing(provider: Loopback, tmp_path: Path) -> None:
    words = ("-w", tmp_path / "w", "--pool", "samples", "--limit", 3, "--planted", "--config",
             config(tmp_path, provider))  # fmt: skip
    first = run(*words, "--json")
    assert first.exit_code == 0, first.output
    asked = len(provider.met)
    assert asked == 3 * (1 + 6) * len(MODELS)
    assert "at most 63 questions outside, about $" in first.stderr
    found = json.loads(first.stdout)
    photos, edits = found["shown"]
    assert (photos["pictures"], edits["pictures"]) == (3, 18)
    ada, bo, shy = edits["voters"]
    assert ada["fine"] is None
    assert bo["fine"]["of_all"]["of"] == 18
    silent = shy["abstained"]["refused"]
    assert 0 < silent < 18
    assert shy["coarse"]["of_answered"]["of"] == 18 - silent
    assert shy["coarse"]["of_all"]["of"] == 18
    assert ada["coarse"] == bo["coarse"], "they are one expert"
    three = next(one for one in edits["sub_panels"] if (one["granularity"], one["size"]) == ("coarse", 3))
    assert three["best_voters"] == ["Ada", "Bo", "Shy"]
    assert three["best"]["of_all"]["hits"] == ada["coarse"]["of_all"]["hits"], "two of three are a majority"

    verdict = found["verdict"][0]
    assert verdict["passed"]["unchanged source"]["hits"] == 0
    assert verdict["recall"]["of"] == 18
    floor = next(one for one in found["verdict"] if one["identity_floor"] and one["rule"] == "panel")
    assert verdict["passed"]["other person"]["hits"] > floor["passed"]["other person"]["hits"] == 0
    assert "tuned while looking" not in str(found["notices"])

    tokens = (100 + 300) * 1.0 + 12 * 10.0
    assert found["cost"]["dollars"] == pytest.approx(asked * tokens / 1e6)
    assert found["cost"]["dollars_per_picture"] == pytest.approx(found["cost"]["dollars"] / 21)
    assert sum(one["new"] for one in found["cost"]["models"]) == asked

    again = json.loads(run(*words, "--json").stdout)
    assert len(provider.met) == asked
    assert [one["new_dollars"] for one in again["cost"]["models"]] == [0, 0, 0]
    for value in (found, again):
        value["cost"]["models"] = [
            {"model": one["model"], "answers": one["answers"]} for one in value["cost"]["models"]
        ]
    assert again == found, "and a stored answer costs what it cost"

    text = run(*words)
    for word in ("right target", "precision", "refused", "84.47", "published"):
        assert word in text.stdout, word
    page = (tmp_path / "w/accuracy/planted/index.html").read_text()
    assert "published, not ours" in page
    assert "refused" in page
    assert not list((tmp_path / "w").rglob("*.png"))


def test_a_budget_stops_it_and_it_goes_on_from_there(provider: Loopback, tmp_path: Path) -> None:
    words = ("-w", tmp_path / "w", "--pool", "samples", "--limit", 4, "--config", config(tmp_path, provider))
    stopped = run(*words, "--budget", 0.025, "--set", "calls.in_flight=1")
    assert stopped.exit_code == 4
    assert "budget" in stopped.stderr
    before = len(provider.met)
    done = json.loads(run(*words, "--json").stdout)
    assert done["shown"][0]["pictures"] == 4
    assert 0 < len(provider.met) - before < 4 * len(MODELS)


def test_votes_that_an_earlier_process_sent_in_batches_cost_what_they_cost(tmp_path: Path) -> None:
    with Batching(answer=answer) as provider:
        words = ("-w", tmp_path / "w", "--pool", "samples", "--limit", 2, "--config",
                 config(tmp_path, provider, batch=True))  # fmt: skip
        left = run(*words, "--set", "calls.batches.wait=false")
        assert (left.exit_code, "6 requests are in flight" in left.stderr) == (6, True)
        found = json.loads(run(*words, "--set", "calls.batches.poll_s=0.01", "--json").stdout)
        assert provider.calls.count("create") == len(MODELS)
        assert found["cost"]["dollars"] == pytest.approx(2 * len(MODELS) * (400 * 1.0 + 12 * 10.0) / 1e6 / 2)
        assert [(one["answers"], one["new"]) for one in found["cost"]["models"]] == [(2, 0)] * len(MODELS)
    listed = CliRunner().invoke(app, ["calls", "-w", str(tmp_path / "w"), "--json"])
    assert json.loads(listed.stdout)["run"] == "panel-accuracy", "nothing else has asked here"


def test_a_voter_that_cannot_be_reached_has_not_abstained(tmp_path: Path) -> None:
    with Loopback(answer=answer) as provider:
        words = ("-w", tmp_path / "w", "--pool", "samples", "--limit", 2, "--config", config(tmp_path, provider),
                 "--set", "calls.attempts=1", "--json")  # fmt: skip
        provider.always = "503"
        failed = json.loads(run(*words).stdout)
        assert failed["shown"] == []
        assert sum(failed["unreached"].values()) == 2
        assert any("could not be reached" in notice for notice in failed["notices"])
        provider.always = ""
        found = json.loads(run(*words).stdout)
        assert found["unreached"] == {}
        assert found["shown"][0]["pictures"] == 2
        assert all("provider" not in voter["abstained"] for voter in found["shown"][0]["voters"])


def test_a_withdrawn_source_leaves_no_answer_and_is_not_shown_again(provider: Loopback, tmp_path: Path) -> None:
    words = ("-w", tmp_path / "w", "--pool", "samples", "--limit", 2, "--planted", "--config",
             config(tmp_path, provider))  # fmt: skip
    assert run(*words).exit_code == 0
    shown = list(noted(Store(tmp_path / "w")))
    assert len(shown) == 2
    gone = shown[0]
    assert len(gone.images) == 7

    def answers() -> list[str]:
        with closing(sqlite3.connect(tmp_path / "w/answers.sqlite")) as file:
            return [request for (request,) in file.execute("SELECT request FROM answers")]

    assert len(answers()) == 2 * 7 * len(MODELS)
    result = CliRunner().invoke(app, ["withdraw", str(gone.key), "-w", str(tmp_path / "w"), "--json"])
    assert result.exit_code == 0, result.output
    assert len(answers()) == 7 * len(MODELS)
    assert not [image for image in gone.images if image in "".join(answers())]
    assert [one.key for one in noted(Store(tmp_path / "w"))] == [shown[1].key]
    before = len(provider.met)
    again = json.loads(run(*words, "--dry-run", "--json").stdout)
    assert again["sources"] == 2, "the next one takes its place"
    run(*words, "--json")
    assert len(provider.met) == before + 7 * len(MODELS), "of that one"
    assert gone.key not in {one.key for one in noted(Store(tmp_path / "w"))}


def test_edits_by_a_model_outside_are_paid_once_and_told_apart_from_votes(tmp_path: Path) -> None:
    with ImageLoopback(drawn=warped) as drawer:
        way = routes(drawer, "warp", price=DRAWN)[0] | {"model": "hosted_vllm/warp"}
        editor = {"name": "api", "params": {"name": "Warp", "routes": [way], "watermark": "none", "side": 4096}}
        (tmp_path / "config.json").write_text(json.dumps({"generate": {"measure": {"editor": editor}}}))
        words = ("-w", tmp_path / "w", "--pool", "samples", "--limit", 1, "--planted", "--config",
                 tmp_path / "config.json", "--json")  # fmt: skip
        first = run(*words)
        assert first.exit_code == 0, first.output
        assert "at most 6 questions outside, about $0.24" in first.stderr
        found = json.loads(first.stdout)
        assert [one["pictures"] for one in found["shown"]] == [1, 6]
        (made,) = found["cost"]["models"]
        assert (made["role"], made["answers"], made["dollars"]) == ("editor", 6, pytest.approx(0.24))
        assert found["cost"]["dollars_per_picture"] == 0, "of votes, which are free here"
        again = json.loads(run(*words).stdout)
        assert len(drawer.met) == 6
        assert again["shown"] == found["shown"]
    blobs = Blobs(tmp_path / "w")
    assert len(list(blobs.digests())) == 6
    (shown,) = noted(Store(tmp_path / "w"))
    result = CliRunner().invoke(app, ["withdraw", str(shown.key), "-w", str(tmp_path / "w")])
    assert result.exit_code == 0, result.output
    with closing(sqlite3.connect(tmp_path / "w/answers.sqlite")) as file:
        assert file.execute("SELECT count(*) FROM answers").fetchone() == (0,)
    assert list(blobs.digests()) == list(noted(Store(tmp_path / "w"))) == []


def test_nothing_is_asked_where_something_stands_against_it(
    provider: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(provider.met)
    for name in ("happy", "angry"):
        (tmp_path / "photos" / name).mkdir(parents=True)
    (tmp_path / "photos/happy/a.png").write_bytes(b"no picture")
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    keyless = config(tmp_path, provider, key_env="NO_SUCH_KEY")
    result = run("-w", tmp_path / "w", "--pool", "samples", "--config", keyless)
    assert (result.exit_code, "NO_SUCH_KEY" in result.stderr) == (2, True)
    away = config(tmp_path, provider, api_base="https://models.example.org/v1")
    folder = f"folder={tmp_path / 'photos'}"
    result = run("-w", tmp_path / "w", "--pool", folder, "--config", away)
    assert (result.exit_code, "acknowledge_external_api" in result.stderr) == (2, True)
    dry = run("-w", tmp_path / "w", "--pool", folder, "--config", away, "--dry-run", "--set",
              "acknowledge_external_api=true")  # fmt: skip
    assert dry.exit_code == 0, dry.output
    assert "at most 3 questions outside" in dry.stdout
    result = run("-w", tmp_path / "w", "--pool", "nowhere=x")
    assert (result.exit_code, "choose one of" in result.stderr) == (2, True)
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose/a.png").write_bytes(b"no picture")
    result = run("-w", tmp_path / "w", "--pool", f"folder={tmp_path / 'loose'}")
    assert (result.exit_code, "has a label" in result.stderr) == (2, True)
    assert len(provider.met) == before
    assert not (tmp_path / "w/answers.sqlite").exists()


def test_no_face_stays_behind_a_trial_that_was_killed(tmp_path: Path) -> None:
    left = tmp_path / "w/tmp/killed/images/face.png"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"a face")
    (tmp_path / "photos/happy").mkdir(parents=True)
    (tmp_path / "photos/happy/a.png").write_bytes(b"no picture")
    words = ("-w", tmp_path / "w", "--pool", f"folder={tmp_path / 'photos'}")
    with Store(tmp_path / "w").lock():
        left.parent.mkdir(parents=True)
        left.write_bytes(b"of another trial")
        assert run(*words).exit_code == 7
        assert left.exists(), "it is at work"
    assert run(*words).exit_code == 0
    assert not list((tmp_path / "w").rglob("*.png"))


def test_a_photo_that_cannot_be_read_is_told_and_counts_nowhere(tmp_path: Path) -> None:
    (tmp_path / "photos/happy").mkdir(parents=True)
    (tmp_path / "photos/happy/a.png").write_bytes(b"no picture")
    result = run("-w", tmp_path / "w", "--pool", f"folder={tmp_path / 'photos'}", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["shown"] == []
    assert sum(found["unreadable"].values()) == 1
