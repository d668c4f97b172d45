"""For all tests."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _unflushed() -> Iterator[None]:
    """No test cuts the power, so none waits for the disk: builds of fakes take a third of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
