"""A small data set of drawn photos, its adapters, and a provider whose judges answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.distances import DISTANCES
from tasks.editors import EDITORS
from tests import fakes
from tests.providers.loopback import Loopback
from tests.scoring.runs import Mean, Odd, score_of


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fakes.install()
    built = fakes.build(tmp_path_factory.mktemp("built"), fakes.config("shard_size=4", sources=12))
    assert built.published is not None
    return built.published.folder


@pytest.fixture(autouse=True)
def _adapters() -> None:
    fakes.install()
    DISTANCES.add("mean", Mean)
    EDITORS.add("odd", Odd)


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(answer=score_of) as provider:
        yield provider
