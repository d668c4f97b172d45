"""Hydration: the full release to the byte, or a list of what is missing and nothing else."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.config import BuildConfig
from schemas.published import PICTURES
from tasks.dataset.hydrate import Hydrated, hydrate
from tasks.dataset.release import packed, released
from tasks.dataset.verify import verify
from tasks.engine.errors import ConfigError, UnreadableImage
from tests import fakes
from tests.dataset.conftest import Built, Releases
from tests.fakes import config, tree


@pytest.fixture(autouse=True)
def world() -> Iterator[fakes.World]:
    """The user's copy: the same photos, unless a test says otherwise."""
    yield fakes.install()
    fakes.install()


@pytest.fixture
def own(tmp_path: Path, releases: Releases) -> Callable[..., Hydrated]:
    """Hydrate with the user's copy."""

    def run(settings: BuildConfig | None = None, pack: Path | None = None, index: Path | None = None) -> Hydrated:
        settings = settings or config(sources=20)
        return hydrate(index or releases.index, pack or releases.pack, settings, tmp_path / "out")

    return run


def sources_of(releases: Releases) -> list[str]:
    return sorted(row["source_id"] for row in data(releases.index))


def data(folder: Path) -> list[dict[str, Any]]:
    (path,) = (folder / "data").iterdir()
    return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]


def nothing(folder: Path) -> bool:
    """No folder, and nothing half-written beside it."""
    return list(folder.iterdir()) == []


def test_it_is_the_full_release_to_the_byte(
    world: fakes.World, own: Callable[..., Hydrated], releases: Releases, tmp_path: Path
) -> None:
    world.reverse = True
    result = own()
    assert result == Hydrated(9, [], identical=True)
    assert tree(tmp_path / "out") == tree(releases.full)
    assert verify(tmp_path / "out") == []
    assert world.counts()["load"] == len(set(sources_of(releases)))
    assert own().identical, "again, over the first"


def test_options_of_the_build_need_not_be_repeated(tmp_path: Path) -> None:
    settings = config("pools.0.params.side=128", sources=12)
    made = fakes.build(tmp_path / "built", settings)
    assert made.published
    index = released(made.published.folder, tmp_path / "index", ())
    pack = packed(made.published.folder, tmp_path / "pack", PICTURES)
    values = settings.model_dump(mode="json")
    values["pools"][0]["params"] = {"sources": 12}
    assert hydrate(index, pack, BuildConfig.model_validate(values), tmp_path / "out").identical
    values["pools"][0]["params"] = {"side": 64}
    assert hydrate(index, pack, BuildConfig.model_validate(values), tmp_path / "other").faults


def test_with_a_pack_of_ground_truths_alone(own: Callable[..., Hydrated], drawn: Built, tmp_path: Path) -> None:
    pack = packed(drawn.folder, tmp_path / "other" / "pack", PICTURES[:2])
    result = own(pack=pack)
    assert not result.faults
    assert not result.identical
    assert "rejected" in result.note
    assert verify(tmp_path / "out") == []
    assert tree(tmp_path / "out") == tree(released(drawn.folder, tmp_path / "other" / "full", PICTURES[:2]))


def test_missing_changed_and_broken_sources_are_listed_by_key(
    world: fakes.World, own: Callable[..., Hydrated], releases: Releases, tmp_path: Path
) -> None:
    ids = sources_of(releases)
    world.repainted = {ids[0]}
    world.trouble = lambda role, id_: UnreadableImage("broken", "cut off") if (role, id_) == ("load", ids[1]) else None
    result = own(config(sources=int(ids[-1])))
    assert nothing(tmp_path)
    told = {(fault.where, fault.rule): str(fault) for fault in result.faults}
    assert set(told) == {
        (f"fake/{ids[0]}", "file"),
        (f"fake/{ids[1]}", "broken"),
        (f"fake/{ids[-1]}", "missing"),
    }
    assert "another one" in told[f"fake/{ids[0]}", "file"]


def test_other_pixels_of_the_same_file(
    own: Callable[..., Hydrated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def darker(pool: fakes.FakePool, source: Any) -> Any:
        loaded = load(pool, source)
        return type(loaded)(loaded.pixels // 2, loaded.file_sha256)

    load = fakes.FakePool.load
    monkeypatch.setattr(fakes.FakePool, "load", darker)
    assert {fault.rule for fault in own().faults} == {"pixels"}
    assert nothing(tmp_path)


def test_another_encoder_is_named(
    own: Callable[..., Hydrated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.dataset.hydrate.encode_png", lambda _: b"other")
    assert {fault.rule for fault in own().faults} == {"png"}
    assert nothing(tmp_path)


def forged(folder: Path, change: Callable[[list[dict[str, Any]]], object], part: str = "data") -> None:
    """Change rows of a table, as somebody who makes nothing else anew."""
    (path,) = (folder / part).iterdir()
    values, schema = pq.read_table(path).to_pylist(), pq.read_schema(path)
    change(values)
    pq.write_table(pa.Table.from_pylist(values, schema=schema), path)


@pytest.mark.parametrize("part", ["data", "rejected"])
def test_a_pack_that_lacks_or_swaps_pictures(
    own: Callable[..., Hydrated], releases: Releases, tmp_path: Path, part: str
) -> None:
    pack = Path(shutil.copytree(releases.pack, tmp_path / "copy"))
    column = {"data": "ground_truth", "rejected": "image"}[part]

    def change(rows: list[dict[str, Any]]) -> None:
        rows[0][column], rows[0][f"{column}_sha256"] = rows[2][column], rows[2][f"{column}_sha256"]
        lost.append(rows.pop()["id"])
        rows.reverse()

    lost: list[str] = []
    forged(pack, change, part)
    result = own(pack=pack)
    assert {fault.rule for fault in result.faults} == {f"{column} hash", "missing"}
    assert [fault.where for fault in result.faults if fault.rule == "missing"] == lost
    assert not (tmp_path / "out").exists()


def test_a_shuffled_pack_is_the_same(own: Callable[..., Hydrated], releases: Releases, tmp_path: Path) -> None:
    pack = Path(shutil.copytree(releases.pack, tmp_path / "copy"))
    forged(pack, lambda rows: rows.reverse())
    assert own(pack=pack).identical


def test_a_changed_index_is_found(own: Callable[..., Hydrated], releases: Releases, tmp_path: Path) -> None:
    index = Path(shutil.copytree(releases.index, tmp_path / "copy"))
    forged(index, lambda rows: rows[0].update(instruction="smile"))
    assert {fault.rule for fault in own(index=index).faults} == {"row", "rows"}
    forged(index, lambda rows: rows.pop())
    assert "rows" in {fault.rule for fault in own(index=index).faults}
    assert not (tmp_path / "out").exists()


def test_another_pyarrow_is_named(own: Callable[..., Hydrated], releases: Releases, tmp_path: Path) -> None:
    index = Path(shutil.copytree(releases.index, tmp_path / "copy"))
    values = json.loads((index / "manifest.json").read_text())
    (index / "manifest.json").write_text(json.dumps(values | {"pyarrow": "1.2.3"}))
    result = own(index=index)
    assert not result.faults
    assert not result.identical
    assert "1.2.3" in result.note


def test_what_does_not_belong_together_is_refused(
    own: Callable[..., Hydrated], releases: Releases, tmp_path: Path
) -> None:
    for index, pack, words in (
        (releases.full, releases.pack, "has pictures already"),
        (releases.index, releases.full, "not a pack"),
        (releases.pack, releases.pack, "is a pack"),
        (tmp_path, releases.pack, "no published data set"),
    ):
        with pytest.raises(ConfigError, match=words):
            own(index=index, pack=pack)
    other = Path(shutil.copytree(releases.pack, tmp_path / "copy"))
    values = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps(values | {"rows_sha256": "0" * 64}))
    with pytest.raises(ConfigError, match="not the pack of"):
        own(pack=other)
    with pytest.raises(ConfigError, match=r"needs the pool 'fake' \(kind 'fake'\)"):
        own(BuildConfig())
    assert not (tmp_path / "out").exists()
