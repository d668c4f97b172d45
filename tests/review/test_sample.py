"""People look at a sample: who is in it, what it says of the rest, and when it stops a build."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.options import load_config
from schemas.outcomes import Status
from schemas.records import Key
from schemas.reviewing import Review, ReviewCut
from tasks.boards.sampling import SampleTally, mode_of, sampled
from tasks.dataset.read import data_set
from tasks.dataset.verify import verify
from tasks.engine.errors import TooManyErrors
from tasks.metrics.interval import wilson
from tests import fakes
from tests.review.asking import best, both, config, last, none, questions, say
from tests.review.test_waiting import finished, waits

HALF = "review.cut.sample=0.5"
KEPT, REJECTED, WAITING = Status.KEPT, Status.REJECTED, Status.WAITING


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


# -- who is in it --------------------------------------------------------------------------------------------------


def test_a_coin_per_source_that_no_other_source_turns() -> None:
    keys = [Key("pool", f"source-{number}") for number in range(2000)]
    cut = ReviewCut(sample=0.05)
    drawn = {key for key in keys if sampled(key, cut)}
    assert 70 < len(drawn) < 130
    assert {key for key in reversed(keys[:900]) if sampled(key, cut)} == {key for key in keys[:900] if key in drawn}
    assert drawn < {key for key in keys if sampled(key, ReviewCut(sample=0.2))}, "a larger share asks about more"
    assert {key for key in keys if sampled(key, ReviewCut(sample=0.05, sample_seed=1))} != drawn
    assert all(sampled(Key(*key[:2], "happy", "warp"), cut) for key in drawn), "with all its candidates"
    assert all(mode_of(key, Review()) == "human" for key in keys)


def test_a_longer_prefix_changes_nobody(tmp_path: Path) -> None:
    waits(tmp_path, HALF, sources=12)
    few = {question.key for question in questions(tmp_path, config(HALF, sources=12))}
    waits(tmp_path, HALF, sources=40)
    many = questions(tmp_path, config(HALF, sources=40))
    everybody = {question.key for question in questions(tmp_path, config(sources=40))}
    assert few < {question.key for question in many} < everybody


# -- what it says --------------------------------------------------------------------------------------------------


def test_wrong_is_what_people_did_not_keep_of_the_best_rank() -> None:
    tally = SampleTally(Review.model_validate({"measure": {"board": "label_studio"}, "cut": {"sample": 0.999}}))
    keys = [key for number in range(20) if sampled(key := Key("pool", f"{number}"), ReviewCut(sample=0.999))]
    rank1, rank2 = (REJECTED, "rank 1; no"), (REJECTED, "rank 2; no")
    right = [[(KEPT, ""), rank2], [(KEPT, ""), (KEPT, "")], [(KEPT, "")]]
    wrong = [[rank1, (KEPT, "")], [rank1, rank2], [rank1], [rank2]]
    open_: list[list[tuple[Status, str]]] = [[(WAITING, ""), (WAITING, "")], []]
    for key, steps in zip(keys, right + wrong + open_, strict=False):
        tally.add(key, steps)
    found = tally.found()
    assert found
    assert (found.sources, found.sampled, found.decided, found.wrong) == (8, 8, 7, 4)
    assert (found.low, found.high) == wilson(4, 7)
    assert SampleTally(Review()).found() is None


def test_the_rest_is_decided_at_once_and_every_row_says_who_decided(tmp_path: Path) -> None:
    waits(tmp_path, HALF, sources=40)
    asked = questions(tmp_path, config(HALF, sources=40))
    say(tmp_path, asked, ann1=best, ann2=best)
    say(tmp_path, asked[:1], ann1=last, ann2=last)
    sets = (HALF, "review.max_error=0.5")
    built = finished(tmp_path, *sets, sources=40)
    assert built.published
    assert verify(built.published.folder) == []
    modes = {}
    for shard, done in zip(built.run.executor.shards, built.run.executor.commits(), strict=True):
        for row in built.run.executor.kept("review", shard, done):
            modes[row.key.source()] = row.mode
            assert (row.mode == "auto") == ("not in the sample" in row.note)
    assert {key for key, mode in modes.items() if mode == "sample"} == {question.key for question in asked}
    assert set(modes.values()) == {"sample", "auto"}
    sample = data_set(built.published.folder).sample
    assert sample
    assert (sample.sources, sample.sampled, sample.decided, sample.wrong) == (len(modes), len(asked), len(asked), 1)
    card = (built.published.folder / "README.md").read_text()
    assert f"{len(asked)} of {len(modes)} sources in review" in card
    assert f"wrong in {100 / len(asked):.1f} % (95 % interval" in card
    other = tmp_path / "other"
    waits(other, HALF, "shard_size=3", sources=40)
    say(other, asked[1:], ann1=best, ann2=best)
    say(other, asked[:1], ann1=last, ann2=last)
    assert finished(other, *sets, "shard_size=3", sources=40).tree() == built.tree()


def test_enough_is_a_share_of_the_sample(tmp_path: Path) -> None:
    sets = (HALF, "review.enough=0.5")
    waits(tmp_path, *sets, sources=40)
    asked = questions(tmp_path, config(*sets, sources=40))
    say(tmp_path, asked[: len(asked) // 2 - 1], ann1=both, ann2=both)
    assert f"of {len(asked)} sources" in waits(tmp_path, *sets, sources=40)
    say(tmp_path, asked[: len(asked) // 2 + 1], ann1=both, ann2=both)
    assert finished(tmp_path, *sets, sources=40).published


# -- the gate ------------------------------------------------------------------------------------------------------


def refused(workspace: Path, *sets: str) -> str:
    with pytest.raises(TooManyErrors) as caught:
        fakes.build(workspace, config(*sets, sources=40))
    assert caught.value.exit_code == 5
    assert not (workspace / "datasets").exists()
    return caught.value.message


def test_too_many_errors_stop_publishing(tmp_path: Path) -> None:
    waits(tmp_path, HALF, sources=40)
    asked = questions(tmp_path, config(HALF, sources=40))
    say(tmp_path, asked, ann1=best, ann2=best)
    say(tmp_path, asked[:3], ann1=none, ann2=none)
    rate, (low, high) = 3 / len(asked), wilson(3, len(asked))
    told = refused(tmp_path, HALF)
    assert f"wrong on 3 of {len(asked)} sources that people looked at ({rate:.1%}, " in told
    assert f"interval {low:.1%} to {high:.1%}); review.max_error allows 0.1" in told
    assert finished(tmp_path, HALF, f"review.max_error={rate + 0.001}", sources=40).published


def test_an_unknown_error_is_not_none(tmp_path: Path) -> None:
    with pytest.raises(TooManyErrors, match=r"is not known: people have decided 0 of 0"):
        fakes.build(tmp_path, config("review.cut.sample=0.000001", sources=40))
    assert "0 of" in refused(tmp_path, HALF, "review.enough=0")
    built = finished(tmp_path, HALF, "review.enough=0", "review.max_error=1", sources=40)
    assert built.published
    assert verify(built.published.folder) == []
    assert "is not known" in (built.published.folder / "README.md").read_text()


def test_where_people_decide_all_nothing_is_estimated(tmp_path: Path) -> None:
    waits(tmp_path)
    say(tmp_path, questions(tmp_path, config()), ann1=none, ann2=none)
    built = finished(tmp_path)
    assert built.published
    assert data_set(built.published.folder).sample is None


def test_status_tells_of_the_sample(tmp_path: Path) -> None:
    waits(tmp_path, HALF, sources=40)
    asked = questions(tmp_path, config(HALF, sources=40))

    def status(*words: str) -> str:
        return CliRunner().invoke(app, ["review", "status", "-w", str(tmp_path), *words]).output

    assert "is not known" in status()
    say(tmp_path, asked, ann1=best, ann2=best)
    finished(tmp_path, HALF, sources=40)
    sample = json.loads(status("--json"))["sample"]
    assert (sample["sampled"], sample["decided"], sample["wrong"]) == (len(asked), len(asked), 0)
    assert f"the best rank was wrong on 0 of {len(asked)}: 0.0%" in status()


def test_the_training_preset_reviews_a_sample() -> None:
    review = load_config("training").review
    assert (review.measure.board.name, review.cut.sample, review.max_error) == ("label_studio", 0.05, 0.1)
