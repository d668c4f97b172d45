"""The `fedbench` command: what each verb prints and writes, its exit codes, and every error in one line."""

import fcntl
import importlib.util
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import flows.doctor
from flows.cli import app
from flows.options import load_config
from tasks import pipeline
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.results import finish, saved_config
from tests.builds import built, threads
from tests.commands import fedbench, one_line, run
from tests.flows.conftest import Finished

HEAVY = {"prefect", "mediapipe", "cv2", "pyarrow", "onnxruntime", "torch", "tensorflow", "sklearn"}


def verbs(app_: typer.Typer = app, before: str = "") -> list[str]:
    """Every command, as it is typed."""
    own = [f"{before}{info.name or info.callback.__name__}" for info in app_.registered_commands if info.callback]
    for group in app_.registered_groups:
        assert group.typer_instance
        # A group without a name lends its verbs to the one above.
        own += verbs(group.typer_instance, f"{before}{group.name} " if isinstance(group.name, str) else before)
    return own


def call(*words: str | Path) -> Result:
    """A verb in this process."""
    pipeline._worker.cache_clear()
    return CliRunner().invoke(app, [str(word) for word in words])


def fine(*words: str | Path) -> str:
    result = call(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def as_json(*words: str | Path) -> Any:
    return json.loads(fine(*words, "--json"))


def refused(code: int, *words: str | Path) -> tuple[str, str]:
    """The message and hint of a verb that must fail, with nothing on stdout."""
    result = call(*words)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    return one_line(result.stderr)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file's size and time."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def untouched(finished: Finished) -> Iterator[Path]:
    """The finished workspace, which the test must leave as it is, to the file's time."""
    before = snapshot(finished.folder)
    yield finished.folder
    assert snapshot(finished.folder) == before


# -- help and start-up --------------------------------------------------------------------------------------------


def test_help_is_there_at_once(clean: dict[str, str], tmp_path: Path) -> None:
    took = []
    for _ in range(3):
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = run(fedbench("--help"), clean, tmp_path)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
    assert result.returncode == 0
    assert min(took) < 1, "CPU seconds: on a busy machine the clock says nothing"
    for verb in verbs():
        assert verb.split()[0] in result.stdout
    assert "Exit codes" in result.stdout


def test_the_command_is_installed(clean: dict[str, str], tmp_path: Path) -> None:
    command = shutil.which("fedbench", path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip("fedbench is not installed beside this Python")
    assert run([command, "--help"], clean, tmp_path).stdout == run(fedbench("--help"), clean, tmp_path).stdout


def imported(words: list[str], env: dict[str, str], cwd: Path) -> set[str]:
    """Which top-level packages a command had imported when it ended."""
    code = (
        "import sys, atexit; from flows import cli; sys.argv = ['fedbench', *sys.argv[1:]]\n"
        "atexit.register(lambda: print('\\nIMPORTED', *{name.partition('.')[0] for name in sys.modules}))\n"
        "cli.main()"
    )
    result = run([sys.executable, "-c", code, *words], env, cwd)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.rpartition("IMPORTED")[2].split())


@pytest.mark.parametrize("words", [["--help"], ["demo", "--help"], ["models", "--help"]])
def test_help_imports_nothing_heavy(words: list[str], clean: dict[str, str], tmp_path: Path) -> None:
    assert not imported(words, clean, tmp_path) & HEAVY


def test_looking_starts_no_orchestrator(untouched: Path, clean: dict[str, str], tmp_path: Path) -> None:
    for words in (["status"], ["recut", "--set", "rank.cut.top_k=1"], ["explain", "--help"]):
        assert "prefect" not in imported(
            [*words, *(["-w", str(untouched)] if len(words) != 2 else [])], clean, tmp_path
        )


def test_a_build_with_nothing_to_do_starts_no_orchestrator(copied: Path, clean: dict[str, str], tmp_path: Path) -> None:
    names = imported(["demo", "--set", "limit=7", "-w", str(copied)], clean, tmp_path)
    assert not names & {"prefect", "mediapipe", "torch"}


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_has_help(verb: str) -> None:
    text = fine(*verb.split(), "--help")
    assert "Usage:" in text
    if verb != "models pull":
        assert "--json" in text


# -- mistakes, as a user's shell sees them ------------------------------------------------------------------------


def test_an_error_is_a_line_on_stderr_and_an_exit_code(clean: dict[str, str], tmp_path: Path) -> None:
    result = run(fedbench("demo", "--set", "rank.cut.topk=1"), clean, tmp_path)
    message, hint = one_line(result.stderr)
    assert (result.returncode, result.stdout) == (2, "")
    assert "'rank.cut.topk'" in message
    assert "top_k" in hint
    assert list(tmp_path.iterdir()) == [], "a wrong config must leave no workspace behind"


def test_a_workspace_in_use_is_refused_and_still_can_be_looked_at(
    copied: Path, clean: dict[str, str], tmp_path: Path
) -> None:
    with (copied / "lock").open("w") as held:
        held.write("4711")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        result = run(fedbench("demo", "-w", copied), clean, tmp_path)
        message, hint = one_line(result.stderr)
        assert result.returncode == 7
        assert "in use by process 4711" in message
        assert "--workspace" in hint
        assert run(fedbench("status", "-w", copied), clean, tmp_path).returncode == 0
    assert run(fedbench("demo", "--set", "limit=7", "-w", copied), clean, tmp_path).returncode == 0


def test_output_survives_a_terminal_without_unicode(finished: Finished, clean: dict[str, str], tmp_path: Path) -> None:
    for words in (["status"], ["explain", finished.source], ["recut", "--set", "rank.cut.top_k=1"]):
        result = run(
            fedbench(*words, "-w", finished.folder), clean | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, tmp_path
        )
        assert (result.returncode, result.stderr) == (0, "")


def test_a_reader_that_leaves_early_gets_no_traceback(
    finished: Finished, clean: dict[str, str], tmp_path: Path
) -> None:
    command = fedbench("explain", finished.source, "-w", finished.folder, "--json")
    with subprocess.Popen(command, env=clean, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["demo", "--set", "nope=1"], "unknown key 'nope'"),
        (["demo", "--set", "seed=x"], "seed"),
        (["demo", "--set", "generate.measure.editor=nope"], "unknown editor 'nope'"),
        (["demo", "--set", "pools=[samples, samples]"], "pools"),
        (["build"], "nothing says what to build"),
        (["build", "--preset", "nope"], "unknown preset 'nope'"),
        (["build", "--config", "gone.yaml"], "gone.yaml"),
        (["build", "--preset", "folder", "--set", "pools.0.params.root=/nonexistent"], "'/nonexistent' does not exist"),
        (["build", "--preset", "folder", "--set", "pools.0.params.root=EMPTY"], "no image in"),
        (["status"], "none yet"),
        (["explain", "samples/astronaut"], "none yet"),
        (["recut", "--set", "rank.cut.top_k=1"], "none yet"),
        (["status", "--run", "nope"], "none yet"),
        (["verify", "EMPTY"], "no published data set"),
        (["verify", "gone"], "no published data set"),
        (["models", "pull", "nope"], "unknown model 'nope'"),
    ],
)
def test_a_mistake_is_exit_code_2_and_a_line(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    message, hint = refused(2, *[word.replace("EMPTY", str(tmp_path / "empty")) for word in words])
    assert told in message
    assert hint


def test_the_folder_preset_without_a_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "private.jpg").write_bytes(b"not meant")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tasks.results.build", lambda *_: pytest.fail("it would screen the current folder"))
    assert "root" in refused(2, "build", "--preset", "folder", "-w", tmp_path / "workspace")[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["status", "--run", "nope"], "it has: demo"),
        (["status", "--set", "nope=1"], "unknown key 'nope'"),
        (["status", "--set", "pools.3.name=x"], "no place in a list"),
        (["explain", "nope"], "no row 'nope' in run 'demo'"),
        (["explain", "samples/nope:sad@warp#0"], "no row"),
        (["explain", "samples/"], "no row"),
        (["explain", "samples/x", "--run", "nope"], "it has: demo"),
        (["recut"], "nothing to recut"),
        (["recut", "--set", "seed=1"], "not a threshold"),
        (["recut", "--set", "rank.measure.mask_dilation=0.1"], "not a threshold"),
        (["recut", "--set", "rank.cut.nope=1"], "unknown key 'rank.cut.nope'"),
        (["recut", "--set", "rank.cut.top_k=0"], "rank.cut.top_k"),
        (["top-up", "--editor", "nope"], "unknown editor 'nope'"),
        (["top-up", "--editor", "[1"], "names no editor"),
        (["top-up", "--attempts", "2"], "knows no seed"),
        (["top-up", "--run", "nope"], "it has: demo"),
    ],
)
def test_a_mistake_in_looking_is_exit_code_2_and_leaves_no_trace(words: list[str], told: str, untouched: Path) -> None:
    message, hint = refused(2, *words, "-w", untouched)
    assert told in message
    assert hint


@pytest.mark.parametrize(
    "words", [["--nope"], ["nope"], ["demo", "--nope"], ["explain"], ["verify"], ["models", "nope"]]
)
def test_a_wrong_command_line_is_exit_code_2_without_a_traceback(words: list[str]) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert result.stderr


@pytest.mark.parametrize("verb", ["demo", "doctor"])
def test_an_unusable_workspace_is_exit_code_7(verb: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nope")):
        if verb == "demo":
            message, hint = refused(7, "demo", "-w", place)
            assert str(place) in message
            assert hint
        else:
            result = call("doctor", "-w", place, "--json")
            assert result.exit_code == 7
            assert [row["what"] for row in json.loads(result.stdout) if not row["ok"] and row["needed"]] == [
                f"workspace {place}"
            ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_workspace_is_exit_code_7(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        message, _ = refused(7, "demo", "-w", tmp_path / "workspace")
        assert "no permission" in message
    finally:
        tmp_path.chmod(0o755)


def damage(workspace: Path, pattern: str, content: bytes) -> Path:
    path = sorted(workspace.glob(pattern))[0]
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("pattern", "content"),
    [
        ("runs/demo/config.json", b"{"),
        ("runs/demo/config.json", b""),
        ("runs/demo/config.json", b"\xff\xfe"),
        ("runs/demo/plan-*/00000.json", b"[["),
        ("stages/screen/*/decided-*.json", b'{"a":'),
    ],
)
def test_a_file_cut_short_is_named_with_the_way_out(copied: Path, pattern: str, content: bytes) -> None:
    path = damage(copied, pattern, content)
    message, hint = refused(7, "status", "-w", copied)
    assert message == f"{path} is damaged"
    assert "delete it" in hint
    path.unlink()
    assert call("status", "-w", copied).exit_code in (0, 2)  # 2: without its config the run is not known


@pytest.mark.parametrize("verb", [["explain", "KEY"], ["recut", "--set", "rank.cut.top_k=1"]])
def test_a_damaged_part_is_named_with_the_way_out(verb: list[str], copied: Path, finished: Finished) -> None:
    folders = list((copied / "stages" / "verify").iterdir())
    for folder in folders:
        for part in folder.glob("part-*.parquet"):
            part.write_bytes(part.read_bytes()[:-20])
    message, hint = refused(7, *[word.replace("KEY", finished.source) for word in verb], "-w", copied)
    assert "cannot read" in message
    assert "stages/verify/" in message
    assert "delete the folder" in hint


@pytest.mark.parametrize(
    ("pattern", "content"),
    [
        ("runs/demo/config.json", b"[]"),
        ("runs/demo/config.json", b'{"name": "demo", "of_the_future": 1}'),
        ("runs/demo/plan-*/00000.json", b"{}"),
        ("runs/demo/plan-*/00000.json", b"[[{}]]"),
        ("stages/screen/*/decided-*.json", b"{}"),
    ],
)
def test_a_file_of_another_version_is_named(copied: Path, pattern: str, content: bytes) -> None:
    path = damage(copied, pattern, content)
    assert path.name in " ".join(refused(7, "status", "-w", copied))


def test_a_build_mends_what_a_user_deleted_as_told(copied: Path, finished: Finished) -> None:
    """Each deletion that a hint asks for is survived: the build computes it again, to the same data set."""
    shutil.rmtree(sorted((copied / "stages" / "screen").iterdir())[0])
    run_ = open_run(copied, finished.run.config)
    with Store(copied).lock():
        done = pipeline.build(run_, threads)
    assert [commits["publish"].kept_digest for commits in done] == [
        commits["publish"].kept_digest for commits in finished.run.executor.commits()
    ]


# -- what the verbs say -------------------------------------------------------------------------------------------


def test_status_before_any_build(tmp_path: Path) -> None:
    message, hint = refused(2, "status", "-w", tmp_path / "nothing")
    assert "none yet" in message
    assert "build first" in hint
    assert not (tmp_path / "nothing").exists()


def test_status_of_a_finished_run(untouched: Path) -> None:
    text = fine("status", "-w", untouched)
    assert "Everything is done." in text
    for stage in ("screen", "generate", "verify", "rank", "caption", "review", "instruct", "publish"):
        assert stage in text
    funnel = as_json("status", "-w", untouched)["funnel"]
    assert next(row["stage"] for row in funnel) == "screen"
    assert all(row["shards_done"] == row["shards"] == 4 for row in funnel)


def test_status_with_a_change_says_what_would_be_due(untouched: Path) -> None:
    text = " ".join(fine("status", "-w", untouched, "--set", "rank.cut.top_k=1").split())
    assert "Due: rank, caption, review, instruct, publish." in text
    text = " ".join(fine("status", "-w", untouched, "--set", "generate.measure.attempts=2").split())
    assert "Due: generate, verify, rank, caption, review, instruct, publish." in text
    text = fine("status", "-w", untouched, "--set", "workers=7")
    assert "Everything is done." in text


def test_status_under_another_seed_says_that_all_is_due(untouched: Path) -> None:
    text = fine("status", "-w", untouched, "--set", "seed=99")
    assert "everything is due" in text
    assert "Everything is done" not in text


def test_explain_tells_a_source_with_its_candidates(untouched: Path, finished: Finished) -> None:
    text = fine("explain", finished.source, "-w", untouched)
    told = as_json("explain", finished.source, "-w", untouched)
    assert next(life["key"] for life in told["lives"]) == finished.source
    assert len(told["lives"]) == 7
    for life in told["lives"]:
        assert life["key"] in text
        for stage, step in life["steps"].items():
            assert {"status", "reason", "evidence"} <= step.keys(), stage
    assert "prompts" in text


def test_explain_tells_a_candidates_votes_numbers_and_words(untouched: Path, finished: Finished) -> None:
    text = fine("explain", finished.candidate, "-w", untouched)
    told = as_json("explain", finished.candidate, "-w", untouched)
    source, candidate = told["lives"]
    assert f"{told['source']['key']['pool']}/{told['source']['key']['source_id']}" == source["key"]
    assert candidate["key"] == finished.candidate
    assert list(candidate["steps"]) == ["generate", "verify", "rank", "caption", "review", "instruct", "publish"]
    assert {step["status"] for step in candidate["steps"].values()} == {"kept"}
    assert len(candidate["measured"]["verify"]["votes"]) == 2
    assert 0 <= candidate["measured"]["rank"]["background_rmse"] < 40
    assert candidate["outputs"]["publish"]["dense_instruction"] in " ".join(text.split())
    for word in ("verify.vote fer", "verify.vote blendshapes", "rank.background_rmse", "simple:", "dense:"):
        assert word in text
    # The picture's path stands on one line, so that it can be copied.
    image = next(line.split()[1] for line in text.splitlines() if "generate.image" in line)
    assert Path(image).is_file()


def test_explain_tells_why_a_source_was_rejected(untouched: Path, finished: Finished) -> None:
    rejected = next(
        str(row.key)
        for shard, done in zip(finished.run.executor.shards, finished.run.executor.commits(), strict=True)
        for row in finished.run.executor.decided("screen", shard, done["screen"])
        if row.status != "kept"
    )
    (life,) = as_json("explain", rejected, "-w", untouched)["lives"]
    assert life["steps"]["screen"]["status"] == "rejected"
    assert life["steps"]["screen"]["reason"] in fine("explain", rejected, "-w", untouched)


def test_recut_says_who_moves_and_a_build_makes_it_so(untouched: Path, copied: Path) -> None:
    said = as_json("recut", "-w", untouched, "--set", "rank.cut.top_k=1")
    assert said["moved"]
    assert not any(said["unmeasured"].values())
    text = fine("recut", "-w", untouched, "--set", "rank.cut.top_k=1")
    assert f"{len(said['moved'])} rows move" in text
    assert f"Triplets: {said['triplets_before']} before, {said['triplets_after']} after." in text

    before = fates(copied)
    pipeline._worker.cache_clear()
    run_, done = built(copied, load_config("demo", None, ["limit=7", "rank.cut.top_k=1"]))
    result = finish(run_, done)
    after = fates(copied)
    assert result.written
    assert result.triplets == said["triplets_after"]
    assert {move["key"]: (move["before"], move["after"]) for move in said["moved"]} == {
        key: (before.get(key, "not owed"), after.get(key, "not owed"))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    }


def fates(workspace: Path) -> dict[str, str]:
    """By key, where every row of a workspace's only run ended."""
    pipeline._worker.cache_clear()
    run_ = open_run(workspace, saved_config(workspace, None))
    return {
        str(row.key): f"{stage}: {row.status} {row.reason or row.kind or ''}".strip()
        for shard, done in zip(run_.executor.shards, run_.executor.commits(), strict=True)
        for stage, commit in done.items()
        for row in run_.executor.decided(stage, shard, commit)
    }


def test_recut_that_lets_more_in_says_what_was_never_measured(untouched: Path) -> None:
    said = as_json("recut", "-w", untouched, "--set", "rank.cut.top_k=3")
    assert any(said["unmeasured"].values()), "a third finalist has no caption yet"
    text = " ".join(fine("recut", "-w", untouched, "--set", "rank.cut.top_k=3").split())
    assert "would enter 'caption' and wait there for a model" in text


def test_recut_that_changes_nothing_moves_nobody(untouched: Path) -> None:
    said = as_json("recut", "-w", untouched, "--set", "rank.cut.top_k=2")
    assert (said["moved"], said["triplets_before"]) == ([], said["triplets_after"])


def test_top_up_counts_the_cells_and_prints_a_command_that_works(copied: Path) -> None:
    assert "No cell is short" in fine("top-up", "-w", copied)
    sets = ["limit=7", "publish.cut.target=84"]
    fine("demo", *(word for one in sets for word in ("--set", one)), "-w", copied)
    assert "another attempt would be the same picture" in fine("top-up", "-w", copied)
    before = snapshot(copied)
    editor = "{name: warp, params: {intensity: 1.5}}"
    told = as_json("top-up", "--editor", editor, "--called", "strong", "-w", copied)
    shown = fine("top-up", "--editor", editor, "--called", "strong", "-w", copied)
    assert snapshot(copied) == before
    assert len(told["cells"]) == 42
    assert told["new_edits"] == sum(cell["new_edits"] for cell in told["cells"]) > 0
    assert told["short"] == sum(max(0, 2 - cell["has"]) for cell in told["cells"])
    assert f"{told['new_edits']} new edits and at most {told['votes']} votes" in " ".join(shown.split())
    assert told["command"] in shown
    command = shlex.split(told["command"])
    assert command[:3] == ["fedbench", "build", "-w"]
    lines = shown[shown.index("generate:") : shown.index("\nor ")]
    (copied / "more.yaml").write_text(lines)
    by_option = load_config(None, Path(command[command.index("--config") + 1]), [command[-1]])
    assert by_option == load_config("demo", copied / "more.yaml", sets)
    due = as_json("status", "-w", copied, "--set", command[-1])["rows"]["generate"]["due"]
    assert due == told["new_edits"]


def test_a_finished_build_says_where_things_lie(copied: Path) -> None:
    text = fine("demo", "--set", "limit=7", "-w", copied)
    assert "No model had to run" in text
    lines = dict(line.split("  ", 1) for line in text.splitlines() if "  " in line)
    assert str(copied / "datasets" / "demo" / "v1") in lines["data set"]
    assert lines["next"].strip().split()[:2] == ["fedbench", "verify"]
    told = as_json("demo", "--set", "limit=7", "-w", copied)
    assert not told["written"]
    assert Path(told["dataset"], "manifest.json").is_file()
    assert Path(told["report"]).is_file()
    assert "No model had to run" in fine("build", "--preset", "demo", "--set", "limit=7", "-w", copied)


def test_print_config_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_json("build", "--preset", "demo", "--print-config")["name"] == "demo"
    assert fine("build", "--preset", "demo", "--print-config").startswith("name: demo\n")
    assert list(tmp_path.iterdir()) == []


def test_verify_passes_what_was_published_and_names_what_was_changed(copied: Path) -> None:
    dataset = copied / "datasets" / "demo" / "v1"
    assert f"{dataset} is whole" in fine("verify", dataset)
    assert {"ok": True, "faults": []}.items() <= as_json("verify", dataset).items()
    card = dataset / "README.md"
    card.write_bytes(card.read_bytes() + b"\n")
    result = call("verify", dataset)
    assert result.exit_code == 3
    assert "README.md" in result.stderr
    assert "Traceback" not in result.stderr
    told = json.loads(call("verify", dataset, "--json").stdout)
    assert not told["ok"]
    assert "README.md" in {fault["where"] for fault in told["faults"]}


def test_models_are_listed_and_checked() -> None:
    rows = as_json("models", "list")
    assert {"yunet", "face_landmarker", "sface", "fer", "buffalo_l"} <= {row["name"] for row in rows}
    assert all(row["licence"] and row["purpose"] for row in rows)
    text = fine("models", "list")
    assert all(row["name"] in text and row["licence"] in text for row in rows)
    assert as_json("models", "check") == rows


def test_a_wrong_model_file_is_exit_code_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.engine import weights

    monkeypatch.setenv("FEDBENCH_CACHE", str(tmp_path))
    (tmp_path / weights._file_name(weights.entry("fer"))).write_bytes(b"not a model")
    result = call("models", "check", "--json")
    assert result.exit_code == 7
    assert {row["name"]: row["state"] for row in json.loads(result.stdout)}["fer"] == "wrong hash"
    assert call("models", "list").exit_code == 0
    assert call("doctor", "-w", tmp_path / "workspace").exit_code == 7
    message, _ = refused(7, "models", "pull", "buffalo_l")
    assert "buffalo_l" in message


def test_the_doctor_is_content_here(clean: dict[str, str], tmp_path: Path) -> None:
    result = run(fedbench("doctor", "-w", tmp_path / "workspace", "--json"), clean, tmp_path)
    assert result.returncode == 0, result.stdout
    found = {row["what"]: row for row in json.loads(result.stdout)}
    assert found["prefect"]["ok"]
    assert found["mediapipe"]["state"].startswith("mediapipe ")
    assert "temporary" in found["prefect server"]["state"]
    assert "GB free" in found[f"workspace {tmp_path / 'workspace'}"]["state"]
    assert not (tmp_path / "workspace").exists()


def test_the_doctor_says_what_a_missing_package_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    gone: set[str] = set()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in gone else find(name, *rest))
    for package, (cost, optional) in flows.doctor.PACKAGES.items():
        gone = {package}
        result = call("doctor", "-w", tmp_path / "workspace", "--json")
        found = {row["what"]: row for row in json.loads(result.stdout)}[package]
        assert (found["ok"], found["state"], found["cost"]) == (False, "missing", cost)
        assert result.exit_code == (0 if optional else 7)
    gone = {"mediapipe"}
    assert "missing" in call("doctor", "-w", tmp_path / "workspace").stdout


def test_the_doctor_says_when_no_server_answers(clean: dict[str, str], tmp_path: Path) -> None:
    env = clean | {"PREFECT_API_URL": "http://127.0.0.1:9/api"}
    result = run(fedbench("doctor", "-w", tmp_path / "workspace", "--json"), env, tmp_path)
    assert result.returncode == 7
    assert "127.0.0.1:9" in {row["what"]: row["state"] for row in json.loads(result.stdout)}["prefect server"]
    result = run(fedbench("demo", "-w", tmp_path / "workspace"), env, tmp_path)
    assert result.returncode == 7
    assert "http://127.0.0.1:9/api" in one_line(result.stderr)[0]
