"""The published folder: what loads it, what it never holds, and that only the sources and the config shape it."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from schemas.answers import Ballot
from schemas.config import BuildConfig, PublishCut
from schemas.expressions import EXPRESSIONS, Expression, Polarity, others
from schemas.outcomes import Abstention, FailureKind
from schemas.published import ImageCell, RejectedRow
from schemas.records import Key, Triplet
from tasks.dataset import parquet
from tasks.dataset.card import render_card
from tasks.dataset.parquet import RowWriter, read_rows
from tasks.dataset.verify import verify
from tasks.dataset.write import publish
from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.engine.stage import Item
from tasks.faces import EMBEDDERS, Face
from tasks.publish import even_cells, prefix
from tasks.voters import VOTERS
from tests import nasty
from tests.builds import built, config
from tests.dataset.altered import Altered
from tests.dataset.conftest import Built
from tests.photos import photo

PICTURES = {"default": ("source", "ground_truth"), "rejected": ("image",)}


def tree(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()) for path in files(folder)}


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def rows_of(folder: Path, part: str) -> list[dict[str, Any]]:
    return [row for path in sorted((folder / part).iterdir()) for row in pq.read_table(path).to_pylist()]


def own_photos(root: Path) -> Path:
    """Three photos in class folders, each with the place where it was taken."""
    for name, path in (("astronaut", "happy/a.jpg"), ("hopper", "neutral/b.jpg"), ("landscape", "c.jpg")):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        image = nasty.Image.fromarray(photo(name).pixels)
        (root / path).write_bytes(nasty.saved(image, "JPEG", quality=95, exif=nasty.tagged(gps=1)))
    return root


def folder_config(root: Path, **fields: Any) -> BuildConfig:
    return config(pools=[{"name": "folder", "params": {"root": str(root)}}], **fields)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Built:
    root = own_photos(tmp_path_factory.mktemp("own") / "my photos")
    run, done = built(tmp_path_factory.mktemp("own-workspace"), folder_config(root))
    return Built(run, done, publish(run, done).folder)


# -- loading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_load_dataset_gives_the_stored_bytes(small: Built, tmp_path: Path, name: str) -> None:
    loaded = datasets.load_dataset(str(small.folder), name, split="train", cache_dir=str(tmp_path))
    stored = rows_of(small.folder, "data" if name == "default" else "rejected")
    assert loaded["id"] == [row["id"] for row in stored]
    for column in PICTURES[name]:
        assert loaded.features[column] == datasets.Image()
        raw = loaded.cast_column(column, datasets.Image(decode=False))
        for row, before in zip(raw, stored, strict=True):
            assert row[column] == before[column]
            if row[column] is not None:
                assert sha256(row[column]["bytes"]) == row[f"{column}_sha256"]
                assert row[column]["bytes"] == small.run.images.read(row[f"{column}_sha256"])
    shown = next(row[PICTURES[name][0]] for row in loaded if row[PICTURES[name][0]] is not None)
    assert shown.mode == "RGB"
    assert shown.info == {}
    rest = raw.remove_columns(PICTURES[name])
    assert list(rest) == [{key: row[key] for key in rest.column_names} for row in stored]


def test_both_configs_are_announced(small: Built) -> None:
    assert datasets.get_dataset_config_names(str(small.folder)) == ["default", "rejected"]


def a_row(number: int, size: int = 10) -> RejectedRow:
    cell = ImageCell(bytes=bytes([number % 251]) * size, path=f"p/{number}.png") if number % 3 else None
    return RejectedRow(
        pool="p", source_id=str(number), target="", editor="", attempt=0, id=f"p/{number}", stage="screen",
        status="rejected", reason="no_face", evidence="", source_expression="", instruction="", votes=(), change=None,
        identity=None, background_rmse=None, registered_rmse=None, motion=None, moved=None, licence="", image_sha256="",
        schema_version=1, row_sha256="", image=cell,
    )  # fmt: skip


def test_groups_files_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BYTES_PER_GROUP", 5_000)
    monkeypatch.setattr(parquet, "BYTES_PER_FILE", 20_000)
    rows = [a_row(number, 900 if 300 < number < 350 else 10) for number in range(450)]
    writer = RowWriter(tmp_path, RejectedRow)
    for row in rows:
        writer.add(row)
    named = writer.close("test")
    assert len(named) > 1
    assert list(named) == [f"test-{place:05d}-of-{len(named):05d}.parquet" for place in range(len(named))]
    assert sorted(path.name for path in tmp_path.iterdir()) == list(named)
    groups = [
        (pq.ParquetFile(tmp_path / name).metadata.row_group(group))
        for name in named
        for group in range(pq.ParquetFile(tmp_path / name).num_row_groups)
    ]
    assert sum(group.num_rows for group in groups) == 450
    assert max(group.num_rows for group in groups) == 100
    assert min(group.num_rows for group in groups) <= 6
    assert {name: pq.read_metadata(tmp_path / name).num_rows for name in named} == named
    assert [row for name in named for row in read_rows(tmp_path / name, RejectedRow)] == rows


def test_row_groups_page_index_and_compression(small: Built) -> None:
    for path in small.folder.rglob("*.parquet"):
        facts = pq.ParquetFile(path).metadata
        for group in map(facts.row_group, range(facts.num_row_groups)):
            assert group.num_rows <= 100
            for column in map(group.column, range(group.num_columns)):
                assert column.has_offset_index
                assert column.has_column_index or column.path_in_schema.endswith(".bytes")
                assert column.compression == ("UNCOMPRESSED" if column.path_in_schema.endswith(".bytes") else "ZSTD")


# -- what it never holds ----------------------------------------------------------------------------------------


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def test_it_holds_no_path_of_this_machine(own: Built) -> None:
    (pool,) = own.run.config.pools
    words = [word for part in ("data", "rejected") for row in rows_of(own.folder, part) for word in texts(row)]
    words += [(own.folder / "README.md").read_text(), *texts(manifest_of(own.folder))]
    assert len(words) > 100
    for private in (pool.params["root"], str(own.run.store.root), str(Path.home()), str(Path.cwd())):
        assert not [word for word in words if private in word]
    assert manifest_of(own.folder)["config"]["pools"] == [{"name": "folder", "params": {}}]


def test_it_holds_no_place_and_no_metadata(own: Built) -> None:
    seen = 0
    for part, columns in (("data", ("source", "ground_truth")), ("rejected", ("image",))):
        for row in rows_of(own.folder, part):
            for cell in (row[column] for column in columns if row[column]):
                image = nasty.Image.open(nasty.io.BytesIO(cell["bytes"]))
                image.load()
                assert image.info == {}
                assert not image.getexif()
                assert {
                    chunk for chunk in (b"eXIf", b"tEXt", b"iTXt", b"zTXt", b"iCCP") if chunk in cell["bytes"]
                } == set()
                seen += 1
    assert seen >= 12


def test_it_holds_no_identity_vector(own: Built) -> None:
    shard = own.run.executor.shards[0]
    vectors = [
        facts.embedding
        for facts in own.run.executor.measured("screen", shard, shard.sources).values()
        if facts.embedding is not None
    ]
    assert vectors
    for path in own.folder.rglob("*.parquet"):
        for field in pq.read_schema(path):
            for kind in leaves(field.type):
                assert kind in (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.binary())
                assert kind != pa.binary() or field.name in ("source", "ground_truth", "image")
        assert not [vector for vector in vectors if vector in path.read_bytes()]


def leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The plain types in a type; a list of plain numbers would be a vector."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(field.type)
    elif pa.types.is_list(kind):
        assert pa.types.is_struct(kind.value_type) or kind.value_type == pa.string()
        yield from leaves(kind.value_type)
    else:
        yield kind


def test_the_source_of_a_rejected_row_is_not_given_away(small: Built) -> None:
    stored = {row["source_sha256"] for row in rows_of(small.folder, "data")}
    assert not stored & {row["image_sha256"] for row in rows_of(small.folder, "rejected")}
    assert all(row["image"] is None for row in rows_of(small.folder, "rejected") if not row["target"])


# -- the card ---------------------------------------------------------------------------------------------------


def test_the_card_parses_and_its_numbers_are_the_manifests(small: Built) -> None:
    card, manifest = (small.folder / "README.md").read_text(), manifest_of(small.folder)
    _, head, body = card.split("---\n", 2)
    said = yaml.safe_load(head)
    assert said["license"] == "other"
    for entry in said["configs"]:
        (files_,) = entry["data_files"]
        assert files_["split"] == "train"
        assert list(small.folder.glob(files_["path"]))
    assert f"{manifest['triplets']} triplets" in body
    assert f"from {manifest['sources']} sources" in body
    table = {cells[0]: cells[1:] for cells in re.findall(r"^\| (\w+) \|" + r" (\d+) \|" * 5 + r" (.*) \|$", body, re.M)}
    assert list(table) == [line["stage"] for line in manifest["funnel"]]
    for line in manifest["funnel"]:
        *numbers, reasons = table[line["stage"]]
        assert [int(number) for number in numbers] == [
            line[name] for name in ("owed", "kept", "rejected", "failed", "waiting")
        ]
        assert reasons.strip() == ", ".join(f"{reason} {count}" for reason, count in line["reasons"].items())
    cells = re.findall(r"^\| (\w+) \| (\w+) \| (\d+) \| (\d+) \| (\d+) \|$", body, re.M)
    assert [(source, target, *map(int, counts)) for source, target, *counts in cells[:-1]] == [
        tuple(cell[name] for name in ("source", "target", "survivors", "triplets", "short"))
        for cell in manifest["cells"]
    ]
    assert cells[-1][:2] == ("all", "all")
    assert "No person reviewed" in body


def test_the_funnel_conserves_and_every_owed_row_is_somewhere(small: Built) -> None:
    manifest = manifest_of(small.folder)
    for line in manifest["funnel"]:
        assert line["owed"] == sum(line[way] for way in ("kept", "rejected", "failed", "waiting"))
    for before, line in zip(manifest["funnel"][1:], manifest["funnel"][2:], strict=False):
        assert line["owed"] == before["kept"]
    ids = [row["id"] for part in ("data", "rejected") for row in rows_of(small.folder, part)]
    assert len(ids) == len(set(ids)) == sum(manifest["files"].values())
    assert len(ids) == manifest["funnel"][1]["owed"] + manifest["funnel"][0]["rejected"]


# -- what shapes it ---------------------------------------------------------------------------------------------


def test_workspace_folder_clock_shards_and_workers_shape_nothing(own: Built, tmp_path: Path) -> None:
    root = own_photos(tmp_path / "elsewhere" / "pictures")
    for path in files(root):
        os.utime(path, (1, 1))
    run, done = built(tmp_path / "other workspace", folder_config(root, shard_size=1, workers=1))
    assert tree(publish(run, done).folder) == tree(own.folder)


def test_a_second_build_and_publish_write_nothing(own: Built) -> None:
    def state() -> dict[Path, tuple[int, int]]:
        kept = (path for path in files(own.run.store.root) if "sqlite" not in path.name)
        return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in kept}

    before = state()
    run, done = built(own.run.store.root, own.run.config)
    published = publish(run, done)
    assert not published.written
    assert published.folder == own.folder
    assert published.triplets == len(rows_of(own.folder, "data"))
    assert state() == before


def test_a_damaged_manifest_is_written_again(own: Built) -> None:
    before = tree(own.folder)
    (own.folder / "manifest.json").write_text("{}")
    assert publish(own.run, own.done).written
    assert tree(own.folder) == before


def test_a_moved_threshold_changes_the_data_set_and_still_verifies(own: Built) -> None:
    run, done = built(own.run.store.root, variant(own, "strict", rank={"cut": {"min_identity": 0.9}}))
    folder = publish(run, done).folder
    assert verify(folder) == []
    assert Counter(row["reason"] for row in rows_of(folder, "rejected"))["low_identity"] > 0


# -- every way a row can end ------------------------------------------------------------------------------------


def mark(pixels: NDArray[np.uint8], number: int | None = None) -> int:
    """A number in the corner of an edit, by which the adapters below know what to do with it."""
    if number is not None:
        pixels[0, 0] = number
    return int(pixels[0, 0, 0]) if (pixels[0, 0] == pixels[0, 0, 0]).all() else 0


ABSTAIN, CRASH, CRASH_LATER = 1, 2, 3


class MoodyEditor(Adapter):
    """Refuses one target, leaves the photo alone for another, gives rubbish or noise, and marks the rest."""

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[Any]:
        edits = dict(
            zip((request.target for request in requests), EDITORS.get("warp", {}).edit(requests, call), strict=True)
        )
        for target, number in (
            (Expression.NEUTRAL, ABSTAIN),
            (Expression.HAPPY, CRASH),
            (Expression.DISGUST, CRASH_LATER),
        ):
            if target in edits:
                mark(edits[target], number)
        pixels = requests[0].source.pixels
        edits |= {
            Expression.SAD: ItemFailed(FailureKind.REFUSED, "I would rather not"),
            Expression.FEAR: np.zeros((3, 3), np.uint8),
            Expression.ANGER: pixels,
            Expression.SURPRISE: np.random.default_rng(0).integers(0, 256, pixels.shape, np.uint8),
        }
        return [edits[request.target] for request in requests]


class MoodyVoter(Adapter):
    """Says negative, unless the mark says otherwise."""

    granularity = "coarse"

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        if mark(picture.pixels) == CRASH:
            raise RuntimeError("no mood")
        if mark(picture.pixels) == ABSTAIN:
            return Ballot(abstained=Abstention.REFUSED, raw="no")
        return Ballot(answer=Polarity.NEGATIVE)


class MoodyEmbedder(Adapter):
    """Crashes where the mark says so."""

    def embed(self, picture: Picture, face: Face) -> Any:
        if mark(picture.pixels) == CRASH_LATER:
            raise RuntimeError("no mood")
        return EMBEDDERS.get("sface", {}).embed(picture, face)


def test_failures_abstentions_and_attempts_verify_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry, adapter in ((EDITORS, MoodyEditor), (VOTERS, MoodyVoter), (EMBEDDERS, MoodyEmbedder)):
        monkeypatch.setitem(registry._entries, "moody", adapter)
    monkeypatch.setitem(VOTERS._entries, "twin", MoodyVoter)
    settings = folder_config(
        own_photos(tmp_path / "photos"),
        max_failed=1,
        generate={"measure": {"editor": "moody", "attempts": 2, "targets": list(EXPRESSIONS)}},
        verify={"measure": {"panel": ["moody", "twin"]}, "cut": {"min_votes": 2, "majority": "valid"}},
        rank={"measure": {"identity": "moody"}, "cut": {"top_k": 1}},
    )
    run, done = built(tmp_path / "workspace", settings)
    folder = publish(run, done).folder
    assert verify(folder) == []
    ends = {(row["stage"], row["status"], row["reason"]) for row in rows_of(folder, "rejected")}
    assert ends >= {
        ("generate", "failed", "refused"),
        ("generate", "failed", "bad_output"),
        ("generate", "rejected", "unchanged_picture"),
        ("verify", "failed", "crashed"),
        ("verify", "failed", "insufficient_votes"),
        ("verify", "rejected", "face_lost"),
        ("rank", "failed", "crashed"),
    }


def variant(own: Built, edition: str, **fields: Any) -> BuildConfig:
    return BuildConfig.model_validate(own.run.config.model_dump() | {"edition": edition} | fields)


@pytest.mark.parametrize("panel", [[{"name": "fer", "params": {"granularity": "fine"}}], ["fer", "blendshapes"]])
def test_fine_panels_and_strict_cuts_verify_too(own: Built, panel: list[Any]) -> None:
    verify_ = {"measure": {"panel": panel}, "cut": {"fine_agreement": 1.0, "min_change": 0.8}}
    run, done = built(own.run.store.root, variant(own, f"fine{len(panel)}", verify=verify_))
    folder = publish(run, done).folder
    assert verify(folder) == []
    reasons = Counter(row["reason"] for row in rows_of(folder, "rejected"))
    assert reasons["unchanged_expression"] > 0
    assert (reasons["wrong_expression"] > 0) == (len(panel) == 1)


def test_a_data_set_of_nothing_verifies_and_streams(own: Built) -> None:
    """`datasets` takes an empty split for a mistake unless it streams, and cannot read a row group of no rows."""
    run, done = built(own.run.store.root, variant(own, "nothing", verify={"cut": {"min_change": 99}}))
    published = publish(run, done)
    assert published.triplets == 0
    assert verify(published.folder) == []
    loaded = datasets.load_dataset(str(published.folder), split="train", streaming=True)
    assert list(loaded) == []
    assert loaded.features["ground_truth"] == datasets.Image()


def test_thresholds_of_before_shape_nothing(own: Built, tmp_path: Path) -> None:
    wide = {"rank": {"cut": {"top_k": 6}}, "review": {"cut": {"keep_per_source": 6}}}
    run, done = built(own.run.store.root, variant(own, "wide", **wide))
    folder = publish(run, done).folder
    fresh_run, fresh_done = built(tmp_path, variant(own, "wide", **wide))
    assert tree(folder) == tree(publish(fresh_run, fresh_done).folder)
    assert max(Counter(row["source_id"] for row in rows_of(folder, "data")).values()) > 2
    assert verify(folder) == []
    copy = Altered(folder, tmp_path / "copy")
    copy.change_manifest(lambda manifest: manifest["config"]["review"]["cut"].update(keep_per_source=2), "checksums")
    assert ("folder/happy/a.jpg", "review") in copy.faults()


# -- selection --------------------------------------------------------------------------------------------------


def test_a_target_takes_the_smallest_prefix(small: Built) -> None:
    every = [(row["pool"], row["source_id"]) for row in rows_of(small.folder, "data")]
    order = [source.key[:2] for shard in small.run.executor.shards for source in shard.sources]
    trees = []
    for limit in (6, 8):
        settings = config(seed=1, limit=limit, edition=f"two-{limit}", publish={"cut": {"target": 2}})
        run, done = built(small.run.store.root, settings)
        folder = publish(run, done).folder
        assert verify(folder) == []
        assert [(row["pool"], row["source_id"]) for row in rows_of(folder, "data")] == every[:2]
        there = {(row["pool"], row["source_id"]) for part in ("data", "rejected") for row in rows_of(folder, part)}
        assert there == set(order[: order.index(every[1]) + 1])
        trees.append({name: digest for name, digest in tree(folder).items() if name.endswith(".parquet")})
    assert trees[0] == trees[1]


def test_a_margin_leaves_some_out_by_name(small: Built) -> None:
    settings = config(seed=1, limit=6, edition="margin", publish={"cut": {"target": 2, "margin": 2.0}})
    run, done = built(small.run.store.root, settings)
    folder = publish(run, done).folder
    assert verify(folder) == []
    assert Counter(row["reason"] for row in rows_of(folder, "rejected"))["not_selected"] == 2
    assert len({(row["source_expression"], row["target"]) for row in rows_of(folder, "data")}) == 2


def triplets(sources: Sequence[tuple[Expression, Sequence[int]]]) -> list[Item[Triplet, Triplet]]:
    """Items in plan order: per source its expression, and which of its six targets survived."""
    items = []
    for number, (expression, survivors) in enumerate(sources):
        for target in (others(expression)[place] for place in sorted(survivors)):
            key = Key("pool", f"{number:03}", target, "warp", 0)
            row = Triplet(
                key=key, source_image="", source_expression=expression, image="", instruction="",
                dense_instruction="", back_check="", caption="", rank=1, mode="auto", note="",
            )  # fmt: skip
            items.append(Item(key, row, row))
    return items


SOURCES = st.lists(st.tuples(st.sampled_from(EXPRESSIONS), st.sets(st.integers(0, 5)).map(sorted)), max_size=25).map(
    triplets
)


def cell(item: Item[Triplet, Triplet]) -> tuple[str, str]:
    return item.row.source_expression, item.key.target


@given(SOURCES, st.none() | st.integers(1, 80))
def test_cells_fill_like_water(items: list[Item[Triplet, Triplet]], target: int | None) -> None:
    chosen = even_cells(items, target)
    assert chosen <= {item.key for item in items}
    assert len(chosen) == (len(items) if target is None else min(target, len(items)))
    by_cell: dict[tuple[str, str], list[bool]] = {}
    for item in items:
        by_cell.setdefault(cell(item), []).append(item.key in chosen)
    highest = max((sum(taken) for taken in by_cell.values()), default=0)
    for taken in by_cell.values():
        assert taken == sorted(taken, reverse=True), "within a cell the earlier source wins"
        assert all(taken) or sum(taken) >= highest - 1, "a cell that lost a row is at most one below the fullest"


@given(SOURCES, st.integers(1, 80))
def test_a_higher_target_drops_nothing(items: list[Item[Triplet, Triplet]], target: int) -> None:
    assert even_cells(items, target) <= even_cells(items, target + 1)


@given(SOURCES, SOURCES, st.integers(1, 40), st.floats(1, 3))
def test_the_prefix_is_the_smallest_and_more_sources_leave_it(
    items: list[Item[Triplet, Triplet]], later: list[Item[Triplet, Triplet]], target: int, margin: float
) -> None:
    cut = PublishCut(target=target, margin=margin)
    inside = prefix(items, cut)
    if inside < target * margin:
        assert inside == len(items)
        return
    assert inside == len(items) or items[inside].key.source() != items[inside - 1].key.source()
    last = items[inside - 1].key.source()
    assert sum(item.key.source() != last for item in items[:inside]) < target * margin
    renamed = [
        Item(item.key._replace(source_id=f"later {item.key.source_id}"), item.row, item.measurement) for item in later
    ]
    assert prefix([*items, *renamed], cut) == inside


def test_without_a_target_everything_is_inside() -> None:
    items = triplets([(Expression.HAPPY, [0, 1]), (Expression.SAD, [2])])
    assert prefix(items, PublishCut()) == 3


def test_two_data_sets_are_two_in_one_cache(own: Built, tmp_path: Path) -> None:
    """`datasets` names its cache by the folder's name and the card's `configs` alone: those must tell sets apart."""
    other = tmp_path / own.folder.name
    shutil.copytree(own.folder, other)
    own_card, other_card = ((folder / "README.md").read_text() for folder in (own.folder, other))
    configs = yaml.safe_load(own_card.split("---")[1])["configs"]
    assert own_card == other_card
    manifest = json.loads((other / "manifest.json").read_bytes())
    changed = render_card(manifest | {"rows_sha256": "0" * 64})
    assert yaml.safe_load(changed.split("---")[1])["configs"] != configs
    (other / "README.md").write_text(changed)
    part = next((other / "data").iterdir())
    pq.write_table(pq.read_table(part).slice(0, 1), part)
    cache = str(tmp_path / "cache")
    sizes = [len(datasets.load_dataset(str(folder), split="train", cache_dir=cache)) for folder in (own.folder, other)]
    assert sizes == [len(datasets.load_dataset(str(own.folder), split="train", cache_dir=str(tmp_path / "fresh"))), 1]
    assert sizes[0] > 1
