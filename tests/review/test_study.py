"""A study of pairs on a real Label Studio: drawn, asked, played, tampered with, collected, and read by `agreement`."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.scoring import ScoreRow
from tasks.boards.access import ADMIN
from tasks.engine.images import ImageStore
from tasks.engine.store import Store
from tasks.study.pairs import read_pairs
from tests.leaderboard.made_up import rows, write
from tests.review.conftest import Server

pytestmark = pytest.mark.studio
EDITORS = ("secret-one", "secret-two", "secret-three")


def outputs(store: Store, sources: int = 4) -> list[ScoreRow]:
    """Rows whose pictures are in the store."""
    images, draw = ImageStore(store), np.random.default_rng(0)

    def stored() -> str:
        return images.put(draw.integers(0, 256, (40, 40, 3), np.uint8)).digest

    pictures = [stored() for _ in range(sources)]
    return [
        row.model_copy(update={"image": stored(), "source_image": pictures[place], "truth_image": pictures[place]})
        for editor in EDITORS
        for place, row in enumerate(rows(editor, [0.5] * sources))
    ]


def said(server: Server, *words: str | Path) -> Any:
    done = CliRunner().invoke(app, ["study", *map(str, words), "-w", str(server.workspace), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_study_goes_all_the_way_around(server: Server, tmp_path: Path) -> None:
    write(server.workspace, "scored", outputs(server.store))
    assert said(server, "pairs", "scored", "--name", "first", "--number", "6")["pairs"] == 6
    opened = said(server, "open", "first")
    assert Counter((one["annotator"], one["tasks"], one["added"]) for one in opened) == Counter(
        {(name, 6, 6): 1 for name in ("ann1", "ann2", "ann3")}
    )
    assert {one["added"] for one in said(server, "open", "first")} == {0}
    with server.person(ADMIN) as studio:
        for one in opened:
            project = studio.get(f"/api/projects/{one['id']}/").json()
            assert "Keeps the person" in project["label_config"]
            assert "Better edit overall" in project["expert_instruction"]
            shown = str([task["data"] for task in studio.tasks(one["id"])])
            assert not [word for word in (*EDITORS, "0000", "ann1", "p/") if word in shown]

    given = said(server, "simulate", "first", "--noise", "0", "--limit", "5")
    assert given == {"ann1": 5, "ann2": 5, "ann3": 5}
    first = said(server, "collect", "first", "--out", tmp_path / "pairs.csv")
    assert (first["fresh"], first["played"], first["pairs"]) == (15, 15, 6)
    assert said(server, "collect", "first")["fresh"] == 0

    # A stranger answers in another's project; somebody's half an answer is none.
    mine = opened[0]
    with server.person(ADMIN) as studio:
        tasks = list(studio.tasks(mine["id"], annotations=True))
    (open_task,) = [task for task in tasks if not task["annotations"]]
    result = next(task["annotations"][0]["result"] for task in tasks if task["annotations"])
    with server.person("ann4") as stranger:
        stranger.write("POST", f"/api/tasks/{open_task['id']}/annotations/", {"result": result, "lead_time": 1})
    with server.person("ann1") as owner:
        half = [part for part in result if part["from_name"] != "identity"]
        owner.write("POST", f"/api/tasks/{open_task['id']}/annotations/", {"result": half, "lead_time": 1})
    tampered = said(server, "collect", "first")
    assert tampered["fresh"] == 0
    notes = " ".join(tampered["notes"])
    assert "is by account" in notes
    assert "it says nothing on identity" in notes

    # More pairs are added to those that are there.
    assert said(server, "pairs", "scored", "--name", "first", "--number", "9")["pairs"] == 9
    assert {(one["tasks"], one["added"]) for one in said(server, "open", "first")} == {(9, 3)}
    said(server, "simulate", "first", "--noise", "0")
    said(server, "collect", "first", "--out", tmp_path / "pairs.csv")
    found, _ = read_pairs(tmp_path / "pairs.csv")
    assert len(found) == 9
    whole = [words for pair in found for words in pair.choices.values() if "" not in words]
    assert len(whole) >= 24
    assert all(len(set(words)) == 1 for words in whole), "without noise all say the same, whatever side they saw it on"
    told = said(server, "agreement", tmp_path / "pairs.csv", "--scores", "scored", "--metrics", "l1")
    assert {one["metric"] for one in told["agreement"]} >= {"FED-Score", "L1"}
    assert told["questions"][0]["alpha"] == 1
