"""What Prefect's UI is given of a run: rates that follow the commits, and a sheet whose text is no markup."""

import base64
import re
from pathlib import Path

import cv2
import numpy as np

from tasks.report.contact import MOST_BYTES, SIDE, _text, contact_sheet
from tasks.report.funnel import funnel
from tasks.report.rates import costs_markdown, rates, rates_markdown
from tests import fakes
from tests.report.made_up import made_up


def test_rates_are_those_of_the_commits(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a", "b", "no-face", "broken", "wait", "c"])
    found = {one.stage: one for one in rates(run, done).stages}
    for row in funnel(run.executor.order, done):
        one = found[row.stage]
        assert (one.done, one.queue, one.owed) == (row.shards_done, row.shards - row.shards_done, row.owed)
    assert found["generate"].failed == 4 / 24
    assert found["generate"].why == "refused 4"
    assert "| generate |" in rates_markdown(rates(run, done))


def test_what_is_due_is_the_queue(tmp_path: Path) -> None:
    fakes.install()
    built = fakes.build(tmp_path, fakes.config())
    done = [commits if place % 2 else {"screen": commits["screen"]} for place, commits in enumerate(built.done)]
    found = {one.stage: one for one in rates(built.run, done).stages}
    assert (found["screen"].queue, found["generate"].queue, found["generate"].done) == (0, 2, 2)
    assert found["generate"].measured == 0 or found["generate"].seconds is not None
    assert costs_markdown(rates(built.run, done)) == "No model outside was asked.\n"


def test_the_sheet_shows_the_first_triplets_small(tmp_path: Path) -> None:
    fakes.install()
    built = fakes.build(tmp_path, fakes.config(sources=40))
    text = contact_sheet(built.run, built.done, most=3)
    pictures = re.findall(r"!\[\]\(data:image/jpeg;base64,([^)]+)\)", text)
    assert len(pictures) == 2 * 3
    for picture in pictures:
        shown = cv2.imdecode(np.frombuffer(base64.b64decode(picture), np.uint8), cv2.IMREAD_COLOR)
        assert max(shown.shape[:2]) == SIDE
    assert len(text) < MOST_BYTES
    assert contact_sheet(built.run, [{} for _ in built.done]) == "No triplet is published yet.\n"


def test_what_a_name_says_is_no_markup() -> None:
    assert _text("a|b <img src=x> [c](d)\n![e](f)") == (r"a\|b &lt;img src=x&gt; \[c\]\(d\) \!\[e\]\(f\)")
