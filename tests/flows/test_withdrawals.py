"""`fedbench withdraw`: what it lists, prints and refuses, on real photos; and how other verbs speak of it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from flows.cli import app
from flows.options import load_config
from tasks.dataset.verify import verify
from tasks.results import finish
from tests.builds import built
from tests.commands import one_line
from tests.fakes import tree
from tests.flows.conftest import Finished


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def as_json(*words: str | Path) -> Any:
    result = call(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*words: str | Path) -> tuple[str, str]:
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return one_line(result.stderr)


def test_a_dry_run_writes_nothing(finished: Finished, copied: Path) -> None:
    before = tree(copied)
    told = as_json("withdraw", finished.source, "-w", copied, "--dry-run", "--person")
    assert finished.source in [one["key"] for one in told["withdrawn"]]
    assert told["rows"] > 20
    assert told["pictures"] == 7
    assert [edition["rows"] for edition in told["editions"]] == [6]
    assert "Nothing was written" in call("withdraw", finished.source, "-w", copied, "--dry-run").stdout
    assert tree(copied) == before


def test_a_candidate_key_takes_its_source_out_for_good(finished: Finished, copied: Path) -> None:
    source = finished.candidate.partition(":")[0]
    result = call("withdraw", finished.candidate, "-w", copied, "--reason", "asked by letter")
    assert result.exit_code == 0, result.stderr
    for words in ("asked for", "6 rows", "Not reached from here", "backups"):
        assert words in result.stdout
    edition = copied / "datasets/demo/v1"
    assert verify(edition) == []
    assert "1 source was withdrawn" in (edition / "README.md").read_text()
    assert "asked by letter" not in (edition / "README.md").read_text()
    for key in (source, finished.candidate):
        assert as_json("explain", key, "-w", copied)["withdrawn"]["reason"] == "asked by letter"
    assert "asked by letter" in call("explain", source, "-w", copied).stdout
    assert as_json("status", "-w", copied)["withdrawn"] == [source]
    assert f"for good: {source}" in call("status", "-w", copied).stdout
    again = call("withdraw", source, "-w", copied)
    assert "already" in again.stdout
    run, done = built(copied, load_config("demo", None, ["limit=7"]))
    assert sum(commits["screen"].reasons.get("withdrawn", 0) for commits in done) == 1
    assert finish(run, done).report.exists()
    assert verify(edition) == []


def test_what_is_withdrawn_in_a_newer_release_leaves_older_copies(
    finished: Finished, copied: Path, tmp_path: Path
) -> None:
    old = Path(shutil.copytree(finished.result.dataset, tmp_path / "old"))
    assert "nothing is withdrawn" in refused("withdraw", "--like", copied / "datasets/demo/v1", "--dataset", old)[0]
    assert call("withdraw", finished.source, "-w", copied).exit_code == 0
    told = as_json("withdraw", "--like", copied / "datasets/demo/v1", "--dataset", old)
    assert told["withdrawn"] == [finished.source]
    assert tree(old) == tree(copied / "datasets/demo/v1")
    assert "no key" in refused("withdraw", "--like", copied, "a/b")[1]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["samples/astronout"], "no source 'samples/astronout'", "near it: samples/astronaut"),
        (["astronaut"], "'astronaut' is no key", "pool/source_id"),
        ([], "nobody to withdraw", "give a key"),
        (["samples/astronaut", "--dataset", "nowhere"], "cannot be cleaned", "move it away"),
    ],
)
def test_mistakes(copied: Path, words: list[str], message: str, hint: str) -> None:
    plan = next(copied.glob("runs/demo/plan-*/00000.json"))
    known = json.loads(plan.read_text())
    known[0][0]["key"]["source_id"] = "astronaut"
    plan.write_text(json.dumps(known))
    before = tree(copied)
    told = refused("withdraw", *words, "-w", copied)
    assert message in told[0]
    assert hint in told[1]
    assert {name: data for name, data in tree(copied).items() if name != "lock"} == {
        name: data for name, data in before.items() if name != "lock"
    }


def test_no_workspace(tmp_path: Path) -> None:
    assert "is no workspace" in refused("withdraw", "samples/astronaut", "-w", tmp_path)[0]
    assert list(tmp_path.iterdir()) == []
