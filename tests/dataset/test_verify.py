"""Whatever is changed in a published data set is found, and named, even where the hashes were made anew."""

import io
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, PngImagePlugin

from schemas.config import RankCut
from schemas.published import SCHEMA_VERSION
from schemas.records import Fidelity, Key
from tasks.dataset.rules import Fault
from tasks.dataset.verify import verify
from tasks.engine.decode import decode_png, encode_png
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import seed_of, sha256
from tasks.rank import fused
from tests import nasty
from tests.dataset.altered import DATA, LEVELS, REJECTED, Altered, Rows
from tests.dataset.conftest import Built

FLIPPED = {"positive": "negative", "negative": "positive", "neutral": "negative"}


decoded = cache(decode_png)


@pytest.fixture
def copy(small: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Altered:
    """A copy of the data set; its pictures, most of the time of a check, are decoded once for all tests."""
    monkeypatch.setattr("tasks.dataset.pictures.decode_png", decoded)
    return Altered(small.folder, tmp_path / "copy")


def other_png(data: bytes) -> bytes:
    """Another picture of the same size."""
    return encode_png(np.ascontiguousarray(255 - decode_png(data)))


def test_a_published_data_set_has_no_fault(small: Built) -> None:
    assert verify(small.folder) == []


def test_the_sample_has_rows_of_every_kind_that_the_tests_change(copy: Altered) -> None:
    ends = {(row["stage"], row["reason"]) for row in copy.rows(REJECTED)}
    assert ends >= {
        ("screen", "no_face"),
        ("verify", "no_majority"),
        ("verify", "wrong_polarity"),
        ("rank", "below_top_k"),
        ("rank", "low_identity"),
        ("review", "not_chosen"),
    }
    assert len(copy.rows(DATA)) == 4


def test_making_everything_anew_changes_nothing_of_an_honest_data_set(copy: Altered) -> None:
    for name in (DATA, REJECTED):
        copy.change(name, lambda _: None, "everything")
    assert copy.faults() == set()


# -- one cell of one row ----------------------------------------------------------------------------------------


class Alteration(NamedTuple):
    """A change of one row.

    Attributes:
        rule: What finds it when rows' hashes, manifest, card and checksums were all made anew; "" if nothing can.
        change: Changes the row in place.
        row: Which: a column and its value in the rejected rows, None for the first triplet.
    """

    rule: str
    change: Callable[[dict[str, Any]], object]
    row: tuple[str, str] | None = None


def put(**cells: Any) -> Callable[[dict[str, Any]], object]:
    return lambda row: row.update(cells)


def vote(**cells: Any) -> Callable[[dict[str, Any]], object]:
    return lambda row: row["votes"][0].update(cells)


def flip(row: dict[str, Any]) -> None:
    row["votes"][0]["polarity"] = FLIPPED[row["votes"][0]["polarity"]]


def add(column: str, amount: float) -> Callable[[dict[str, Any]], object]:
    return lambda row: row.update({column: row[column] + amount})


def repaint(column: str) -> Callable[[dict[str, Any]], object]:
    """Another picture, with its hash."""

    def change(row: dict[str, Any]) -> None:
        row[column]["bytes"] = other_png(row[column]["bytes"])
        row[f"{column}_sha256"] = sha256(row[column]["bytes"])

    return change


TOP_K, MAJORITY, POLARITY, IDENTITY, NOT_CHOSEN, NO_FACE = (
    ("reason", reason)
    for reason in ("below_top_k", "no_majority", "wrong_polarity", "low_identity", "not_chosen", "no_face")
)

ALTERATIONS = {
    "flipped vote": Alteration("verdict", flip),
    "abstention": Alteration("verdict", vote(polarity=None, abstained="cannot_tell", confidence=None)),
    "vote and abstention": Alteration("votes", vote(abstained="cannot_tell")),
    "no answer": Alteration("votes", vote(polarity=None)),
    "class of another polarity": Alteration("votes", lambda row: row["votes"][0].update(expression="neutral")),
    "another voter": Alteration("votes", vote(voter="somebody")),
    "a vote less": Alteration("votes", lambda row: row["votes"].pop()),
    "no votes": Alteration("votes", lambda row: row["votes"].clear()),
    "verdict": Alteration("verdict", put(verdict="unanimous")),
    "rank": Alteration("rank", put(rank=2)),
    "score": Alteration("rank", add("score", 0.01)),
    "identity": Alteration("rank", add("identity", 0.01)),
    "background": Alteration("rank", add("background_rmse", 0.5)),
    "not a number": Alteration("column", put(change=float("inf"))),
    "below the threshold of change": Alteration("verdict", put(change=0.1)),
    "simple instruction": Alteration("instruction", put(instruction="make the face happy")),
    "no dense instruction": Alteration("column", put(dense_instruction=" ")),
    "no caption": Alteration("column", put(caption="")),
    "licence": Alteration("source", put(licence="CC0")),
    "source expression": Alteration("source", put(source_expression="disgust")),
    "no expression": Alteration("column", put(source_expression="bored")),
    "target expression": Alteration("column", put(target_expression="disgust")),
    "seed": Alteration("seed", put(seed=7)),
    "claims a human review": Alteration("review", lambda row: row["review"].update(mode="human")),
    "claims to be real": Alteration("column", put(synthetic=False)),
    "id": Alteration("id", put(id="somebody else")),
    "attempt": Alteration("id", put(attempt=1)),
    "editor": Alteration("id", put(editor="another")),
    "schema version of a row": Alteration("column", put(schema_version=SCHEMA_VERSION + 1)),
    "source picture": Alteration("source pixels", repaint("source")),
    "pixel hash": Alteration("source pixels", put(source_pixel_sha256="0" * 64)),
    "the source as ground truth": Alteration(
        "ground_truth",
        lambda row: row.update(
            ground_truth=row["ground_truth"] | {"bytes": row["source"]["bytes"]},
            ground_truth_sha256=row["source_sha256"],
        ),
    ),
    "reason of a rank": Alteration("rank", put(reason="low_identity"), TOP_K),
    "place in words": Alteration("rank", put(evidence="place 3 of 9, score 0.1000; the best 2 go on"), TOP_K),
    "score of a rejected row": Alteration("rank", add("background_rmse", 5), TOP_K),
    "identity above its floor": Alteration("rank", put(identity=0.9), IDENTITY),
    "evidence of a floor": Alteration("rank", put(evidence="cosine 0.100, needs 0.4"), IDENTITY),
    "reason of a vote": Alteration("verdict", put(reason="wrong_polarity"), MAJORITY),
    "a face lost": Alteration("verdict", put(reason="face_lost", evidence="no face is found in the edit"), MAJORITY),
    "votes of a rejected row": Alteration("verdict", flip, POLARITY),
    "evidence of a vote": Alteration("verdict", put(evidence="they all disagreed"), MAJORITY),
    "reason of another stage": Alteration("end", put(reason="below_top_k"), NOT_CHOSEN),
    "another stage": Alteration("end", put(stage="rank"), NOT_CHOSEN),
    "no stage": Alteration("end", put(stage="lunch"), NOT_CHOSEN),
    "no status": Alteration("end", put(status="lost"), NOT_CHOSEN),
    "waiting for ever": Alteration("end", put(status="waiting"), NOT_CHOSEN),
    "rank in a review": Alteration("review", put(evidence="rank 7; auto review did not choose it"), NOT_CHOSEN),
    "licence of a rejected row": Alteration("source", put(licence="CC0"), TOP_K),
    "instruction of a rejected row": Alteration("instruction", put(instruction=""), TOP_K),
    "no picture": Alteration("image", put(image=None, image_sha256=""), TOP_K),
    "back check without a checker": Alteration("back check", put(back_check="passed")),
    "no such back check": Alteration("column", put(back_check="fine")),
    "no picture but a hash": Alteration("image", put(image=None), TOP_K),
    "a picture that moved": Alteration("motion", lambda row: row["motion"].update(dx=9.0)),
    "zoom of a rejected row": Alteration("motion", lambda row: row["motion"].update(zoom=1.1), TOP_K),
    "the flag of a motion": Alteration("motion", put(moved=True)),
    "no motion but a flag": Alteration("motion", put(motion=None)),
    "a background registered by nothing": Alteration("motion", put(motion=None, moved=None)),
    "a motion without bounds": Alteration("column", lambda row: row["motion"].update(turn=float("inf"))),
}
# What only the hashes guard: no column that is there follows from it. Kept here so that the list is known.
UNGUARDED = {
    "dense instruction": Alteration("", put(dense_instruction="Smile.")),
    "caption": Alteration("", put(caption="A face.")),
    "raw answer": Alteration("", vote(raw="{}")),
    "confidence": Alteration("", vote(confidence=0.1)),
    "review note": Alteration("", lambda row: row["review"].update(note="approved")),
    "ground truth": Alteration("", repaint("ground_truth")),
    "candidate": Alteration("", repaint("image"), TOP_K),
    "change above its threshold": Alteration("", add("change", 0.01)),
    "identity of an outvoted row": Alteration("", put(identity=0.9), MAJORITY),
    "movie": Alteration("", put(movie="Casablanca")),
    "motion within its limits": Alteration("", lambda row: row["motion"].update(dx=1.0)),
    "registered background": Alteration("", add("registered_rmse", 0.5)),
    "the editor's own size": Alteration("", put(raw_width=7)),
    "the editor's mark": Alteration("", put(watermark="none")),
    "reason of a screening": Alteration("", put(reason="pose"), NO_FACE),
    "evidence of a screening": Alteration("", put(evidence="nobody is there"), NO_FACE),
}


def alter(copy: Altered, alteration: Alteration, level: str) -> str:
    """Change the row; its id afterwards."""
    changed: list[str] = []

    def change(rows: Rows) -> None:
        row = rows[0]
        if alteration.row:
            column, value = alteration.row
            row = next(row for row in rows if row[column] == value)
        alteration.change(row)
        changed.append(row["id"])

    copy.change(REJECTED if alteration.row else DATA, change, level)
    return changed[0]


def named(faults: list[Fault], id_: str, rule: str) -> bool:
    return any(fault.rule == rule and id_ in str(fault) for fault in faults)


@pytest.mark.parametrize("name", [*ALTERATIONS, *UNGUARDED])
def test_a_changed_cell_is_found_by_row_and_rule(copy: Altered, name: str) -> None:
    alteration = (ALTERATIONS | UNGUARDED)[name]
    file = REJECTED if alteration.row else DATA
    id_ = alter(copy, alteration, "nothing")
    faults = verify(copy.folder)
    assert (file, "checksum") in {(fault.where, fault.rule) for fault in faults}
    assert not alteration.rule or named(faults, id_, alteration.rule)
    copy.remake("checksums")
    faults = verify(copy.folder)
    assert not any(fault.rule == "checksum" for fault in faults)
    assert named(faults, id_, "row") or named(faults, id_, alteration.rule)
    copy.change(file, lambda _: None, "rows")
    faults = verify(copy.folder)
    assert not named(faults, id_, "row")
    assert named(faults, "manifest.json", "rows") or named(faults, id_, alteration.rule)


@pytest.mark.parametrize("name", ALTERATIONS)
def test_a_changed_cell_is_found_by_what_follows_from_it(copy: Altered, name: str) -> None:
    id_ = alter(copy, ALTERATIONS[name], "everything")
    assert named(verify(copy.folder), id_, ALTERATIONS[name].rule)


@pytest.mark.parametrize("name", UNGUARDED)
def test_what_follows_from_nothing_is_guarded_by_hashes_alone(copy: Altered, name: str) -> None:
    alter(copy, UNGUARDED[name], "everything")
    assert copy.faults() == set()


# -- pictures ---------------------------------------------------------------------------------------------------


def with_text(data: bytes) -> bytes:
    """The same pixels with a place in a text chunk, which OpenCV would read past."""
    info = PngImagePlugin.PngInfo()
    info.add_text("GPS", "52.5200 N, 13.4050 E")
    buffer = io.BytesIO()
    Image.fromarray(decode_png(data)).save(buffer, "PNG", pnginfo=info)
    return buffer.getvalue()


def with_exif(data: bytes) -> bytes:
    return nasty.saved(Image.fromarray(decode_png(data)), "PNG", exif=nasty.tagged(gps=1))


def smaller(data: bytes) -> bytes:
    return encode_png(np.ascontiguousarray(decode_png(data)[:-1]))


def jpeg(data: bytes) -> bytes:
    return nasty.saved(Image.fromarray(decode_png(data)), "JPEG")


PICTURES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "another": ("{} hash", other_png),
    "cut": ("{} decodes", lambda data: data[: len(data) // 2]),
    "empty": ("{} decodes", lambda _: b""),
    "bomb": ("{} decodes", lambda _: nasty.bomb()),
    "jpeg": ("{} decodes", jpeg),
    "text": ("{} decodes", with_text),
    "place": ("{} decodes", with_exif),
    "tail": ("{} decodes", lambda data: data + b"hidden" + data[-12:]),
    "zeros": ("{} decodes", lambda data: data[:8] + bytes(100) + data[-12:]),
}


@pytest.mark.parametrize("column", ["source", "ground_truth", "image"])
@pytest.mark.parametrize("name", PICTURES)
def test_another_picture_is_found(copy: Altered, column: str, name: str) -> None:
    rule, change = PICTURES[name]
    alteration = Alteration(
        rule.format(column),
        lambda row: row[column].update(bytes=change(row[column]["bytes"])),
        TOP_K if column == "image" else None,
    )
    id_ = alter(copy, alteration, "everything")
    assert {(id_, f"{column} hash"), (id_, alteration.rule)} <= copy.faults()


@pytest.mark.parametrize("name", ["text", "place", "tail", "jpeg", "bomb"])
def test_a_picture_that_holds_more_than_pixels_is_found_whatever_its_hash(copy: Altered, name: str) -> None:
    def change(row: dict[str, Any]) -> None:
        row["image"]["bytes"] = PICTURES[name][1](row["image"]["bytes"])
        row["image_sha256"] = sha256(row["image"]["bytes"])

    id_ = alter(copy, Alteration("", change, TOP_K), "everything")
    assert copy.faults() == {(id_, "image decodes")}


def test_a_ground_truth_of_another_size_is_found(copy: Altered) -> None:
    def change(row: dict[str, Any]) -> None:
        row["ground_truth"]["bytes"] = smaller(row["ground_truth"]["bytes"])
        row["ground_truth_sha256"] = sha256(row["ground_truth"]["bytes"])

    assert (alter(copy, Alteration("", change), "everything"), "size") in copy.faults()


@pytest.mark.parametrize("column", ["source", "ground_truth", "image"])
def test_another_name_of_a_picture_is_found(copy: Altered, column: str) -> None:
    row = TOP_K if column == "image" else None
    id_ = alter(copy, Alteration("", lambda row: row[column].update(path="/srv/photos/a.png"), row), "everything")
    assert copy.faults() == {(id_, f"{column} name")}


# -- rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [DATA, REJECTED])
def test_a_dropped_row_is_found(copy: Altered, name: str, level: str) -> None:
    gone = next(row["id"] for row in copy.rows(name) if row["target"])
    copy.change(name, lambda rows: rows.remove(next(row for row in rows if row["id"] == gone)), level)
    faults = copy.faults()
    assert (gone, "candidates") in faults
    if level != "everything":
        assert {(name, "count"), ("manifest.json", "rows"), ("manifest.json", "funnel")} <= faults


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [DATA, REJECTED])
def test_a_doubled_row_is_found(copy: Altered, name: str, level: str) -> None:
    double = copy.rows(name)[0]["id"]
    copy.change(name, lambda rows: rows.append(rows[0]), level)
    faults = copy.faults()
    assert (double, "unique") in faults
    if level != "everything":
        assert {(name, "count"), ("manifest.json", "rows")} <= faults


def test_an_invented_candidate_is_found(copy: Altered) -> None:
    def change(rows: Rows) -> None:
        row = next(row for row in rows if row["reason"] == "below_top_k") | {"attempt": 1}
        row["id"] = row["id"].replace("#0", "#1")
        row["image"] = row["image"] | {"path": row["image"]["path"].replace("#0", "#1")}
        rows.append(row)

    copy.change(REJECTED, change, "everything")
    assert (copy.rows(REJECTED)[-1]["id"], "candidates") in copy.faults()


def test_a_row_of_one_source_under_another_is_found(copy: Altered) -> None:
    def swap(rows: Rows) -> None:
        for column in ("source", "source_sha256", "source_pixel_sha256"):
            rows[0][column], rows[1][column] = rows[1][column], rows[0][column]

    copy.change(DATA, swap, "everything")
    names = {row["id"] for row in copy.rows(DATA)[:2]}
    assert {(name, "source name") for name in names} == copy.faults()


def test_two_sources_of_one_photo_are_found(copy: Altered) -> None:
    def same(rows: Rows) -> None:
        columns = ("source", "source_sha256", "source_pixel_sha256")
        rows[1] |= {column: rows[0][column] for column in columns}
        rows[1]["source"] = rows[1]["source"] | {"path": f"{rows[1]['pool']}/{rows[1]['source_id']}/source.png"}

    copy.change(DATA, same, "everything")
    twin = copy.rows(DATA)[1]
    assert (f"{twin['pool']}/{twin['source_id']}", "duplicate") in copy.faults()


def test_a_ground_truth_that_the_board_would_not_take_is_found(copy: Altered) -> None:
    """A triplet and the finalist it was preferred to change places, with all that follows."""
    triplets, rejected = copy.rows(DATA), copy.rows(REJECTED)
    won = triplets[0]
    lost = next(row for row in rejected if row["reason"] == "not_chosen" and row["source_id"] == won["source_id"])
    for column in ("target", "id", "instruction", "votes", "change", "identity", "background_rmse"):
        won[column], lost[column] = lost[column], won[column]
    won["ground_truth"], lost["image"] = lost["image"], won["ground_truth"]
    won["ground_truth_sha256"], lost["image_sha256"] = lost["image_sha256"], won["ground_truth_sha256"]
    for row, column, role in ((won, "ground_truth", "ground_truth"), (lost, "image", "candidate")):
        row[column] = row[column] | {"path": f"{row['id']}/{role}.png".replace(":", "/")}
    cut = RankCut()
    fidelity = Fidelity(identity=won["identity"], background_rmse=won["background_rmse"])
    won |= {"target_expression": won["target"], "rank": 2, "score": fused(fidelity, cut)}
    won["seed"] = seed_of(1, list(Key(won["pool"], won["source_id"], won["target"], won["editor"], won["attempt"])))
    lost["evidence"] = "rank 1; auto review did not choose it"
    polarity = won["votes"][0]["polarity"]
    won["verdict"] = f"{polarity} 2; 2 of 2 answered; needs more than 1"
    copy.change(DATA, lambda rows: rows.__setitem__(0, won), "rows")
    copy.change(REJECTED, lambda rows: rows.__setitem__(rejected.index(lost), lost), "everything")
    assert copy.faults() == {(won["id"], "review")}


# -- files ------------------------------------------------------------------------------------------------------


def test_any_byte_of_a_parquet_file_is_found(copy: Altered) -> None:
    for name in (DATA, REJECTED):
        path = copy.folder / name
        whole = path.read_bytes()
        for place in range(0, len(whole), len(whole) // 9):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert (name, "checksum") in copy.faults(), place
        path.write_bytes(whole)
    assert copy.faults() == set()


@pytest.mark.parametrize(
    "column", ["source.bytes", "ground_truth.bytes", "score", "dense_instruction", "caption", "id"]
)
def test_a_byte_of_a_column_is_found_with_checksums_made_anew(copy: Altered, column: str) -> None:
    path = copy.folder / DATA
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunk = next(
        group.column(place) for place in range(group.num_columns) if group.column(place).path_in_schema == column
    )
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size * 3 // 4] ^= 1
    path.write_bytes(data)
    copy.remake("checksums")
    rows = {row["id"] for row in copy_of_ids(copy)} if column.endswith(".bytes") else set()
    found = copy.faults()
    wanted = {"row", "readable", "column", f"{column.removesuffix('.bytes')} hash"}
    assert any(rule in wanted and (where in rows or not rows) for where, rule in found), found


def copy_of_ids(copy: Altered) -> Rows:
    return pq.read_table(copy.folder / DATA, columns=["id"]).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("remade", [False, True])
@pytest.mark.parametrize("name", [DATA, REJECTED, "README.md"])
def test_a_missing_file_is_found(copy: Altered, name: str, remade: bool) -> None:
    (copy.folder / name).unlink()
    if remade:
        copy.remake("checksums")
    assert {(name, "present")} | ({(name, "checksum")} if not remade else set()) <= copy.faults()


def test_missing_checksums_are_found(copy: Altered) -> None:
    (copy.folder / "checksums.sha256").unlink()
    assert copy.faults() == {("checksums.sha256", "present")}


def test_a_file_that_nobody_lists_any_more_is_missed_by_its_rows(copy: Altered) -> None:
    (copy.folder / REJECTED).unlink()
    copy.change_manifest(lambda manifest: manifest["files"].pop(REJECTED), "checksums")
    assert {("manifest.json", "rows"), ("manifest.json", "funnel"), ("manifest.json", "count")} <= copy.faults()


@pytest.mark.parametrize("remade", [False, True])
@pytest.mark.parametrize("name", ["notes.txt", "data/train-00001-of-00002.parquet", ".hidden", "extra/deep.png"])
def test_an_extra_file_is_found(copy: Altered, name: str, remade: bool) -> None:
    (copy.folder / name).parent.mkdir(exist_ok=True)
    (copy.folder / name).write_bytes((copy.folder / DATA).read_bytes())
    if remade:
        copy.remake("checksums")
    assert (name, "listed") in copy.faults()


@pytest.mark.parametrize(
    "name", ["../outside.parquet", "data/../../outside.parquet", "other/x.parquet", "data/x.parquet"]
)
def test_a_listed_file_of_another_name_is_not_read(copy: Altered, name: str) -> None:
    shutil.copy(copy.folder / DATA, copy.folder.parent / "outside.parquet")
    copy.change_manifest(lambda manifest: manifest["files"].update({name: 4}), "checksums")
    faults = copy.faults()
    assert {(name, "name"), (name, "present")} <= faults
    assert not any(rule == "unique" for _, rule in faults)


def test_a_file_of_another_place_is_found(copy: Altered) -> None:
    moved = "data/train-00000-of-00002.parquet"
    (copy.folder / DATA).rename(copy.folder / moved)
    copy.change_manifest(lambda manifest: manifest["files"].update({moved: manifest["files"].pop(DATA)}), "checksums")
    assert copy.faults() == {(moved, "name")}


def test_a_pipe_is_not_opened(copy: Altered) -> None:
    (copy.folder / DATA).unlink()
    os.mkfifo(copy.folder / DATA)
    assert (DATA, "readable") in copy.faults()


def test_links_as_the_hub_cache_makes_them_are_followed(copy: Altered, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    for name in (DATA, REJECTED, "README.md", "manifest.json", "checksums.sha256"):
        blob = tmp_path / "blobs" / name.replace("/", "-")
        (copy.folder / name).rename(blob)
        (copy.folder / name).symlink_to(blob)
    assert copy.faults() == set()
    blob.unlink()
    assert copy.faults() == {("checksums.sha256", "readable")}


# -- manifest and card ------------------------------------------------------------------------------------------


def more(*path: Any) -> Callable[[Any], None]:
    def change(manifest: Any) -> None:
        node = manifest
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] += 1

    return change


MANIFEST = {
    "sources": (more("sources"), "count"),
    "triplets": (more("triplets"), "count"),
    "cell": (more("cells", 0, "triplets"), "count"),
    "a cell less": (lambda manifest: manifest["cells"].pop(), "count"),
    "owed": (more("funnel", 0, "owed"), "funnel"),
    "kept": (more("funnel", 2, "kept"), "funnel"),
    "rejected": (more("funnel", 3, "rejected"), "funnel"),
    "failed": (more("funnel", 4, "failed"), "funnel"),
    "reason": (more("funnel", 2, "reasons", "no_majority"), "funnel"),
    "rows": (lambda manifest: manifest.update(rows_sha256="0" * 64), "rows"),
}


@pytest.mark.parametrize("level", LEVELS[:2])
@pytest.mark.parametrize("name", MANIFEST)
def test_a_changed_number_of_the_manifest_is_found(copy: Altered, name: str, level: str) -> None:
    change, rule = MANIFEST[name]
    copy.change_manifest(change, level)
    faults = copy.faults()
    assert ("manifest.json", rule) in faults
    assert (("manifest.json", "checksum") in faults) == (level == "nothing")


@pytest.mark.parametrize("level", LEVELS[:2])
def test_a_changed_count_of_a_file_is_found(copy: Altered, level: str) -> None:
    copy.change_manifest(more("files", DATA), level)
    assert (DATA, "count") in copy.faults()


THRESHOLDS = {
    "seed": (("seed", 2), "seed"),
    "top_k": (("rank", "cut", "top_k", 1), "rank"),
    "weight": (("rank", "cut", "identity_weight", 0.9), "rank"),
    "change": (("verify", "cut", "min_change", 9.0), "verdict"),
    "panel": (("verify", "measure", "panel", [{"name": "fer", "params": {}}]), "votes"),
    "editor": (("generate", "measure", "editor", "name", "another"), "candidates"),
    "targets": (("generate", "measure", "targets", ["sad"]), "candidates"),
    "attempts": (("generate", "measure", "attempts", 2), "candidates"),
    "board": (("review", "measure", "board", "name", "label_studio"), "review"),
    "target": (("publish", "cut", "target", 2), "selection"),
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_changed_config_contradicts_the_rows(copy: Altered, name: str) -> None:
    (*path, last, value), rule = THRESHOLDS[name]

    def change(manifest: Any) -> None:
        node = manifest["config"]
        for step in path:
            node = node[step]
        node[last] = value

    copy.change_manifest(change, "checksums")
    assert rule in {rule for _, rule in copy.faults()}


@pytest.mark.parametrize("remade", [False, True])
def test_a_number_of_the_card_is_found(copy: Altered, remade: bool) -> None:
    card = (copy.folder / "README.md").read_text()
    assert "4 triplets" in card
    (copy.folder / "README.md").write_text(card.replace("4 triplets", "40 triplets"))
    if remade:
        copy.remake("checksums")
    assert copy.faults() == {("README.md", "card")} | (set() if remade else {("README.md", "checksum")})


# -- strangers and enemies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["absent", "file", "empty"])
def test_what_is_no_data_set_is_a_config_error(tmp_path: Path, make: str) -> None:
    folder = tmp_path / "folder"
    if make == "file":
        folder.write_text("x")
    elif make == "empty":
        folder.mkdir()
    with pytest.raises(ConfigError, match="folder"):
        verify(folder)


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, str(SCHEMA_VERSION), None, ["x" * 10_000]])
def test_another_schema_version_is_a_config_error(copy: Altered, version: object) -> None:
    copy.change_manifest(lambda manifest: manifest.update(schema_version=version))
    with pytest.raises(ConfigError, match="schema version") as caught:
        verify(copy.folder)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff\xfe", b"[]", b"3", b"null", b'"x"', b"[" * 100_000, b'{"schema_version": 2}', b"1" * 10_000],
    ids=range(10),
)
def test_a_broken_manifest_is_a_config_error(copy: Altered, text: bytes) -> None:
    (copy.folder / "manifest.json").write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        verify(copy.folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"files": {DATA: "many"}},
        {"funnel": [3]},
        {"cells": None},
        {"config": {"pools": 3}},
        {"config": {"unknown": 3}},
        {"config": {"rank": {"cut": {"top_k": -1}}}},
        {"weights": "none"},
        {"unknown": 1},
        {"name": "../up"},
        {"sources": 1.5},
    ],
    ids=str,
)
def test_a_manifest_of_wrong_types_is_no_traceback(copy: Altered, change: dict[str, Any]) -> None:
    copy.change_manifest(lambda manifest: manifest.update(change))
    with pytest.raises(ConfigError, match=r"manifest\.json"):
        verify(copy.folder)


@pytest.mark.parametrize("change", [{}, {"pools": ["samples"]}, {"rank": {}}], ids=str)
def test_a_config_that_is_valid_but_no_build_of_ours_is_a_fault(copy: Altered, change: dict[str, Any]) -> None:
    copy.change_manifest(lambda manifest: manifest.update(config=manifest["config"] | change if change else {}))
    # Nothing of the card comes from how the config spells its pools, so there the checksum alone tells.
    assert (("README.md", "card") if "pools" not in change else ("manifest.json", "checksum")) in copy.faults()


@pytest.mark.parametrize("name", [DATA, "README.md", "checksums.sha256"])
@pytest.mark.parametrize("data", [b"", b"\xff" * 1000, b"PAR1" + bytes(100) + b"PAR1"], ids=["empty", "bytes", "magic"])
def test_a_file_of_rubbish_is_named(copy: Altered, name: str, data: bytes) -> None:
    (copy.folder / name).write_bytes(data)
    faults = copy.faults()
    assert name == "checksums.sha256" or (name, "checksum") in faults
    if name == "checksums.sha256":
        assert (DATA, "checksum") in faults
    elif name == DATA:
        assert (name, "readable") in faults


def test_huge_and_hostile_texts_are_shown_short_and_harmless(copy: Altered) -> None:
    hostile = "\x1b[2J\n\u202e" + "x" * 3_000_000

    def change(rows: Rows) -> None:
        rows[0] |= {"id": hostile, "instruction": hostile, "licence": hostile, "source_id": hostile}

    copy.change(DATA, change, "everything")
    assert (hostile, "instruction") in copy.faults()


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        ({"target": "x" * 1000, "target_expression": "\0"}, "column"),
        ({"attempt": -(2**63), "rank": 2**62}, "id"),
        ({"score": float("nan")}, "column"),
        ({"identity": -float("inf")}, "column"),
        ({"row_sha256": ""}, "row"),
        ({"source_expression": ""}, "column"),
    ],
    ids=str,
)
def test_senseless_values_are_faults(copy: Altered, cells: dict[str, Any], rule: str) -> None:
    copy.change(DATA, lambda rows: rows[0].update(cells), "checksums")
    assert (copy.rows(DATA)[0]["id"], rule) in copy.faults()


def test_a_vote_of_no_class_is_named_by_file_and_row(copy: Altered) -> None:
    copy.change(DATA, lambda rows: rows[2]["votes"][0].update(polarity="bored"), "checksums")
    assert {(f"{DATA} row 3", "column"), (DATA, "count")} <= copy.faults()


def test_text_that_is_no_utf8_is_named(copy: Altered) -> None:
    table = pq.read_table(copy.folder / DATA)
    raw = pa.array([b"\xff\xfe"] * len(table), pa.binary()).view(pa.string())
    table = table.set_column(table.schema.get_field_index("caption"), table.schema.field("caption"), raw)
    pq.write_table(table, copy.folder / DATA, write_page_index=True)
    assert (DATA, "readable") in copy.faults()


def test_other_columns_types_or_metadata_are_found(copy: Altered) -> None:
    table = pq.read_table(copy.folder / DATA)
    for other in (
        table.drop_columns(["caption"]),
        table.append_column("more", pa.nulls(len(table), pa.string())),
        table.set_column(0, "pool", table["pool"].cast(pa.large_string())),
        table.replace_schema_metadata({}),
    ):
        pq.write_table(other, copy.folder / DATA, write_page_index=True)
        assert (DATA, "schema") in copy.faults()


def test_row_groups_and_page_index_are_checked(copy: Altered) -> None:
    rows = copy.rows(REJECTED)
    copy.write(REJECTED, rows * 5, group=101)
    assert (REJECTED, "row group") in copy.faults()
    copy.write(REJECTED, rows, page_index=False)
    assert (REJECTED, "page index") in copy.faults()


def test_a_bomb_is_refused_by_its_header(copy: Altered) -> None:
    lie = nasty.png(np.zeros((1, 1, 3), np.uint8), size=(2**31 - 1, 2**31 - 1))

    def change(row: dict[str, Any]) -> None:
        row["image"]["bytes"], row["image_sha256"] = lie, sha256(lie)

    id_ = alter(copy, Alteration("", change, TOP_K), "everything")
    assert copy.faults() == {(id_, "image decodes")}


def test_a_chunk_that_lies_about_its_length_ends_the_walk(copy: Altered) -> None:
    body = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4s", 2**32 - 1, b"IDAT") + struct.pack(">I", zlib.crc32(b""))

    def change(row: dict[str, Any]) -> None:
        row["image"]["bytes"], row["image_sha256"] = body, sha256(body)

    id_ = alter(copy, Alteration("", change, TOP_K), "everything")
    assert copy.faults() == {(id_, "image decodes")}
