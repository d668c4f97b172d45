"""For all tests."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.routes import CallSettings
from tasks.engine.calls import Calls


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
