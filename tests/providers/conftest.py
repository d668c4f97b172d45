"""For tests of the door to models outside: the key that loopback providers want."""

import pytest

from tests.providers.asking import KEY, KEY_ENV


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
