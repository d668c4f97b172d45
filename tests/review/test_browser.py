"""An annotator's chair: a real session in a real browser, ten tasks by keyboard alone and ten by mouse.

FEDBENCH_SHOTS=FOLDER keeps the pictures of the screen.
"""

import os
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

import prompts
from tasks import pipeline
from tasks.boards.access import ADMIN, read_access
from tasks.boards.simulate import Behaviour, play
from tasks.dataset.verify import verify
from tasks.results import finish_if_done
from tasks.reviewing import collect_review, open_review, told
from tests import fakes
from tests.review.browser import CHROMIUM, Page, chromium
from tests.review.conftest import Server

pytestmark = [pytest.mark.studio, pytest.mark.skipif(not CHROMIUM, reason="no Chromium: apt install chromium")]

# By name of the control, what is chosen.
Plan = Mapping[str, list[str]]
TASK: Final = (
    "(document.querySelector('.lsf-current-task__task-id')?.firstChild?.textContent || '').replace(/[^0-9]/g, '')"
)
DONE: Final = "/no more tasks|no tasks left/i.test(document.body.innerText)"
SHOWN: Final = (
    "[...document.querySelectorAll('.rv .lsf-image img')].filter(i => i.complete && i.naturalWidth > 0).length >= 3"
)


def controls() -> dict[str, list[tuple[str, str]]]:
    """The controls of the screen in its order: what each choice stores, and a key for it."""
    root = ElementTree.fromstring(prompts.render("review_screen", single=""))
    return {
        control.attrib["name"]: [
            (choice.get("alias") or choice.attrib["value"], choice.attrib["hotkey"].split(",")[0]) for choice in control
        ]
        for control in root.iter("Choices")
    }


def plan(number: int, names: Mapping[str, list[tuple[str, str]]]) -> Plan:
    """What somebody answers to their n-th task: everything rated, some flags, every decision now and then."""
    chosen: dict[str, list[str]] = {}
    for place, (name, choices) in enumerate(names.items()):
        values = [value for value, _ in choices]
        if name == "decision":
            chosen[name] = [["both", "both", "left", "both", "neither", "right"][number % 6]]
        elif name.endswith("flags"):
            chosen[name] = [value for bit, value in enumerate(values) if (number + place) >> bit & 1][:2]
        else:
            chosen[name] = [values[(number + place) % len(values)]]
    return {name: values for name, values in chosen.items() if values}


class Chair:
    """Somebody at their project, in a browser."""

    def __init__(self, page: Page, server: Server, name: str, project: int) -> None:
        self.page, self.names = page, controls()
        email, password = server.passwords[name]
        page.go(f"{server.url}/user/login/")
        page.see("document.querySelector('input[name=email]').focus()")
        page.write(email)
        page.press("tab")
        page.write(password)
        page.press("enter")
        page.wait("!location.pathname.startsWith('/user/login') && document.readyState === 'complete'")
        page.go(f"{server.url}/projects/{project}/data?labeling=1")

    def read_guide(self, *, mouse: bool) -> None:
        """The guide opens by itself, over the first task."""
        guide = "document.querySelector('.lsf-modal-ls')"
        self.page.wait(guide)
        if mouse:
            self.page.click(f"{guide}.querySelector('button')")
        else:
            self.page.press("escape")
        self.page.wait(f"!{guide}")

    def ready(self, after: str = "") -> bool:
        """Wait for the next task; whether there is one."""
        self.page.wait(f"({TASK} !== {after!r} && document.querySelector('.rv') && {SHOWN}) || {DONE}")
        return not self.page.see(DONE)

    def choice(self, name: str, value: str) -> str:
        """The element to click for a choice."""
        place = list(self.names).index(name)
        at = [one for one, _ in self.names[name]].index(value)
        return f"document.querySelectorAll('.rv .lsf-choices')[{place}].querySelectorAll('.lsf-choice')[{at}]"

    def answer(self, chosen: Plan, *, mouse: bool) -> str:
        """Answer the task that is shown and submit; its number."""
        task = str(self.page.see(TASK))
        for name, values in chosen.items():
            for value in values:
                if mouse:
                    self.page.click(self.choice(name, value))
                else:
                    self.page.press(dict(self.names[name])[value])
                checked = f"{self.choice(name, value)}.querySelector('[class*=wrapper-checked]')"
                self.page.wait(checked, 10)
        if mouse:
            self.page.click("[...document.querySelectorAll('button')].find(b => /^submit$/i.test(b.innerText.trim()))")
        else:
            self.page.press("ctrl+enter")
        return task


def fits(page: Page) -> list[str]:
    """What does not lie on the screen, or lies under the bar of decisions."""
    found: list[str] = page.see(
        """(() => {
          const bar = document.querySelector('.rv-bar').getBoundingClientRect(), out = [];
          if (bar.bottom > innerHeight + 1) out.push(`bar ends at ${bar.bottom} of ${innerHeight}`);
          if (document.documentElement.scrollWidth > innerWidth) out.push('the page is too wide');
          for (const e of document.querySelectorAll('.rv-rate, .rv-flags, .rv-cap, .rv .lsf-image img')) {
            const r = e.getBoundingClientRect();
            if (r.bottom > bar.top + 1 || r.top < 0) out.push(`${e.className || e.tagName} ${r.top}..${r.bottom}`);
          }
          return out; })()"""
    )
    return found


def answers_of(server: Server, project: int) -> dict[str, Plan]:
    """By task, what the server has of its only answer."""
    with server.person(ADMIN) as studio:
        tasks: list[dict[str, Any]] = list(studio.tasks(project, annotations=True))
    assert all(len(task["annotations"]) == 1 for task in tasks if task["annotations"])
    return {
        str(task["id"]): {
            part["from_name"]: sorted(part["value"]["choices"]) for part in task["annotations"][0]["result"]
        }
        for task in tasks
        if task["annotations"]
    }


@pytest.mark.parametrize(("name", "mouse"), [("ann1", False), ("ann2", True)])
def test_ten_tasks(server: Server, tmp_path: Path, name: str, mouse: bool) -> None:
    shots = Path(os.environ.get("FEDBENCH_SHOTS", tmp_path))
    opened = {one.annotator: one for one in open_review(server.review(), lambda *_: None)}
    project, given = opened[name].id, dict[str, Plan]()
    with chromium(tmp_path / "browser") as page:
        chair, after = Chair(page, server, name, project), ""
        page.size(1920, 1080)
        for number in cycle(range(60)):
            if not chair.ready(after):
                break
            if number == 0:
                chair.read_guide(mouse=mouse)
                if not mouse:
                    look(page, shots)
            after = chair.answer(plan(number, chair.names), mouse=mouse)
            given[after] = plan(number, chair.names)
    assert len(given) == opened[name].tasks >= 10
    assert answers_of(server, project) == {
        task: {control: sorted(values) for control, values in chosen.items()} for task, chosen in given.items()
    }


def look(page: Page, shots: Path) -> None:
    """The screen in two sizes, light and dark: all of it is to be seen at 1080p, and the decisions at 720p."""
    for dark in (True, False):
        for width, height in ((1280, 720), (1920, 1080)):
            page.size(width, height, dark=dark)
            page.see("new Promise(done => setTimeout(done, 700))")
            page.shot(shots / f"screen-{height}-{'dark' if dark else 'light'}.png")
            if height == 1080:
                assert fits(page) == []
            else:
                assert not [fault for fault in fits(page) if "bar" in fault or "wide" in fault]


def test_then_the_flow_collects_decides_and_publishes(server: Server) -> None:
    pipeline._worker.cache_clear()
    cut = server.config.review.cut
    play(server.store, read_access(server.store), "fakes", cut, how=Behaviour(noise=0.0), tell=lambda *_: None)
    found = collect_review(server.review())
    assert found.notes == []
    numbers = told(server.review())
    assert numbers["annotators"]["ann1"]["answered"] == numbers["annotators"]["ann2"]["answered"] >= 10
    assert numbers["decided"] == numbers["sources"]
    fakes.build(server.workspace, server.config)
    result = finish_if_done(server.workspace, server.config)
    assert result
    assert result.triplets == numbers["chosen"] > 3
    assert verify(result.dataset) == []
