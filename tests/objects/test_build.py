"""A build in a bucket: the same bytes as in a folder, few requests, and the rest of a killed one elsewhere."""

import json
import shutil
import urllib.request
from pathlib import Path

import pytest

from tasks.engine.bucket import Bucket
from tasks.engine.images import ImageStore
from tasks.engine.places import look_again, mirror_at, place, settled
from tasks.engine.store import Store
from tests import fakes
from tests.objects.conftest import elsewhere, forget

pytestmark = pytest.mark.s3


def requests_of(root: Path) -> dict[str, int]:
    mirror = mirror_at(root)
    assert mirror is not None
    return dict(mirror.bucket.requests)


def test_a_bucket_holds_what_a_folder_holds(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = fakes.build(tmp_path / "local", fakes.config(), threads=2)
    far = fakes.build(place(bucket.url), fakes.config(), threads=2)
    assert far.counts == local.counts
    assert bucket.listing().keys() - {"lease.json"} == fakes.tree(tmp_path / "local").keys() - {"lock"}
    elsewhere(monkeypatch, tmp_path / "other")
    everything = fakes.tree(place(bucket.url, everything=True))
    for name, data in fakes.tree(tmp_path / "local").items():
        # The seconds that measuring took are in no data set.
        if name != "lock" and "/measured-" not in name:
            assert everything[name] == data, name


def test_a_second_build_asks_little_and_an_empty_cache_little_more(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = fakes.config("shard_size=64", sources=300)
    root = place(bucket.url)
    first = fakes.build(root, config, threads=2)
    print("first build ", requests_of(root))
    assert first.published is not None
    assert requests_of(root)["GetObject"] < 10
    forget()
    again = fakes.build(place(bucket.url), config)
    print("nothing due ", requests_of(root))
    assert not again.asked
    assert sum(requests_of(root).values()) < 20
    elsewhere(monkeypatch, tmp_path / "other")
    root = place(bucket.url)
    fresh = fakes.build(root, config)
    print("empty cache ", requests_of(root))
    assert not fresh.asked
    assert sum(requests_of(root).values()) < 150  # of more than 2,000 objects


def test_an_edition_that_shrinks_leaves_nothing_of_the_larger_one(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.build(place(bucket.url), fakes.config())
    stale = f"{bucket.key('datasets/fakes/v1/data')}/old-00001-of-00002.parquet"
    bucket._client.put_object(Bucket=bucket.name, Key=stale, Body=b"of the larger one")
    elsewhere(monkeypatch, tmp_path / "other")
    fakes.build(place(bucket.url), fakes.config("rank.cut.top_k=1"))
    local = fakes.build(tmp_path / "local", fakes.config("rank.cut.top_k=1"))
    shutil.rmtree(tmp_path / "other")
    forget()
    folder = place(f"{bucket.url}/datasets/fakes/v1", everything=True)
    assert fakes.tree(folder) == local.tree()


def test_a_picture_has_an_address_for_a_browser(bucket: Bucket, tmp_path: Path) -> None:
    store = Store(place(bucket.url))
    with store.lock():
        store.write("images/ab/picture.png", b"its bytes")
    address = store.presigned("images/ab/picture.png", 60)
    assert address is not None
    with urllib.request.urlopen(address) as answer:
        assert (answer.read(), answer.headers["Content-Type"]) == (b"its bytes", "image/png")
    assert Store(tmp_path).presigned(ImageStore.path("0" * 64), 60) is None


def test_single_writes_hold_the_workspace_no_longer_than_they_last(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(place(bucket.url))
    with settled():
        store.write_json("review/answers.json", [1])
        store.path("crashes.log").write_text("by path")
        assert json.loads((bucket.get("lease.json") or pytest.fail("no lease")).data)["holder"]
    assert not json.loads((bucket.get("lease.json") or pytest.fail("no lease")).data)["holder"]
    elsewhere(monkeypatch, tmp_path / "other")
    other = Store(place(bucket.url))
    assert (other.read_json("review/answers.json"), other.path("crashes.log").read_text()) == ([1], "by path")
    bucket.put("review/answers.json", b"[2]")
    mirror = mirror_at(other.root)
    assert mirror is not None
    look_again(other.root)
    assert other.read_json("review/answers.json") == [1], "a look costs requests: one is enough for a while"
    mirror.looked -= 60
    look_again(other.root)
    assert other.read_json("review/answers.json") == [2]
