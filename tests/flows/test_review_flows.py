"""The flows around the people on a real Prefect: who waits has not failed, and what is decided goes on once."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks import pipeline
from tasks.boards.collecting import Collected
from tasks.dataset.verify import verify
from tasks.engine.errors import WaitingForReview
from tasks.engine.store import Store
from tests import fakes
from tests.review.asking import best, config, questions, say

pytestmark = pytest.mark.usefixtures("world", "prefect_server")


@pytest.fixture
def world() -> fakes.World:
    pipeline._worker.cache_clear()
    return fakes.install()


@pytest.fixture(autouse=True)
def _no_label_studio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers come by `say`: fetching them from a server is tested where there is one."""
    monkeypatch.setattr("flows.review.collect_review", lambda _: Collected())
    monkeypatch.setattr("flows.review.open_review", lambda *_: [])


def collected(settings: Any, workspace: Path) -> Any:
    """The state that a collection ends in."""
    from flows.review import collect_review_flow

    return collect_review_flow(settings, str(workspace), return_state=True)


def builds_of(name: str) -> list[Any]:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as api:
        flows = {flow.id: flow.name for flow in api.read_flows()}
        runs = [run for run in api.read_flow_runs() if run.name == f"{name}-v1"]
    return [run for run in runs if flows[run.flow_id] == "build-dataset"]


def test_a_build_that_waits_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from flows.build import build_dataset

    settings = config("name=waits")
    given = build_dataset(settings, str(tmp_path))
    assert isinstance(given, WaitingForReview)
    assert "fedbench review open" in given.hint
    (run,) = builds_of("waits")
    assert (run.state.is_completed(), run.state.name) == (True, "WaitingForReview")
    assert "people have yet to decide" in run.state.message
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_collection_goes_on_when_enough_is_decided_and_once(tmp_path: Path) -> None:
    settings = config("name=goes-on")
    with pytest.raises(WaitingForReview):
        fakes.build(tmp_path, settings)
    asked = questions(tmp_path, settings)
    say(tmp_path, asked[1:], ann1=best, ann2=best)
    state = collected(settings, tmp_path)
    assert (state.name, state.is_completed()) == ("WaitingForReview", True)
    assert state.message == f"people have decided {len(asked) - 1} of {len(asked)} sources"
    assert builds_of("goes-on") == []

    say(tmp_path, asked[:1], ann1=best, ann2=best)
    with Store(tmp_path).lock():
        assert collected(settings, tmp_path).name == "WorkspaceInUse"
    states: list[Any] = []
    rivals = [threading.Thread(target=lambda: states.append(collected(settings, tmp_path))) for _ in range(2)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert [state.name for state in states] == ["Completed", "Completed"]
    (built,) = builds_of("goes-on")
    assert built.state.name == "Completed"
    assert verify(tmp_path / "datasets" / "goes-on" / "v1") == []
    assert collected(settings, tmp_path).is_completed()
    assert len(builds_of("goes-on")) == 1, "what is published is not built again"


def test_a_prefect_server_gets_one_run_per_state_of_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WaitingForReview):
        fakes.build(tmp_path, config())
    from prefect.states import Completed, Failed

    from flows.listening import Listener

    # A run that failed would come back under its key, so it is tried under another.
    state, started = ["then"], list[dict[str, Any]]()
    ends = [Completed(), Completed(), Failed(), Completed(name="WaitingForReview"), Completed()]

    def run(name: str, **more: Any) -> Any:
        started.append({"deployment": name, **more})
        return SimpleNamespace(name="calm-fox", state=ends[len(started) - 1])

    monkeypatch.setattr("flows.listening.address", lambda: "http://127.0.0.1:4200/api")
    monkeypatch.setattr("flows.listening.pulse", lambda *_: list(state))
    monkeypatch.setattr("prefect.deployments.run_deployment", run)
    listener = Listener(tmp_path, None, ())
    listener.look()
    Listener(tmp_path, None, ()).look()  # another one, or the same one started again
    state[0] = "later"
    for _ in range(3):
        listener.look()
    first, again, later, retried, last = (one["idempotency_key"] for one in started)
    assert first == again
    assert len({first, later, retried}) == 3
    assert retried == last
    assert started[0]["deployment"] == "collect-review/collect-review"
    assert started[0]["parameters"]["workspace"] == str(tmp_path)
    assert started[0]["parameters"]["config"]["name"] == "fakes"
