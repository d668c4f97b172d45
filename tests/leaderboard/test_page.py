"""The page: pictures of samples, plots that tell the numbers, and nothing that a name could inject."""

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tasks.engine.images import ImageStore
from tasks.engine.store import Store
from tasks.leaderboard.entrants import opened
from tasks.leaderboard.gallery import gallery
from tasks.leaderboard.page import write_page
from tasks.leaderboard.plots import plane, ratios, zones
from tasks.leaderboard.ranking import boards
from tasks.withdrawal.traces import remove_reports
from tests.leaderboard.made_up import rows, write

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=y>\u202e"


class Tags(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page(folder: Path, *names: str, published: bool = False) -> str:
    found = boards(opened(folder, names))
    return write_page(found, Store(folder), "reports/leaderboards/x", published=published).read_text()


def test_hostile_names_are_text(tmp_path: Path) -> None:
    more = {"instruction": HOSTILE, "source_image": "0" * 64}
    write(tmp_path, "r", [*rows(HOSTILE, [0.5] * 12, **more), *rows("b", [None] * 12, message=HOSTILE)])
    text = page(tmp_path, "r", published=True)
    tags = Tags(text).found
    assert not [tag for tag, _ in tags if tag in ("script", "img")]
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text
    assert "published, not ours" in text
    assert "not in this workspace" in text


def test_samples_are_shown_with_source_output_and_ground_truth(tmp_path: Path) -> None:
    images = ImageStore(Store(tmp_path))
    pictures = [images.put(np.full((40, 30, 3), value, np.uint8)).digest for value in (0, 100, 200)]
    more = dict(zip(("source_image", "image", "truth_image"), pictures, strict=True))
    write(tmp_path, "r", rows("a", [0.1, 0.5, 0.9], **more))
    shown = [attributes for tag, attributes in Tags(page(tmp_path, "r")).found if tag == "img"]
    assert [one["src"] for one in shown] == [f"thumbs/{digest}-320.jpg" for digest in pictures] * 3
    folder = tmp_path / "reports/leaderboards/x"
    assert all((folder / str(one["src"])).is_file() for one in shown)
    links = [attributes["href"] for tag, attributes in Tags(page(tmp_path, "r")).found if tag == "a"]
    assert {str(link) for link in links if str(link).endswith(".png")} == {
        f"../../../{images.path(digest)}" for digest in pictures
    }
    assert all((folder / str(link)).is_file() for link in links if str(link).endswith(".png"))


def test_a_partial_board_says_so_and_is_never_called_the_score(tmp_path: Path) -> None:
    write(tmp_path, "r", rows("a", [1.0] * 12, partial=True), partial=True)
    text = page(tmp_path, "r")
    assert "A partial score, no FED-Score." in text
    assert "FED-Score on" not in text
    assert "Fidelity against gain" in text


def test_best_typical_and_worst_never_share_a_row() -> None:
    scores = [place / 20 for place in range(20)]
    found = gallery(rows("a", scores))
    assert {name: [round(one.score, 2) for one in held] for name, held in found.items()} == {
        "best": [0.95, 0.9, 0.85],
        "most typical": [0.45, 0.5, 0.4],
        "worst": [0.0, 0.05, 0.1],
    }
    assert [len(held) for held in gallery(rows("a", [0.1, 0.5, 0.9, None])).values()] == [1, 1, 1]
    assert [len(held) for held in gallery(rows("a", [0.1])).values()] == [1]
    assert gallery(rows("a", [None])) == {}


def test_a_histogram_of_ratios_counts_lazy_and_overfit() -> None:
    found = ratios(np.array([0.0, 0.49, 0.5, 1.0, 1.5, 1.51, 7.0, 3.0]), 0.5)
    assert (found.lazy, found.overfit, found.n) == (2 / 8, 3 / 8, 8)
    left, width, height, words = found.bars[-1]
    assert (left, width, height) == (pytest.approx(100 * 29 / 30), pytest.approx(100 / 30), 1.0)
    assert words == "r 2.9 and up: 2"
    assert zones(0.5) == [("lazy", 0.0, pytest.approx(100 / 6)), ("overfit", 50.0, 50.0)]
    assert ratios(np.empty(0), 0.5).lazy is None


def test_the_plane_has_every_editor_that_has_both(tmp_path: Path) -> None:
    write(tmp_path, "r", [*rows("a", [0.5] * 3), *rows("b", [None] * 3)])
    (board,) = boards(opened(tmp_path, ["r"]))
    (dot,) = plane(board).dots
    assert (dot.label, dot.x, dot.y) == ("a", 400.0, 200.0)


def test_a_withdrawal_deletes_every_leaderboard(tmp_path: Path) -> None:
    write(tmp_path, "r", rows("a", [0.5]))
    page(tmp_path, "r")
    remove_reports(Store(tmp_path), [])
    assert (tmp_path / "reports/leaderboards").exists()
    remove_reports(Store(tmp_path), ["p/0000"])
    assert not (tmp_path / "reports/leaderboards").exists()
