"""The HTML report: opens from disk, escapes everything, is the same bytes twice, and every link leads somewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

import pytest

from tasks.engine.errors import ConfigError
from tasks.report.html import write_report
from tests.report.made_up import HOSTILE, made_up

HOSTILE_IDS = [
    HOSTILE,
    '"onload="alert(1)',
    "{{ 7*7 }}",
    "n" * 246,
    "\u202eevil\x07",
    "no-face' <b>",
    "broken&amp;",
]
VOID = {"meta", "img", "br", "rect", "line"}


class Reader(HTMLParser):
    """Collects tags, ids and links, and checks that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.handlers: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = dict(attrs)
        assert len(values) == len(attrs), f"an attribute twice: {attrs}"
        self.ids += [values["id"] or ""] if "id" in values else []
        self.links += [value for name in ("href", "src") if (value := values.get(name))]
        self.handlers += [name for name in values if name.startswith("on")]
        if tag == "img":
            self.images.append(values)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag


def pages(index: Path) -> dict[str, Reader]:
    return {path.name: Reader(path.read_text("utf-8")) for path in sorted(index.parent.glob("*.html"))}


def check_links(index: Path) -> None:
    read = pages(index)
    for name, page in read.items():
        assert len(set(page.ids)) == len(page.ids)
        for link in page.links:
            target, anchor = urldefrag(link)
            assert not re.match(r"[a-z]+:|/", target), link
            assert (index.parent / target).exists(), link
            if anchor:
                assert anchor in read[target or name].ids, link


def test_everything_a_model_or_a_file_name_says_is_escaped(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, HOSTILE_IDS)
    index = write_report(run, done, "reports/x")
    text = index.read_text("utf-8")
    page = Reader(text)
    assert "script" not in page.tags
    assert page.handlers == []
    assert HOSTILE not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "{{ 7*7 }}" in text
    check_links(index)


def test_it_says_what_became_of_every_candidate(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a", "wait", "no-face", "broken"])
    text = write_report(run, done, "reports/x").read_text("utf-8")
    for words in (
        "For trying out, not for judging",
        "Nobody reviewed 1 of 1 ground truths",
        "generate: failed, refused",
        "⚠ the whole picture is shifted by 9.0 px",
        "verify: no majority",
        "abstains: refused",
        "review: waiting for people",
        "review: not chosen",
        "screen: no face",
        "screen: unreadable",
        "auto review",
        "back check: not checked",
    ):
        assert words in text, words
    assert text.count('<b class="flag">ground truth</b>') == 1
    assert text.count('<b class="flag">waiting</b>') == 2


def test_every_picture_has_a_text_and_its_thumbnail(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a", "b"])
    index = write_report(run, done, "reports/deep/er")
    page = Reader(index.read_text("utf-8"))
    assert len(page.images) == 2 * 2 + 2 * 6
    assert all(image["alt"] and image["width"] and image["height"] for image in page.images)
    check_links(index)


def test_twice_is_the_same_bytes_and_no_new_file(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a", "b", "no-face"])
    index = write_report(run, done, "reports/x")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in index.parent.rglob("*") if path.is_file()}
    write_report(run, done, Path("reports/x"))
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in index.parent.rglob("*") if path.is_file()}
    assert after == before


def test_many_sources_go_on_pages(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, [f"no-face-{number}" for number in range(119)] + ["a"], shard_size=16)
    index = write_report(run, done, "reports/x")
    read = pages(index)
    assert list(read) == ["index.html", "sources-001.html", "sources-002.html", "sources-003.html"]
    assert "source-1" in read["sources-001.html"].ids
    assert "source-120" in read["sources-003.html"].ids
    assert "source-1" not in read["index.html"].ids
    check_links(index)


def test_a_run_that_has_just_begun_has_a_report(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a", "b", "no-face"], shard_size=1)
    early = [{}, {"screen": done[1]["screen"]}, {name: done[2][name] for name in ("screen", "generate")}]
    index = write_report(run, early, "reports/x")
    assert "not screened yet" in index.read_text("utf-8")
    check_links(index)


@pytest.mark.parametrize("folder", ["/elsewhere/x", "../x", "a/../../x", "", "."])
def test_a_folder_outside_the_workspace_is_refused(tmp_path: Path, folder: str) -> None:
    run, done = made_up(tmp_path, ["no-face"])
    with pytest.raises(ConfigError, match="not below the workspace"):
        write_report(run, done, folder)
