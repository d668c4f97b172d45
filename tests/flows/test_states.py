"""How flow runs end: our errors are one line, waiting is no failure, and a secret is in neither."""

import logging
from typing import Any

import pytest

from tasks.engine.errors import BatchesWaiting, ConfigError, FedbenchError, StoppedError, WaitingForReview

ENDS = [
    (WaitingForReview("12 of 40 sources wait", "fedbench review status"), "COMPLETED", "WaitingForReview"),
    (BatchesWaiting("3 batches are in flight", "run again"), "COMPLETED", "WaitingForBatches"),
    (StoppedError("the budget of 5 dollars is spent", "raise calls.budget"), "FAILED", "Stopped"),
    (ConfigError("no photo in pool", "check pools.0"), "FAILED", "Failed"),
]


def flow_of(error: Exception) -> Any:
    """A flow with a task in a segment, as a build has them, in which the task says why it cannot."""
    from prefect import flow, task

    from flows.runner import infrastructure_only
    from flows.states import answer, in_states

    @task(retries=1, retry_delay_seconds=0, retry_condition_fn=infrastructure_only)
    @in_states
    def shard() -> None:
        raise error

    @flow(name="ends-segment")
    @in_states
    def segment() -> None:
        answer(shard.submit().result())

    @flow(name="ends")
    @in_states
    def whole() -> None:
        answer(segment())

    return whole


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize(("error", "kind", "name"), ENDS, ids=[name for _, _, name in ENDS])
def test_an_error_of_ours_is_its_line_and_no_trace(
    error: FedbenchError, kind: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    from flows.states import answer

    whole = flow_of(error)
    with caplog.at_level(logging.INFO, "prefect"):
        state = whole(return_state=True)
    assert (state.type.value, state.name, state.message) == (kind, name, str(error))
    assert not [record for record in caplog.records if record.exc_info or "Traceback" in record.getMessage()]
    with pytest.raises(type(error), match=error.message):
        answer(whole())


@pytest.mark.usefixtures("prefect_server")
def test_a_bug_keeps_its_trace() -> None:
    state = flow_of(ZeroDivisionError("nothing of ours"))(return_state=True)
    assert state.type.value == "FAILED"
    assert "ZeroDivisionError" in str(state.message)


def test_no_secret_is_in_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.states import ended

    monkeypatch.setenv("ZHIPU_API_KEY", "sk-planted-0123456789")
    state = ended(StoppedError("refused sk-planted-0123456789", "check it"))
    assert state.message == "refused *** (check it)"
