"""How an editor fails, and what it gains from being told more."""

from pathlib import Path

import numpy as np
import pytest

from schemas.score_config import ScoreCut
from schemas.score_manifest import EditorUsed
from schemas.scoring import PartStatus
from tasks.engine.store import Store
from tasks.leaderboard.entrants import opened
from tasks.leaderboard.files import plain
from tasks.leaderboard.instructions import told_more
from tasks.leaderboard.page import write_page
from tasks.leaderboard.ranking import boards, protocol
from tasks.leaderboard.traits import traits
from tasks.metrics.score import rescored
from tasks.metrics.score_summary import Mean
from tests.leaderboard.made_up import rows, write
from tests.scoring.samples import rule


@pytest.mark.parametrize(
    ("ratios", "identity", "faceless", "words"),
    [
        ([0.0, 0.0, 1.0], 1.0, 0, ["lazy"]),
        ([2.0, 1.6, 1.0], 0.6, 0, ["overfit"]),
        ([9.0, 9.0, 9.0], 0.1, 0, ["overfit", "another person"]),
        ([1.0, 0.5, 1.5, 0.4], 0.6, 0, []),
        ([0.1, 2.0], 0.6, 0, []),  # half each is no majority
        ([], None, 0, []),
        ([9.0, 9.0, 9.0], None, 3, ["no face in 3 of 3"]),  # no exaggeration: there is nothing that it exaggerates
        ([9.0, 9.0, 9.0], 0.1, 2, ["no face in 2 of 3", "another person"]),
        ([9.0, 9.0, 9.0], 0.6, 1, ["no face in 1 of 3", "overfit"]),
    ],
)
def test_a_copy_an_exaggeration_another_person_and_no_face(
    ratios: list[float], identity: float | None, faceless: int, words: list[str]
) -> None:
    of = Mean.of([1.0] * faceless + [0.0] * (3 - faceless))
    assert traits(np.array(ratios), 0.5, identity, of) == words


def test_outputs_without_a_face_are_told_on_the_page_and_in_json(tmp_path: Path) -> None:
    held = [
        one.model_copy(update={"rule": rule(identity=None, identity_status=PartStatus.NO_FACE, lpips_output=0.4)})
        for one in rows("blank", [0.1] * 12)
    ]
    write(tmp_path, "r", rescored(held, ScoreCut(), partial=False))
    found = boards(opened(tmp_path, ["r"]))
    page = write_page(found, Store(tmp_path), "reports/leaderboards/x", published=False).read_text()
    assert "<small>no face in 12 of 12</small>" in page
    (told,) = plain(found, published=False)["boards"][0]["rows"]
    assert told["traits"] == ["no face in 12 of 12"]


def test_dense_minus_simple_is_paired_by_row(tmp_path: Path) -> None:
    scores = [0.2, 0.4, 0.6, 0.8] * 5
    held = [
        *rows("a", scores),
        *rows("a", [value + 0.1 for value in scores], granularity="dense"),
        *rows("b", scores),
        *rows("b", [value - 0.1 if place else None for place, value in enumerate(scores)], granularity="dense"),
        *rows("only", scores),
    ]
    write(tmp_path, "r", held)
    ((dense, told),) = told_more(boards(opened(tmp_path, ["r"])))
    assert dense.granularity == "dense"
    a, b = told
    assert (a.label, a.gain.value, a.words) == ("a", pytest.approx(0.1), "better with dense")
    # b failed once where it had .2: (19 · −.1 − .2) / 20.
    assert (b.label, b.gain.value, b.gain.n, b.words) == ("b", pytest.approx(-0.105), 20, "worse with dense")
    assert list(told_more(boards(opened(tmp_path, ["r"]))[1:])) == []


def test_all_that_decides_an_editors_outputs_is_in_its_protocol(tmp_path: Path) -> None:
    params = {
        "model": "m",
        "call": {"num_inference_steps": 28, "guidance_scale": 2.5},
        "loras": [{"revision": "abc", "scale": 1.0}],
        "scheduler": {},
        "compile": False,
    }
    identity = {"name": "diffusion", "version": 1, "params": params}
    write(
        tmp_path,
        "r",
        rows("e", [0.5]),
        editors=(EditorUsed(editor="e", family="", identity=identity, conflicts=(), truths=()),),
    )
    ((row,),) = (board.rows for board in boards(opened(tmp_path, ["r"])))
    assert protocol(row.entrant) == (
        "diffusion v1 (call.guidance_scale=2.5, call.num_inference_steps=28, compile=False, loras.0.revision=abc, "
        "loras.0.scale=1.0, model=m), seed 0"
    )
