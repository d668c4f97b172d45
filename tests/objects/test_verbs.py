"""The command line on a bucket: the demo's bytes, every verb that takes a workspace, and refusals in one line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from tasks.engine.bucket import Bucket
from tasks.engine.places import place
from tests.commands import environment, fedbench, one_line, run
from tests.fakes import tree
from tests.objects.conftest import elsewhere, forget

pytestmark = pytest.mark.s3
READING = (
    "status",
    "explain samples/astronaut",
    "recut --set verify.cut.min_change=0.5",
    "forecast",
    "top-up",
    "calls",
    "panel calibration",
    "diff demo/v1 demo/v1",
    "withdraw samples/astronaut --dry-run",
    "doctor",
)


def said(words: str, code: int = 0) -> str:
    """What a verb prints, as a process that has just started would."""
    forget()
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == code, result.output
    return result.output


def test_the_verbs_of_the_command_line(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = environment(tmp_path / "prefect")
    local, url = tmp_path / "local", bucket.url
    assert run(fedbench("demo", "-w", local), env, tmp_path, 600).returncode == 0
    built = run(fedbench("demo", "-w", url), env, tmp_path, 600)
    assert built.returncode == 0, built.stderr
    assert f"{url}/datasets/demo/v1  (" in built.stdout
    assert f"fedbench verify {url}/datasets/demo/v1" in built.stdout
    elsewhere(monkeypatch, tmp_path / "other")
    everything, here = tree(place(url, everything=True)), tree(local)
    for name in here:
        if name.startswith(("datasets/", "reports/", "images/", "edits/")):
            assert everything[name] == here[name], name
    assert everything.keys() == here.keys() - {"lock"}

    again = json.loads(said(f"demo --json -w {url}"))
    assert again["dataset"] == f"{url}/datasets/demo/v1"
    assert not again["written"]
    for words in READING:
        told = said(f"{words} -w {url}")
        assert str(tmp_path / "other") not in told, f"{words} shows the cache"
    said(f"verify {url}/datasets/demo/v1")

    said(f"publish --release index --pack -w {url}")
    assert "runs/demo/released-v1.json" in bucket.listing()
    assert "releases/demo/v1/index/manifest.json" in bucket.listing()
    assert "releases/demo/v1/pack/checksums.sha256" in bucket.listing()
    out = tmp_path / "full"
    said(f"hydrate {url}/releases/demo/v1/index --pack {url}/releases/demo/v1/pack --out {out} --preset demo")
    assert tree(out / "data") == tree(local / "datasets/demo/v1/data")
    said(f"export {url}/datasets/demo/v1 --for jsonl --out {tmp_path / 'export'}")

    scored = f"score {url}/datasets/demo/v1 --editor copy --no-judge --gain au --limit 1 -w {url}"
    told = run(fedbench(*scored.split()), env, tmp_path, 600)
    assert f"{url}/runs/score-demo-v1-copy/scores/scores.parquet" in told.stdout, told.stderr
    said(f"leaderboard score-demo-v1-copy -w {url}")
    said(f"panel accuracy --pool samples --limit 1 --set verify.measure.panel=[blendshapes] -w {url}")
    assert {
        "runs/score-demo-v1-copy/scores/scores.parquet",
        "accuracy/labelled/accuracy.json",
    } <= bucket.listing().keys()
    assert "reports/leaderboards/score-demo-v1-copy/index.html" in bucket.listing("reports")

    said(f"withdraw samples/astronaut -w {url}")
    gone = {name for name in here if name.startswith("images/")} - bucket.listing("images").keys()
    assert gone
    said(f"verify {url}/datasets/demo/v1")
    left = b"".join((bucket.get(name) or pytest.fail(name)).data for name in bucket.listing("datasets"))
    assert b"astronaut" in left  # its tombstone in `rejected`
    assert not any(here[name] in left for name in gone)
    elsewhere(monkeypatch, tmp_path / "third")
    said(f"demo -w {url}")
    assert "samples/astronaut was withdrawn" in said(f"explain samples/astronaut -w {url}")


def test_what_cannot_lie_in_a_bucket_is_said(bucket: Bucket, tmp_path: Path) -> None:
    env = environment(tmp_path / "prefect")
    for words, told in (
        (f"review up -w {bucket.url}", "Label Studio cannot keep its data"),
        (f"export {tmp_path} --for jsonl --out {bucket.url}", "only --workspace and data sets to read"),
        (f"status -w {bucket.url}", "which run"),
        ("status -w s3://UPPER", "no address of a bucket"),
    ):
        result = run(fedbench(*words.split()), env, tmp_path)
        assert result.returncode == 2, result.stderr
        assert told in one_line(result.stderr)[0]


def test_without_the_extra_it_is_a_line(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "botocore").mkdir()
    (tmp_path / "botocore" / "__init__.py").write_text("raise ImportError('not installed')")
    env = environment(tmp_path / "prefect")
    env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
    result = run(fedbench("status", "-w", bucket.url), env, tmp_path)
    assert result.returncode == 2
    assert "an object store needs the extra `s3`, which is not installed" in one_line(result.stderr)[0]
    assert "requirements/s3.txt" in one_line(result.stderr)[1]
