"""What a file name, a model, a licence or a person says is text wherever it ends up: page, card, terminal, artifact."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from flows.cli import app
from tasks.dataset.verify import verify
from tasks.report.contact import contact_sheet
from tasks.report.plain import ascii_controls, in_markdown, plain
from tasks.results import Result, finish
from tests import fakes
from tests.security import hostile

FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Hostile:
    """A finished build in which everybody was hostile."""

    workspace: Path
    built: fakes.Built
    result: Result
    key: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    root = tmp_path_factory.mktemp("hostile")
    hostile.photos(root / "photos", 24)
    built = fakes.build(root / "w", hostile.config(root / "photos"))
    assert built.published
    assert built.published.triplets > 10
    row = pq.read_table(built.published.folder / "data").to_pylist()[0]
    result = finish(built.run, built.done)
    return Hostile(root / "w", built, result, f"{row['pool']}/{row['source_id']}")


class Elements(HTMLParser):
    """The elements and attributes of a page, as a browser's parser finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def pages(world: Hostile) -> list[Path]:
    return sorted(world.result.report.parent.glob("*.html"))


def test_the_words_are_all_there_and_the_data_set_verifies(world: Hostile) -> None:
    """In rows nothing is changed: who reads them decides what they are."""
    assert world.built.published
    rows = pq.read_table(world.built.published.folder / "data").to_pylist()
    assert {row["dense_instruction"] for row in rows} == {hostile.EVERYTHING.strip()}
    assert {vote["raw"] for row in rows for vote in row["votes"]} == {hostile.EVERYTHING}
    assert verify(world.built.published.folder) == []


def test_no_page_has_an_element_that_a_word_made(world: Hostile) -> None:
    for page in pages(world):
        text = page.read_text()
        assert "&lt;script&gt;" in text, "the words are shown"
        elements = Elements()
        elements.feed(text)
        assert "script" not in elements.names
        assert not [name for name, _ in elements.attributes if name.startswith("on")]
        assert not [value for _, value in elements.attributes if value.strip().lower().startswith("javascript:")]
        assert not FORBIDDEN.search(text)
        assert "default-src 'none'" in text


def opened(page: Path, folder: Path) -> str:
    """The page's elements after Chromium has opened it and its scripts, if any, have run."""
    program = shutil.which("chromium") or pytest.fail(
        "no Chromium: apt-get install -y --no-install-recommends chromium"
    )
    command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    assert "<html" in done.stdout, done.stderr[-500:]
    return done.stdout


@pytest.mark.slow
def test_a_browser_runs_nothing(world: Hostile, tmp_path: Path) -> None:
    """And it would run it: the same words without our escaping and policy leave their mark."""
    bait = tmp_path / "bait.html"
    bait.write_text(f"<!doctype html><html><body>{hostile.SCRIPT}</body></html>")
    assert hostile.MARK in opened(bait, tmp_path / "profile").partition("<body")[0]
    card = tmp_path / "card.html"
    assert world.built.published
    text = (world.built.published.folder / "README.md").read_text().split("---\n", 2)[2]
    card.write_text(f"<!doctype html><html><body>{MarkdownIt().enable('table').render(text)}</body></html>")
    for page in [*pages(world), card]:
        assert hostile.MARK not in opened(page, tmp_path / "profile").partition("<body")[0], page.name


def test_the_card_is_the_cards_own(world: Hostile) -> None:
    assert world.built.published
    card = (world.built.published.folder / "README.md").read_text()
    _, front, body = card.split("---\n", 2)
    assert yaml.safe_load(front)["license"] == "other"
    assert not FORBIDDEN.search(card)
    shown = MarkdownIt().enable("table").render(body)
    assert "<script" not in shown
    assert "<img" not in shown
    assert "javascript:" not in re.sub(r">[^<]*<", "><", shown), "as text, and in no attribute"
    assert "<h1>heading" not in shown
    assert "49" not in re.findall(r"\{\{ 7 \* 7 \}\}|\b49\b", shown), "no template in a template"


def test_what_prefect_shows_is_text(world: Hostile) -> None:
    sheet = contact_sheet(world.built.run, world.built.done)
    shown = MarkdownIt().enable("table").render(sheet)
    assert shown.count("<tr>") > 5
    assert "<script" not in shown
    assert "onerror=" not in re.sub(r">[^<]*<", "><", shown)


COMMANDS = {
    "explain": ["explain", "KEY"],
    "status": ["status"],
    "recut": ["recut", "--set", "verify.cut.min_change=3"],
    "forecast": ["forecast", "--run", "fakes"],
    "calibration": ["panel", "calibration"],
    "withdraw": ["withdraw", "KEY", "--dry-run"],
    "unknown": ["explain", f"{hostile.TERMINAL}/x"],
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["people", "json"])
def test_a_terminal_gets_no_command_from_anybody(world: Hostile, name: str, form: list[str]) -> None:
    words = [world.key if word == "KEY" else word for word in COMMANDS[name]]
    done = CliRunner().invoke(app, [*words, "-w", str(world.workspace), *form])
    assert done.exit_code == (2 if name == "unknown" else 0), done.output
    assert done.output
    assert not FORBIDDEN.search(done.output)
    if form and name == "explain":
        assert "\\u009b31m" in done.output, "escaped, not lost"


def test_plain_text_stays_what_it_is() -> None:
    word = "zwei Zeilen\n\tund ein Umlaut: ä, 笑, 👍"
    assert plain(word) == word
    assert in_markdown("a_b *c* `d` #1 [e]") == "a_b *c* `d` #1 [e]"
    assert json.loads(ascii_controls(json.dumps({"a": hostile.TERMINAL}, ensure_ascii=False))) == {
        "a": hostile.TERMINAL
    }
