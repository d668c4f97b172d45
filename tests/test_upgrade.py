"""What another version of fedbench left is read as it is meant, made anew, or refused in words; never misread."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.routes import CallSettings
from tasks.boards.access import read_access
from tasks.engine import execute
from tasks.engine.account import accounts
from tasks.engine.answer_version import VERSION
from tasks.engine.batch_file import batches
from tasks.engine.calls import Calls, Reply, Request
from tasks.engine.errors import FedbenchError, WorkspaceError
from tasks.engine.rows import decided_type, measured_type
from tasks.engine.store import Store, arrow_schema
from tests import fakes

SETTINGS = fakes.config("shard_size=6", sources=6)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> fakes.Built:
    fakes.install()
    return fakes.build(tmp_path_factory.mktemp("upgrade") / "w", SETTINGS)


@pytest.fixture
def workspace(built: fakes.Built, tmp_path: Path) -> Path:
    fakes.install()
    return Path(shutil.copytree(built.run.store.root, tmp_path / "w"))


# -- Parquet parts ------------------------------------------------------------------------------------------------


def doctored(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """A part as another version would have written it."""
    yield "another column", table.append_column("of_another_version", pa.array(range(len(table))))
    for name in table.column_names:
        yield f"no {name}", table.drop_columns([name])
        kind = table.schema.field(name).type
        if pa.types.is_struct(kind) and kind.num_fields > 1:
            column = table[name].combine_chunks()
            arrays = [column.field(place) for place in range(1, kind.num_fields)]
            names = [kind.field(place).name for place in range(1, kind.num_fields)]
            inner = pa.StructArray.from_arrays(arrays, names=names, mask=column.is_null())
            yield f"no {name}.{kind.field(0).name}", table.set_column(table.column_names.index(name), name, inner)
        if pa.types.is_string(kind):
            yield (
                f"{name} as bytes",
                table.set_column(table.column_names.index(name), name, table[name].cast(pa.binary())),
            )


def test_a_part_of_other_columns_is_never_read(built: fakes.Built, tmp_path: Path) -> None:
    """Before, a missing column was read as nulls: other bytes were published, or a stage crashed."""
    store, seen = Store(tmp_path), 0
    for stage in built.run.executor.stages.values():
        for kind in (measured_type(stage.measurement), decided_type(stage.output)):
            for path in sorted((built.run.store.root / f"stages/{stage.name}").glob("*/part-*.parquet")):
                table = pq.read_table(path)
                if table.schema.equals(arrow_schema(kind)):
                    (tmp_path / "p").mkdir(exist_ok=True)
                    shutil.copyfile(path, tmp_path / "p/part.parquet")
                    assert len(store.read_part("p", "part.parquet", kind)) == len(table)
                    for _, other in doctored(table):
                        pq.write_table(other, tmp_path / "p/part.parquet")
                        with pytest.raises(
                            WorkspaceError, match=r"cannot read .*part\.parquet: another version"
                        ) as told:
                            store.read_part("p", "part.parquet", kind)
                        assert "the next run makes it anew" in told.value.hint
                        seen += 1
    assert seen > 100


def test_a_reason_of_a_newer_version_is_refused(built: fakes.Built, tmp_path: Path) -> None:
    stage = built.run.executor.stages["screen"]
    paths = built.run.store.root.glob("stages/screen/*/part-*.parquet")
    table = next(one for one in map(pq.read_table, paths) if "status" in one.column_names)
    place = table.column_names.index("reason")
    (tmp_path / "p").mkdir()
    pq.write_table(table.set_column(place, "reason", pa.array(["of a newer version"] * len(table))), tmp_path / "p/x")
    with pytest.raises(WorkspaceError, match="another version of fedbench wrote it"):
        Store(tmp_path).read_part("p", "x", decided_type(stage.output))


def test_decisions_of_another_shape_are_taken_anew_without_a_model(
    built: fakes.Built, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "shape", lambda output: f"another shape of {output}")
    again = fakes.build(workspace, SETTINGS)
    assert again.tree() == built.tree()
    assert not again.counts.keys() & {"edit", "vote", "caption", "instruct", "analyze", "embed"}
    assert again.published
    assert again.published.written


# -- JSON files ---------------------------------------------------------------------------------------------------


def kinds_of_json(root: Path) -> dict[str, Path]:
    """One file of each kind, by its name with digests and numbers left out."""
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*.json")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("datasets/"):
            found.setdefault(re.sub(r"[0-9a-f]{16,}|\d{5}", "*", name), path)
    return found


def first_record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else first_record(value[0])


def test_a_json_file_of_a_newer_version_is_refused_or_changes_nothing(built: fakes.Built, tmp_path: Path) -> None:
    refused = set()
    for kind, path in kinds_of_json(built.run.store.root).items():
        fakes.install()
        copy = Path(shutil.copytree(built.run.store.root, tmp_path / "w"))
        target = copy / path.relative_to(built.run.store.root)
        value = json.loads(target.read_bytes())
        first_record(value)["of_another_version"] = 1
        target.write_text(json.dumps(value))
        shutil.rmtree(copy / "datasets")
        try:
            said, tree = "", fakes.build(copy, SETTINGS).tree()
        except FedbenchError as error:
            said, tree = error.message, built.tree()
        assert tree == built.tree(), kind
        if said:
            assert path.name in said, kind
            assert "version" in said, kind
            refused.add(kind.rpartition("/")[2].partition("-")[0].partition(".")[0])
        shutil.rmtree(copy)
    assert {"measured", "decided", "editions", "*"} <= refused, "what is read is looked at"


def test_accounts_of_a_newer_version_are_refused_and_not_deleted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    read_access(store)
    path = tmp_path / "review/access.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"of_another_version": 1}))
    with pytest.raises(WorkspaceError, match="another version of fedbench wrote it: of_another_version") as told:
        read_access(store)
    assert "delete" not in told.value.hint, "its secret cannot be made again"


# -- the answer store ---------------------------------------------------------------------------------------------


def ask(path: Path) -> str:
    calls = Calls(path, CallSettings(), "run")
    try:
        return calls.ask(Request("voter", "acme", "m", {}, "p", ()), lambda: Reply("yes", cost=0.5))
    finally:
        calls.close()


def test_an_older_answer_store_is_brought_up_to_date_and_nothing_is_paid_again(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    ask(path)
    db = sqlite3.connect(path)
    db.executescript(
        "PRAGMA user_version = 0; ALTER TABLE ledger DROP COLUMN batch; DROP TABLE batches; DROP TABLE batched;"
    )
    db.close()
    assert [one.total.calls for one in accounts(path, "run")] == [1], "who only looks reads it as it is"
    assert batches(path, "run") == []
    ask(path)
    (one,) = accounts(path, "run")
    assert (one.total.calls, one.total.cached) == (1, 1)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_a_newer_answer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    ask(path)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(
        WorkspaceError, match=rf"a newer fedbench wrote .*version {VERSION + 1}; this one writes {VERSION}"
    ):
        ask(path)
    assert path.read_bytes() == before


# -- what a stop tells to delete -----------------------------------------------------------------------------------


def test_every_small_file_can_be_deleted_as_stops_advise(built: fakes.Built, tmp_path: Path) -> None:
    """Before, decisions outlived the measurements they were taken on: numbers were missing, or the build crashed."""
    kinds = [kind for kind in kinds_of_json(built.run.store.root) if kind.startswith(("stages/", "runs/fakes/plan"))]
    assert len(kinds) > 20
    for word in ("measured-", "decided-", "identity-", "plan-"):
        for place in range(2):
            fakes.install()
            copy = Path(shutil.copytree(built.run.store.root, tmp_path / "w"))
            found = sorted(copy.rglob(f"*{word}*.json")) or sorted(copy.glob("runs/*/plan-*/*.json"))
            for path in found[place::2]:
                path.unlink()
            shutil.rmtree(copy / "datasets")
            assert fakes.build(copy, SETTINGS).tree() == built.tree(), word
            shutil.rmtree(copy)
