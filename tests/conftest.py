"""For all tests."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import absl.logging
import pytest

from schemas.routes import CallSettings
from tasks.engine.calls import Calls

# MediaPipe logs through absl, whose handler keeps the stderr of its first day: pytest's capture. Prefect, once it is
# imported, closes all handlers, and absl's would close that capture with it, unless it is the process's own stderr.
absl.logging.get_absl_handler().python_handler.stream = sys.__stderr__


@pytest.fixture(autouse=True, scope="session")
def _unflushed() -> Iterator[None]:
    """No test cuts the power, so none waits for the disk: builds of fakes take a third of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Calls]]:
    """Open the one answer store of the test, as a new session would; closes the one before."""
    held: list[Calls] = []

    def make(**settings: Any) -> Calls:
        for calls in held:
            calls.close()
        held.append(Calls(tmp_path / "answers.sqlite", CallSettings(backoff_s=0.01, **settings), "run"))
        return held[-1]

    yield make
    for calls in held:
        calls.close()
