"""The card: licences, roles and their conflicts, the cells and what they lack; all from the manifest."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.config import BuildConfig
from schemas.published import CellCount
from tasks.dataset.card import render_card
from tasks.dataset.manifest import cell_counts, described
from tasks.dataset.roles import roles_of
from tasks.dataset.verify import verify
from tests import fakes
from tests.builds import config
from tests.dataset.conftest import Built, Releases


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def card_of(folder: Path) -> str:
    return (folder / "README.md").read_text()


def table(card: str, heading: str) -> list[list[str]]:
    """The first table below a heading, without its rule."""
    lines = card[card.index(heading) :].split("\n\n|", 1)[1].split("\n\n", maxsplit=1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in f"|{lines}".splitlines()]
    return [rows[0], *rows[2:]]


def test_every_table_is_one(small: Built, releases: Releases) -> None:
    for folder in (small.folder, releases.full, releases.index, releases.pack):
        for block in re.findall(r"(?:^\|.*\n)+", card_of(folder), re.M):
            widths = {line.count("|") for line in block.splitlines()}
            assert len(widths) == 1, block
            assert re.match(r"\|(:?-+:?\|)+$", block.splitlines()[1])
        assert "\n\n\n" not in card_of(folder)


def test_roles_by_family_with_the_conflicts_of_the_embedded_adapters(small: Built) -> None:
    head, *rows = table(card_of(small.folder), "## Who did what")
    cells = {(row[0], family): cell for row in rows for family, cell in zip(head[1:], row[1:], strict=True)}
    assert {key: cell for key, cell in cells.items() if cell} == {
        ("editor", "MediaPipe"): "warp 1 ⚠",
        ("voter", "FER-2013"): "fer 1 ⚠",
        ("voter", "MediaPipe"): "blendshapes 1 ⚠",
        ("captioner", "MediaPipe"): "blendshapes 1 ⚠",
        ("writer", "MediaPipe"): "blendshapes 1 ⚠",
        ("judge", "no model family"): "auto 1",
    }
    said = card_of(small.folder)
    assert "- ⚠ editor `warp`: tuned against voter fer, or that against it; same family as voter blendshapes" in said
    assert "- ⚠ voter `fer`: tuned against editor warp, or that against it." in said


def test_makers_do_not_conflict_with_makers() -> None:
    (editor, voter, captioner, judge, writer) = roles_of(config(verify={"measure": {"panel": ["fer"]}}), {})
    assert (captioner.family, editor.family) == ("MediaPipe", "MediaPipe")
    assert captioner.conflicts == writer.conflicts == judge.conflicts == ()
    assert editor.conflicts
    assert voter.conflicts


def test_editors_of_one_adapter_are_told_apart() -> None:
    """The first made most ground truths, so the card must not name the last for all of them."""
    first, second = ({"name": "outputs", "params": {"root": "x", "name": name, "family": name}} for name in "ab")
    lazy = {"name": "warp", "params": {"intensity": 0.3}}
    more = [
        {"target": "sad", "editor": editor, "called": called} for editor, called in ((second, "two"), (lazy, "lazy"))
    ]
    used = roles_of(config(generate={"measure": {"editor": first, "top_up": more}}), {})
    editors = [(role.adapter, role.called, role.family) for role in used if role.role == "editor"]
    assert editors == [("a", "outputs", "a"), ("b", "two", "b"), ("warp", "lazy", "MediaPipe")]


def test_licences_by_pool(small: Built) -> None:
    head, *rows = table(card_of(small.folder), "## Licences")
    assert head == ["pool", "kind", "may be passed on", "licence", "sources"]
    assert {row[0] for row in rows} == {"samples"}
    assert {row[2] for row in rows} == {"no, or not known"}
    assert sum(int(row[4]) for row in rows) == manifest_of(small.folder)["sources"]


def test_what_each_release_says_of_itself(releases: Releases) -> None:
    assert "local copy for holders" in card_of(releases.full)
    assert "This is the index" in card_of(releases.index)
    assert "local copy" not in card_of(releases.index)
    assert "fedbench hydrate" in card_of(releases.pack)
    for folder in (releases.full, releases.index):
        for word in ("GDPR", "AI Act", "synthetic", "Three-polarity"):
            assert word in card_of(folder)


def test_a_day_is_told_only_where_the_config_has_one(tmp_path: Path) -> None:
    fakes.install()
    made = fakes.build(tmp_path, fakes.config("publish.generated_on=2026-05-01", sources=6))
    assert made.published
    folder = made.published.folder
    assert verify(folder) == []
    assert "version 1, on 2026-05-01;" in card_of(folder)
    assert json.loads((folder / "croissant.json").read_text())["dateCreated"] == "2026-05-01"
    head = yaml.safe_load(card_of(folder).split("---\n")[1])
    assert head["license"] == "other"


def test_an_acknowledgement_changes_no_byte(tmp_path: Path) -> None:
    fakes.install()
    first = fakes.build(tmp_path, fakes.config(sources=6)).tree()
    again = fakes.build(
        tmp_path, fakes.config("publish.acknowledge_licences=[fake]", "acknowledge_external_api=true", sources=6)
    )
    assert again.published
    assert not again.published.written
    assert again.tree() == first


def test_described_has_no_acknowledgement() -> None:
    values = described(BuildConfig.model_validate({"publish": {"acknowledge_licences": ["samples"]}}))
    assert set(values["publish"]) == {"measure", "cut", "generated_on"}
    assert "acknowledge_external_api" not in values


def test_cells_show_natural_and_published_mix_and_what_is_short(tmp_path: Path) -> None:
    fakes.install()
    options = ("publish.cut.target=6", "publish.cut.margin=1.4")
    made = fakes.build(tmp_path, fakes.config(*options, sources=40))
    assert made.published
    folder = made.published.folder
    assert verify(folder) == []
    head, *rows, total = table(card_of(folder), "## Source and target expressions")
    assert head == ["source", "target", "natural", "published", "short"]
    assert total == ["all", "all", str(sum(int(row[2]) for row in rows)), "6", "0"]
    assert int(total[2]) > 6
    assert "for a target of 6 triplets" in card_of(folder)


def test_short_is_what_an_even_share_lacks() -> None:
    settings = config(publish={"cut": {"target": 84}})
    natural = {("happy", "sad"): 5, ("sad", "happy"): 1}
    cells = {
        (cell.source, cell.target): cell for cell in cell_counts(natural, natural | {("happy", "sad"): 2}, settings)
    }
    assert len(cells) == 42 - 1 + 1
    assert cells["happy", "sad"] == CellCount(source="happy", target="sad", survivors=5, triplets=2, short=0)
    assert cells["sad", "happy"].short == 1
    assert cells["fear", "anger"].short == 2
    assert all(cell.short == 0 for cell in cell_counts(natural, natural, config()))
    few = config(publish={"cut": {"target": 12}}, generate={"measure": {"targets": ["happy"]}})
    assert {cell.target for cell in cell_counts({}, {}, few)} == {"happy"}
    assert len(cell_counts({}, {}, few)) == 6


@pytest.mark.parametrize("name", ["full", "index"])
def test_it_follows_from_the_manifest_alone(releases: Releases, name: str) -> None:
    folder = getattr(releases, name)
    assert render_card(manifest_of(folder)) == card_of(folder)
