"""The flow on a real Prefect: what it submits, records, refuses and lets through; and that nothing calls outside."""

import importlib
import os
import pty
import subprocess
import sys
import threading
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows import quiet
from schemas.config import BuildConfig
from schemas.outcomes import FailureKind
from tasks import pipeline
from tasks.engine import weights
from tasks.engine.errors import ConfigError, FedbenchError, ItemFailed, StoppedError, TooManyFailures, WorkspaceError
from tasks.engine.store import Store
from tasks.pipeline import work
from tests import fakes
from tests.commands import ROOT, environment, fedbench, wait_until

pytestmark = pytest.mark.usefixtures("world")
SHARDS = [f"{number:05d}" for number in range(4)]


@pytest.fixture
def world() -> fakes.World:
    pipeline._worker.cache_clear()
    return fakes.install()


def flow(config: Any, workspace: Path) -> Any:
    """The flow itself, as a process that has just started would run it."""
    from flows.build import build_dataset
    from flows.states import answer

    pipeline._worker.cache_clear()
    return answer(build_dataset(config, str(workspace)))


def client() -> Any:
    from prefect.client.orchestration import get_client

    return get_client(sync_client=True)


def runs_of(name: str) -> list[Any]:
    """The flow runs of a config's name, oldest first."""
    with client() as api:
        return sorted((run for run in api.read_flow_runs() if run.name == f"{name}-v1"), key=lambda run: run.created)


def tasks_of(run: Any) -> dict[str, dict[str, Any]]:
    """Segment → task run by name, of all sub-flows of a flow run."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterParentFlowRunId

    with client() as api:
        below = api.read_flow_runs(
            flow_run_filter=FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run.id]))
        )
        return {
            api.read_flow(segment.flow_id).name: {
                task.name: task
                for task in api.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[segment.id])))
            }
            for segment in below
        }


def recorded(run: Any, wanted: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """Wait until the records (they follow the flow) are exactly these, and all ended."""

    def there() -> bool:
        found = tasks_of(run)
        ended = all(task.state and task.state.is_final() for tasks in found.values() for task in tasks.values())
        return ended and {name: sorted(tasks) for name, tasks in found.items()} == wanted

    try:
        wait_until(there, 30, f"records {wanted}")
    except AssertionError:
        assert {name: sorted(tasks) for name, tasks in tasks_of(run).items()} == wanted
        raise
    return tasks_of(run)


ALL = {segment: [f"{segment}-{shard}" for shard in SHARDS] for segment in ("screen", "generate-to-instruct")}


# -- what Prefect sees --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("prefect_server")
def test_one_task_per_due_shard_and_segment_and_none_when_nothing_is_due(tmp_path: Path, world: fakes.World) -> None:
    config = fakes.config("name=counted")
    result = flow(config, tmp_path)
    (first,) = runs_of("counted")
    assert first.state.is_completed()
    tasks = recorded(first, ALL)
    assert {task.state.name for of_segment in tasks.values() for task in of_segment.values()} == {"Completed"}
    assert result.written

    asked = len(world.asked)
    again = flow(config, tmp_path)
    _, second = runs_of("counted")
    assert second.state.is_completed()
    assert tasks_of(second) == {}
    assert len(world.asked) == asked, "a finished build asks no model"
    assert (again.written, again.triplets, again.funnel) == (False, result.triplets, result.funnel)


@pytest.mark.usefixtures("prefect_server")
def test_only_shards_that_are_due_are_submitted(tmp_path: Path, world: fakes.World) -> None:
    flow(fakes.config("name=grown"), tmp_path)
    world.extra = 4  # four more sources: two more shards, of three and of one
    flow(fakes.config("name=grown"), tmp_path)
    _, grown = runs_of("grown")
    fresh = ["00004", "00005"]
    recorded(grown, {segment: [f"{segment}-{shard}" for shard in fresh] for segment in ALL})


@pytest.mark.usefixtures("prefect_server")
def test_the_flow_builds_what_the_pipeline_builds_without_it(tmp_path: Path) -> None:
    config = fakes.config("name=same")
    result = flow(config, tmp_path / "prefect")
    plain = fakes.build(tmp_path / "plain", config)
    assert fakes.tree(result.dataset) == plain.tree()
    assert plain.published
    assert result.triplets == plain.published.triplets > 0


@pytest.mark.usefixtures("prefect_server")
def test_progress_funnel_and_report_can_be_seen_in_the_ui(tmp_path: Path) -> None:
    from flows.runner import on_progress

    told: list[tuple[str, int, int]] = []
    token = on_progress.set(lambda segment, done, total: told.append((segment, done, total)))
    try:
        result = flow(fakes.config("name=seen"), tmp_path)
    finally:
        on_progress.reset(token)
    assert told == [(segment, done, 4) for segment in ALL for done in range(5)]
    with client() as api:
        artifacts = {
            artifact.key: artifact for artifact in sorted(api.read_artifacts(), key=lambda found: found.created)
        }
    for segment in ALL:
        assert artifacts[f"progress-{segment}"].data == 100
        assert "4 shards" in artifacts[f"progress-{segment}"].description
    for row in result.funnel:
        assert row.stage in artifacts["funnel-seen"].data
    assert result.report.as_uri() in artifacts["report-seen"].data
    assert result.report.is_file()


@pytest.mark.usefixtures("prefect_server")
def test_prefect_keeps_no_results_and_no_pictures(tmp_path: Path) -> None:
    flow(fakes.config("name=small"), tmp_path)
    (run,) = runs_of("small")
    for tasks in recorded(run, ALL).values():
        for task in tasks.values():
            assert task.cache_key is None
            assert len(task.model_dump_json()) < 20_000
    home = Path(os.environ["PREFECT_HOME"])
    assert not list((home / "storage").glob("*")) if (home / "storage").exists() else True


# -- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"shard_size": 0}, ("config.shard_size", "greater than or equal to 1")),
        ({"nope": 1}, ("config.nope", "Extra inputs are not permitted")),
        ({"rank": {"cut": {"top_k": "many"}}}, ("config.rank.cut.top_k", "integer")),
        ({"pools": []}, ("config.pools", "at least 1")),
    ],
)
def test_bad_parameters_are_refused_in_words(config: Any, words: Sequence[str], tmp_path: Path) -> None:
    from prefect.exceptions import ParameterTypeError

    with pytest.raises(ParameterTypeError) as caught:
        flow(config, tmp_path / "workspace")
    for word in words:
        assert word in str(caught.value)
    assert not (tmp_path / "workspace").exists()


def free(workspace: Path) -> bool:
    with Store(workspace).lock():
        return True


@pytest.mark.usefixtures("prefect_server")
def test_our_errors_come_through_with_type_words_and_hint(tmp_path: Path, world: fakes.World) -> None:
    def spent(role: str, _: str) -> Exception | None:
        return StoppedError("the quota is spent", "pay") if role == "edit" else None

    world.trouble = spent
    with pytest.raises(StoppedError) as caught:
        flow(fakes.config("name=stopped"), tmp_path)
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == ("the quota is spent", "pay", 4)
    (run,) = runs_of("stopped")
    assert run.state.is_failed()
    assert "the quota is spent" in run.state.message
    assert free(tmp_path)
    failed = [task for task in tasks_of(run)["generate-to-instruct"].values() if task.state.is_failed()]
    assert failed
    assert {task.run_count for task in failed} == {1}, "what the work says is not tried again"


@pytest.mark.usefixtures("prefect_server")
def test_a_config_error_comes_through(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown editor 'nope'"):
        flow(fakes.config("generate.measure.editor=nope"), tmp_path)
    assert free(tmp_path)


@pytest.mark.usefixtures("prefect_server")
def test_too_many_failures_come_through(tmp_path: Path, world: fakes.World) -> None:
    world.trouble = lambda role, _: ItemFailed(FailureKind.PROVIDER, "no answer") if role == "edit" else None
    with pytest.raises(TooManyFailures, match="max_failed"):
        flow(fakes.config("max_failed=0.0"), tmp_path)
    assert free(tmp_path)


@pytest.mark.usefixtures("prefect_server")
def test_a_workspace_in_use_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path).lock(), pytest.raises(WorkspaceError, match=f"in use by process {os.getpid()}"):
        flow(fakes.config(), tmp_path)


@pytest.mark.usefixtures("prefect_server")
def test_what_the_machine_did_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, hurt = threading.Lock(), set[tuple[str, ...]]()

    def shaky(job: Any) -> Any:
        with lock:
            fresh = job.segment not in hurt
            hurt.add(job.segment)
        if fresh:
            raise ConnectionResetError("the cable")
        return work(job)

    monkeypatch.setattr("flows.runner.work", shaky)
    flow(fakes.config("name=shaky"), tmp_path)
    (run,) = runs_of("shaky")
    for tasks in recorded(run, ALL).values():
        assert sorted(task.run_count for task in tasks.values()) == [1, 1, 1, 2]


@pytest.mark.usefixtures("prefect_server")
def test_what_was_done_before_a_stop_is_not_done_again(tmp_path: Path, world: fakes.World) -> None:
    whole = fakes.build(tmp_path / "whole", fakes.config("name=resumed"))
    edits = whole.counts["edit"]

    world.asked.clear()

    def spent(role: str, _: str) -> Exception | None:
        over = sum(1 for seen, _ in world.asked if seen == "edit") > edits // 2
        return StoppedError("the quota is spent") if role == "edit" and over else None

    world.trouble = spent
    with pytest.raises(FedbenchError):
        flow(fakes.config("name=resumed", "workers=1"), tmp_path / "stopped")
    world.trouble = lambda *_: None
    result = flow(fakes.config("name=resumed", "workers=1"), tmp_path / "stopped")
    assert fakes.tree(result.dataset) == whole.tree()
    asked_twice = {about for role, about in world.asked if role == "load" and world.asked.count((role, about)) > 1}
    assert not asked_twice, "no photo was screened again"
    _, second = runs_of("resumed")
    assert "screen" not in tasks_of(second)
    assert 0 < len(tasks_of(second)["generate-to-instruct"]) < 4


# -- settings -----------------------------------------------------------------------------------------------------


def test_every_deployment_names_a_flow_that_takes_its_parameters() -> None:
    from prefect.flows import Flow

    described = yaml.safe_load((ROOT / "prefect.yaml").read_text())
    names = [deployment["name"] for deployment in described["deployments"]]
    assert len(set(names)) == len(names) > 0
    for deployment in described["deployments"]:
        module, _, name = deployment["entrypoint"].partition(":")
        entry = getattr(importlib.import_module(module), name)
        assert isinstance(entry, Flow)
        assert deployment["parameters"].keys() <= entry.parameters.properties.keys()
        entry.validate_parameters(deployment["parameters"])
        quietened = deployment["work_pool"]["job_variables"]["env"]
        assert quietened.items() <= quiet.SETTINGS.items()


def test_the_form_in_the_ui_describes_every_field() -> None:
    from flows.build import build_dataset

    schema = build_dataset.parameters.model_dump()
    assert schema["required"] == ["config"]
    config = schema["definitions"]["BuildConfig"]["properties"]
    assert config.keys() == BuildConfig.model_fields.keys()
    for name in ("name", "seed", "limit", "pools", "max_failed"):
        assert config[name]["description"]


def in_pyproject() -> dict[str, str]:
    """[tool.prefect] as environment variables."""

    def flat(prefix: str, values: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in values.items():
            key = f"{prefix}_{name}".upper()
            found |= flat(key, value) if isinstance(value, dict) else {key: str(value).lower()}
        return found

    return flat("PREFECT", tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["prefect"])


def test_pyproject_and_quiet_agree() -> None:
    """Servers and workers started in the repository and our own commands have the same settings."""
    assert in_pyproject() == {name: value for name, value in quiet.SETTINGS.items() if name.startswith("PREFECT_")}


def test_prefect_knows_every_setting() -> None:
    """A setting that a later Prefect renames would be ignored without a word."""
    from prefect.settings.models.root import Settings

    known: set[str] = set()

    def walk(model: Any) -> None:
        for value in model.__dict__.values():
            if hasattr(value, "model_fields_set"):
                walk(value)
        prefix = model.model_config.get("env_prefix", "")
        known.update(f"{prefix}{name}".upper() for name in type(model).model_fields)

    walk(Settings())
    assert in_pyproject().keys() <= known


def test_quiet_leaves_what_a_user_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in quiet.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", raising=False)
    quiet.settle(verbose=True)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert os.environ["DO_NOT_TRACK"] == "1"
    assert "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL" not in os.environ
    quiet.settle()
    assert os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] == "CRITICAL"


# -- offline ------------------------------------------------------------------------------------------------------

WATCH = """
import os, sys
def _write(text):
    sink = os.open(os.environ["WATCHED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(sink, (text + "\\n").encode()); os.close(sink)
def _home(host):
    return host in (None, "", "localhost", "::1", b"localhost") or str(host).startswith("127.")
def _watch(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = args[1]
        if isinstance(address, tuple) and not _home(address[0]):
            _write(f"OUTSIDE {event} {address!r} {sys.orig_argv!r}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr") and not _home(args[0]):
        _write(f"OUTSIDE {event} {args!r} {sys.orig_argv!r}")
sys.addaudithook(_watch)
_write(f"STARTED {sys.orig_argv!r}")
"""


def test_a_build_calls_nothing_outside_this_machine(tmp_path: Path) -> None:
    """Watched in every Python process, on a terminal (where Prefect's telemetry is on by default), in a new home."""
    shim = tmp_path / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(WATCH)
    watched = tmp_path / "watched.txt"
    home = tmp_path / "home"
    home.mkdir()
    env = environment(tmp_path / "prefect", WATCHED=str(watched), FEDBENCH_CACHE=str(weights.cache_dir()))
    env |= {"HOME": str(home), "PYTHONPATH": os.pathsep.join([str(shim), env["PYTHONPATH"]])}
    env.pop("XDG_CACHE_HOME", None)
    assert not {"DO_NOT_TRACK", "CI", "HF_HUB_OFFLINE", "ORT_DISABLE_TELEMETRY"} & env.keys()

    (home / ".cache").mkdir()
    code, output = on_a_terminal(fedbench("demo", "--set", "limit=2", "-w", tmp_path / "workspace"), env, tmp_path)
    assert code == 0, output
    lines = watched.read_text().splitlines()
    started = [line for line in lines if line.startswith("STARTED")]
    assert any("flows.cli" in line for line in started)
    assert any("uvicorn" in line for line in started), "Prefect's temporary server was watched too"
    assert [line for line in lines if line.startswith("OUTSIDE")] == []
    # What onnxruntime's telemetry would send, it sends from native code, unseen; but first it stores a device id.
    assert {path.name for path in (home / ".cache").iterdir()} <= {"matplotlib"}, "its list of fonts"


def test_the_watch_sees_a_call(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    env = environment(tmp_path, WATCHED=str(tmp_path / "watched.txt"))
    env["PYTHONPATH"] = str(tmp_path)
    code = "import socket\ntry: socket.create_connection(('192.0.2.1', 9), 0.01)\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    told = (tmp_path / "watched.txt").read_text()
    assert "OUTSIDE socket.connect ('192.0.2.1', 9)" in told
    assert "OUTSIDE socket.getaddrinfo" in told


def on_a_terminal(command: Sequence[str], env: dict[str, str], cwd: Path) -> tuple[int, str]:
    """Run a command whose input and output are a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env=env, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = bytearray()
        try:
            while chunk := os.read(ours, 65536):
                said += chunk
        except OSError:
            pass  # how a terminal says that nobody writes any more
        os.close(ours)
        return process.wait(180), said.decode(errors="replace")
