"""A build in which everybody whose words end up on a page says something hostile: files, models, licences, people."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import cv2

from schemas.answers import Ballot
from schemas.config import BuildConfig
from schemas.expressions import EXPRESSIONS
from tasks.describers import DESCRIBERS
from tasks.engine.calls import Calls
from tasks.engine.images import Picture
from tasks.voters import VOTERS
from tests import fakes
from tests.drawn import Code, draw

# What a script would do that got through: leave this mark on the page.
MARK: Final = "data-owned"
_RUN: Final = f"document.documentElement.setAttribute('{MARK}','1')"
SCRIPT: Final = f"<script>{_RUN}</script>"
IMAGE: Final = f'"><img src=x onerror="{_RUN}">'
LINK: Final = f'[click](javascript:{_RUN}) <a href="javascript:{_RUN}">x</a>'
BREAK: Final = "a|b\n\n# heading\n---\nlicense: mit\n- {{ 7 * 7 }} {% raw %} ${7*7} `code`"
TERMINAL: Final = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil"
ALL: Final = (SCRIPT, IMAGE, LINK, BREAK, TERMINAL)
EVERYTHING: Final = " ".join(ALL)


class HostileDescriber(fakes.FakeDescriber):
    """Captions and instructions that are none."""

    def caption(self, picture: Picture, call: Calls) -> str:
        return EVERYTHING

    def instruct(self, source: Picture, ground_truth: Picture, call: Calls, mistaken: str = "") -> str:
        return EVERYTHING


class HostileVoter(fakes.FakeVoter):
    """A right answer in wrong words."""

    def vote(self, picture: Picture, call: Calls) -> Ballot:
        return replace(super().vote(picture, call), raw=EVERYTHING)


def photos(root: Path, count: int) -> Path:
    """Drawn photos with hostile names, and a manifest with hostile cells; the manifest's path."""
    root.mkdir(parents=True)
    rows: list[Sequence[Any]] = []
    for number in range(count):
        word = ALL[number % len(ALL)].replace("/", "∕").replace("\n", " ")
        name = f"{number:03} {word}.png"
        assert cv2.imwrite(str(root / "x.png"), draw(Code(number, EXPRESSIONS[number % 7]))[..., ::-1])
        (root / "x.png").rename(root / name)
        hint = f"{number // 2} {EVERYTHING}"
        rows.append([name, EXPRESSIONS[number % 7], f"{number:03} {word}", hint, hint, hint, EVERYTHING])
    (root / "broken.png").write_bytes(b"\x89PNG")
    rows.append(["broken.png", "happy", f"broken {EVERYTHING}", "", "", "", EVERYTHING])
    path = root / "manifest.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "id", "clip", "movie", "identity", "licence"])
        writer.writerows(rows)
    return path


def config(root: Path) -> BuildConfig:
    """The fakes' config on those photos; registers the hostile adapters."""
    fakes.install()
    DESCRIBERS.add("hostile", HostileDescriber)
    VOTERS.add("hostile", HostileVoter)
    values = fakes.config("shard_size=6").model_dump(mode="json")
    params = {
        "root": str(root),
        "manifest": str(root / "manifest.csv"),
        "pool": f"p {SCRIPT}{IMAGE}",
        "licence": EVERYTHING,
    }
    values["pools"] = [{"name": "folder", "params": params}]
    for stage in ("caption", "instruct"):
        values[stage]["measure"]["describer"] = {"name": "hostile", "params": {}}
    panel = [{"name": "hostile", "params": {"name": name}} for name in (SCRIPT, TERMINAL, BREAK)]
    values["verify"]["measure"]["panel"] = panel
    values["screen"]["measure"] |= {"label_panel": [], "check_labels": False}
    return BuildConfig.model_validate(values)
