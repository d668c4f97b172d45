"""The same sources, config and answers give the same published bytes, whoever computed them and how often."""

from pathlib import Path

import pytest

from tests import fakes
from tests.fakes import build, config

TARGET = ("publish.cut.target=6", "publish.cut.margin=1.4")


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tree of a plain build."""
    fakes.install()
    built = build(tmp_path_factory.mktemp("plain"), config(sources=20))
    assert len(built.done) > 3
    assert len(built.tree()) > 4
    return built.tree()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("size", [1, 3, 6])
def test_threads_shard_size_and_listing_change_nothing(
    tmp_path: Path, world: fakes.World, expected: dict[str, bytes], threads: int, size: int
) -> None:
    world.reverse = True
    built = build(tmp_path, config(f"shard_size={size}", f"workers={threads}", sources=20), threads)
    assert len(built.done) > 3
    assert built.tree() == expected


def test_a_history_of_limits_and_thresholds_changes_nothing(tmp_path: Path, expected: dict[str, bytes]) -> None:
    for options in (("limit=5", "shard_size=2"), ("limit=12", "verify.cut.min_change=2"), ("rank.cut.top_k=1",)):
        assert build(tmp_path, config(*options, sources=20)).tree() != expected
    built = build(tmp_path, config(sources=20))
    assert [len(shard.sources) for shard in built.run.executor.shards] == [2, 2, 1, 3, 3, 1, 3, 3, 2]
    assert built.tree() == expected


def test_sources_beyond_a_target_change_nothing(tmp_path: Path) -> None:
    short = build(tmp_path / "short", config("limit=24", "workers=1", *TARGET, sources=40))
    tree = short.tree()
    assert short.published
    assert short.published.triplets == 6
    assert len(short.done) > 3
    for options, threads in (
        (("limit=36", "workers=3"), 1),
        (("shard_size=2", "workers=2"), 2),
        (("shard_size=10",), 4),
    ):
        longer = build(tmp_path / "".join(options), config(*options, *TARGET, sources=40), threads)
        assert longer.tree() == tree
    assert build(tmp_path / "short", config("limit=30", "workers=9", *TARGET, sources=40)).tree() == tree
    # What the target does not need is not computed either.
    assert len(build(tmp_path / "lazy", config("workers=1", *TARGET, sources=40)).done) < 12
