"""What differs between two editions, and why."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.outcomes import Reason
from tasks.dataset.diff import Difference, diff
from tasks.dataset.fates import NOT_LISTED, NOT_OWED
from tasks.dataset.release import released
from tests import fakes
from tests.commands import one_line

Edition = Callable[..., Path]


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Builds another edition of 40 drawn sources in one workspace."""
    fakes.install()
    workspace = tmp_path_factory.mktemp("editions")

    def build(name: str, *sets: str, sources: int = 40) -> Path:
        fakes.build(workspace, fakes.config(f"edition={name}", *sets, sources=sources))
        return workspace / "datasets" / "fakes" / name

    return build


@pytest.fixture(scope="module")
def first(edition: Edition) -> Path:
    return edition("v1")


def compared(a: Path, b: Path) -> Difference:
    """Both ways, whose counts must add up and mirror each other."""
    there, back = diff(a, b), diff(b, a)
    for found in (there, back):
        assert found.a.triplets - len(found.removed) + len(found.added) == found.b.triplets
        assert found.kept + len(found.removed) == found.a.triplets
    assert [row.id for row in there.removed] == [row.id for row in back.added]
    assert len(there.changed) == len(back.changed)
    return there


def test_an_edition_and_its_index_do_not_differ(first: Path, tmp_path: Path) -> None:
    found = compared(first, released(first, tmp_path / "index", ()))
    assert (found.kept, found.changed, found.removed, found.added) == (found.a.triplets, (), (), ())
    assert found.settings == ()


def test_a_threshold_says_why_a_triplet_went(first: Path, edition: Edition) -> None:
    found = compared(first, edition("v2", "rank.cut.min_identity=0.96"))
    assert found.removed
    assert {row.fate.reason for row in found.removed} == {Reason.LOW_IDENTITY}
    assert {row.fate.stage for row in found.removed} == {"rank"}
    assert "0.96" in found.removed[0].fate.evidence
    assert [(row.where, row.before, row.after) for row in found.settings] == [
        ("config.rank.cut.min_identity", 0.4, 0.96)
    ]
    before, after = found.funnel["rank"]
    assert before
    assert after
    assert (before.owed, after.kept < before.kept) == (after.owed, True)


def test_a_replaced_ground_truth_names_the_other(first: Path, edition: Edition) -> None:
    found = compared(first, edition("v3", "rank.cut.identity_weight=0", "rank.cut.background_scale=1"))
    replaced = [row for row in found.removed if row.instead]
    assert replaced
    assert {row.fate.reason for row in replaced} <= {Reason.NOT_CHOSEN, Reason.BELOW_TOP_K}
    added = {row.id: row for row in found.added}
    assert all(row.id in added[other].instead for row in replaced for other in row.instead)


def test_another_voter_changes_votes_and_says_who(first: Path, edition: Edition) -> None:
    found = compared(first, edition("v4", "verify.measure.panel.1.params.name=c", "verify.cut.min_votes=2"))
    columns = {column.name: column for row in found.changed for column in row.columns}
    assert columns["votes"].stage == "verify"
    assert set(columns) <= {"votes", "verdict"}
    assert "models.verify.voter fake 2.params.name" in {row.where for row in found.settings}


def test_what_is_not_there_says_so(first: Path, edition: Edition) -> None:
    shorter = compared(first, edition("v5", sources=20))
    assert {row.fate.reason for row in shorter.removed} == {NOT_LISTED}
    fewer = compared(first, edition("v6", "generate.measure.targets=[happy]"))
    assert {row.fate.reason for row in fewer.removed if not row.id.endswith(":happy@fake#0")} == {NOT_OWED}
    assert "happy" in next(row.fate.evidence for row in fewer.removed if row.fate.reason == NOT_OWED)


def test_the_same_target_by_another_attempt_is_a_change(first: Path, edition: Edition) -> None:
    found = compared(first, edition("v7", "generate.measure.attempts=3"))
    columns = [{column.name for column in row.columns} for row in found.changed]
    assert {"attempt", "ground_truth_sha256", "seed"} in [
        names & {"attempt", "ground_truth_sha256", "seed"} for names in columns
    ]


def test_the_command(first: Path, edition: Edition, tmp_path: Path) -> None:
    edition("v2", "rank.cut.min_identity=0.96")
    workspace = first.parents[2]

    def call(*words: str | Path) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["diff", *map(str, words), "-w", str(workspace)])
        return result.exit_code, result.stdout, result.stderr

    code, out, _ = call("fakes/v1", first.with_name("v2"), "--json")
    told = json.loads(out)
    assert code == 0
    assert told["a"]["triplets"] - len(told["removed"]) + len(told["added"]) == told["b"]["triplets"]
    code, out, _ = call("fakes/v1", "fakes/v2")
    assert code == 0
    assert f"{told['a']['triplets']} triplets − {len(told['removed'])} removed" in out
    assert "low identity" in out
    for words in (("fakes/v1", "fakes/v9"), ("fakes/v1", tmp_path)):
        code, out, err = call(*words)
        assert (code, out) == (2, "")
        one_line(err)
    other = Path(shutil.copytree(first, tmp_path / "other"))
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps(manifest | {"schema_version": 1}))
    code, _, err = call("fakes/v1", other)
    assert code == 2
    assert "schema version 1" in one_line(err)[0]
