"""Four ratings: asked, read, averaged by hand, published with the row; and the drawn faces of the guide."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import prompts
from schemas.reviewing import ReviewCut
from schemas.reviews import ASKED, Answer, Quality, Rating
from tasks.boards.answers import Answers, add
from tasks.boards.pictures import FACES, FOLDER, guide_files, show_guide
from tasks.boards.ratings import means_of
from tasks.boards.statistics import statistics
from tasks.dataset.read import data_set, typed_rows
from tasks.dataset.rules import row_faults
from tasks.dataset.verify import verify
from tasks.engine.store import Store
from tasks.report.html import write_report
from tests import fakes
from tests.review.asking import answer, best, config, questions, say
from tests.review.test_reading import question
from tests.review.test_waiting import finished, waits


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def rated(image: str, **values: int) -> tuple[Rating, ...]:
    return tuple(Rating(image=image, quality=Quality(name), value=value) for name, value in values.items())


def test_means_by_hand() -> None:
    asked = question()
    first, second = (one.image for one in asked.finalists)
    rows = [
        answer(asked, "ann1", [first], ratings=rated(first, natural=5, identity=4) + rated(second, natural=1)),
        answer(asked, "ann2", [first], ratings=rated(first, natural=4, background=2)),
        answer(asked, "judge", [first], ratings=rated(first, natural=3)),
        answer(asked, "stranger", [first], ratings=rated(first, natural=1)),
    ]
    found = means_of(first, rows, ReviewCut())
    assert [(one.quality, one.mean, one.people) for one in found] == [
        ("natural", 4.5, 2), ("identity", 4.0, 1), ("background", 2.0, 1)]  # fmt: skip
    assert means_of(first, rows, ReviewCut(adjudicators=("judge",)))[0].mean == 4.0
    assert means_of("nobody's", rows, ReviewCut()) == ()
    told = statistics([asked], Answers({asked.digest: tuple(rows)}, 1), ReviewCut())["ratings"]
    assert told["secret-editor, happy"]["natural"] == {"mean": 4.5, "ratings": 2}
    assert told["secret-editor, sad"] == {"natural": {"mean": 1.0, "ratings": 1}}


def test_the_screen_asks_for_each_quality_of_each_side_with_keys_of_its_own() -> None:
    for single in ("", "yes"):
        root = ET.fromstring(prompts.render("review_screen", single=single))
        names = {one.get("name") for one in root.iter("Choices")}
        sides = ("left",) if single else ("left", "right")
        assert names == {f"{side}_{each}" for side in sides for each in (*ASKED, "flags")} | {"decision"}
        keys = [key for one in root.iter("Choice") for key in (one.get("hotkey") or "").split(",")]
        assert len(set(keys)) == len(keys) == (28 if single else 56)


def test_ratings_are_published_with_the_row(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    say(tmp_path, asked, ann1=best, ann2=best)

    def rows(value: int) -> list[Answer]:
        return [answer(one, "ann1", best(one), ratings=rated(best(one)[0], identity=value)) for one in asked[:2]]

    add(Store(tmp_path), rows(5))
    add(Store(tmp_path), rows(3))
    before = fakes.world().counts()["instruct"]
    built = finished(tmp_path)
    assert built.published
    assert verify(built.published.folder) == []
    manifest = data_set(built.published.folder)
    table: list[Any] = list(typed_rows(built.published.folder, manifest, "data"))
    found = {row.source_id: row.review for row in table}
    for one in asked:
        cell = found[one.key.source_id]
        assert (cell.raters, cell.identity) == ((1, 3.0) if one in asked[:2] else (0, None))
        assert (cell.natural, cell.aligned, cell.background) == (None, None, None)
    assert fakes.world().counts()["instruct"] == before + len(asked)
    say(tmp_path, asked, ann3=best)
    another = finished(tmp_path, "edition=v2")
    assert another.published
    assert fakes.world().counts()["instruct"] == before + len(asked), "no text is written again for another note"
    index = write_report(built.run, built.run.executor.commits(), "reports/x").read_text("utf-8")
    assert "Mean ratings" in index


@pytest.mark.parametrize("fields", [{"identity": 5.5}, {"raters": 0}, {"mode": "auto"}, {"identity": None}])
def test_impossible_ratings_are_seen(tmp_path: Path, fields: dict[str, Any]) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    say(tmp_path, asked, ann1=best, ann2=best)
    add(Store(tmp_path), [answer(one, "ann1", best(one), ratings=rated(best(one)[0], identity=3)) for one in asked])
    built = finished(tmp_path)
    assert built.published
    row = next(iter(typed_rows(built.published.folder, data_set(built.published.folder), "data")))
    lying = row.model_copy(update={"review": row.review.model_copy(update=fields)})
    assert not [fault for fault in row_faults(row, built.run.config) if fault.rule == "review"]
    assert [fault for fault in row_faults(lying, built.run.config) if fault.rule == "review"]


def test_four_faces_are_drawn_and_the_guide_shows_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    show_guide(store)
    show_guide(store)
    files = guide_files()
    assert len({data for _, data in files.values()}) == len(FACES) == 4
    for face, (path, data) in files.items():
        assert (tmp_path / FOLDER / path).read_bytes() == data
        words = " ".join(ET.fromstring(data.decode()).itertext())
        assert face in words
    guide = prompts.render("review_guide", **{face: f"/at/{path}" for face, (path, _) in files.items()})
    shown = re.findall(r'<img src="([^"]*)"[^>]* alt="[^"]{30,}"', guide)
    assert sorted(shown) == sorted(f"/at/{path}" for path, _ in files.values())
    assert not re.search(r"data:|<svg|style=|&(?!amp;)", guide), "Label Studio strikes it from the text"
