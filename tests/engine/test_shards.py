"""The plan: a fixed shuffle, append-only, whatever is listed later and in whatever order."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.records import Key, Source
from tasks.engine.errors import ConfigError
from tasks.engine.shards import Shard, order, plan
from tasks.engine.store import Store


def sources(*ids: int) -> list[Source]:
    return order(0, [Source(key=Key("p", str(id_)), path=str(id_)) for id_ in ids])


def keys(shards: list[Shard]) -> list[list[str]]:
    return [[source.key.source_id for source in shard.sources] for shard in shards]


def test_no_listing_changes_the_order_but_the_seed_does() -> None:
    listed = sources(*range(50))
    shuffled = list(listed)
    random.Random(1).shuffle(shuffled)
    assert order(0, shuffled) == listed
    assert order(1, shuffled) != listed
    assert [source for source in listed if int(source.path) < 25] == sources(*range(25))


def test_one_key_twice_is_an_error() -> None:
    with pytest.raises(ConfigError, match="two sources are called p/1"):
        sources(1, 2, 1)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    steps=st.lists(
        st.tuples(
            st.frozensets(st.integers(0, 15), min_size=1),
            st.integers(1, 6),
            st.none() | st.integers(1, 20),
            st.booleans(),
        ),
        min_size=2,
        max_size=5,
    )
)
def test_a_key_stays_in_its_shard_for_ever(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[frozenset[int], int, int | None, bool]]
) -> None:
    """Whatever is listed, at whatever size and limit, in whatever sequence."""
    store = Store(tmp_path_factory.mktemp("plan"))
    places: dict[Key, tuple[str, int]] = {}
    batches: dict[str, bytes] = {}
    for listed, size, limit, extend in steps:
        shards = plan(store, "plan", sources(*listed), size, limit, extend=extend)
        known = len(places)
        for shard in shards:
            for place, source in enumerate(shard.sources):
                assert places.setdefault(source.key, (shard.id, place)) == (shard.id, place)
        assert len({shard.id for shard in shards}) == len(shards)
        used = [source.key for shard in shards for source in shard.sources]
        assert len(set(used)) == len(used) <= (limit or 99)
        if extend and limit is None:
            assert {key.source_id for key in used} >= {str(id_) for id_ in listed}
        if not extend:
            assert len(places) == known
        now = {path.name: path.read_bytes() for path in store.path("plan").glob("*")}
        assert now.items() >= batches.items()
        batches = now


def test_a_limit_cuts_the_last_shard_without_renaming_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    whole = plan(store, "plan", sources(*range(8)), 3, None)
    cut = plan(store, "plan", sources(*range(8)), 3, 4)
    assert keys(cut) == [keys(whole)[0], keys(whole)[1][:1]]
    assert [shard.id for shard in cut] == [shard.id for shard in whole[:2]]
    assert plan(store, "plan", sources(*range(8)), 3, None) == whole


def test_what_is_listed_no_more_stays_as_planned(tmp_path: Path) -> None:
    store = Store(tmp_path)
    whole = plan(store, "plan", sources(*range(6)), 4, None)
    assert plan(store, "plan", sources(0, 1), 2, None) == whole


def test_a_changed_stamp_is_taken_from_the_listing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    before = plan(store, "plan", sources(1, 2), 2, None)
    touched = [source.model_copy(update={"stamp": "new"}) for source in sources(1, 2)]
    (after,) = plan(store, "plan", touched, 2, None)
    assert [source.stamp for source in after.sources] == ["new", "new"]
    assert after.id == before[0].id


def test_a_long_plan_is_read_as_it_was_written_and_resumed_where_a_kill_left_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    whole = plan(store, "plan", sources(*range(50)), 1, None)
    files = sorted(store.path("plan").glob("*"))
    assert len(files) == 4
    assert plan(store, "plan", sources(*range(50)), 1, None) == whole
    files[-1].unlink()
    files[-2].unlink()
    assert plan(store, "plan", sources(*range(50)), 1, None, extend=False) == whole[:32]
    assert plan(store, "plan", sources(*range(50)), 1, None) == whole
