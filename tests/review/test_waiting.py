"""A build stops for people, goes on with what they say, and loses or repeats nothing on the way."""

from pathlib import Path

import pytest

from schemas.outcomes import Reason, Status
from tasks.boards.answers import answers_for, changed_since_final, snapshots
from tasks.dataset.verify import verify
from tasks.engine.errors import ConfigError, WaitingForReview
from tasks.engine.recut import compare
from tasks.engine.store import Store
from tasks.pipeline import open_run
from tasks.report.funnel import funnel
from tasks.results import finish, finish_if_done
from tests import fakes
from tests.review.asking import best, both, config, last, none, questions, say


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def finished(workspace: Path, *sets: str, sources: int = 12) -> fakes.Built:
    built = fakes.build(workspace, config(*sets, sources=sources))
    finish(built.run, built.done)
    return built


def waits(workspace: Path, *sets: str, sources: int = 12) -> str:
    with pytest.raises(WaitingForReview) as caught:
        fakes.build(workspace, config(*sets, sources=sources))
    assert caught.value.exit_code == 6
    return caught.value.message


def test_a_build_waits_says_how_many_and_goes_on(tmp_path: Path, world: fakes.World) -> None:
    message = waits(tmp_path)
    asked = questions(tmp_path, config())
    assert len(asked) > 4
    assert f"{len(asked)} of {len(asked)} sources" in message
    assert not (tmp_path / "datasets").exists()
    dear = world.counts()
    assert f"{len(asked)} of" in waits(tmp_path), "again, without asking a model"
    assert world.counts() == dear

    say(tmp_path, asked[:2], ann1=best, ann2=best)
    assert f"{len(asked) - 2} of {len(asked)} sources" in waits(tmp_path)
    assert world.counts()["edit"] == dear["edit"]
    say(tmp_path, asked[2:], ann1=last, ann2=both, ann3=last)
    built = finished(tmp_path)
    assert world.counts() - dear == {"instruct": len(asked)}, "what was decided late is written, nothing else is done"
    assert built.published
    assert verify(built.published.folder) == []
    rows = {row.stage: row for row in funnel(built.run.executor.order, built.done)}
    assert rows["review"].kept == len(asked)
    assert rows["review"].waiting == 0


def test_only_shards_with_news_are_decided_again(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    before = open_run(tmp_path, config()).executor.commits()
    say(tmp_path, asked[:1], ann1=best, ann2=best)
    after = open_run(tmp_path, config()).executor.commits()
    changed = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert len(changed) == 1
    assert "review" not in after[changed[0]]
    assert "caption" in after[changed[0]]


def test_what_is_decided_can_be_published_while_the_rest_waits(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    say(tmp_path, asked[:3], ann1=best, ann3=best)
    waits(tmp_path, "review.enough=0.9")
    built = finished(tmp_path, "review.enough=0")
    assert built.published
    assert built.published.triplets == 3
    assert verify(built.published.folder) == []
    (row,) = [row for row in funnel(built.run.executor.order, built.done) if row.stage == "review"]
    assert row.waiting == sum(len(question.finalists) for question in asked[3:]) > 0


def test_how_answers_came_in_changes_no_byte(tmp_path: Path) -> None:
    trees = []
    for name, size in (("one", 100), ("two", 1)):
        workspace = tmp_path / name
        waits(workspace)
        asked = questions(workspace, config())
        for start in range(0, len(asked), size):
            some = asked[::-1][start : start + size] if size == 1 else asked
            say(workspace, some, ann2=both, ann1=last)
            say(workspace, some, ann3=last)
        assert say(workspace, asked, ann3=last) == 0, "what is known is no news"
        trees.append(finished(workspace, f"shard_size={3 if size > 1 else 2}").tree())
    assert len(snapshots(Store(tmp_path / "two")).parts) > 4
    assert trees[0] == trees[1]


def test_decisions_are_final_once_published(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    say(tmp_path, asked, ann1=best, ann2=best)
    tree = finished(tmp_path).tree()
    say(tmp_path, asked[:2], ann1=none, ann2=none, ann3=none)
    again = finish_if_done(tmp_path, config())
    assert again
    assert not again.written
    assert fakes.tree(again.dataset) == tree
    decided = answers_for(Store(tmp_path), config())
    told = changed_since_final(Store(tmp_path), "fakes", "v1", decided)
    assert sorted(told) == sorted(question.digest for question in asked[:2])
    second = finished(tmp_path, "edition=v2")
    assert second.published
    assert second.published.triplets == len(asked) - 2, "another edition takes what they say now"
    third = finish_if_done(tmp_path, config())
    assert third
    assert fakes.tree(third.dataset) == tree


def test_a_rejected_source_says_why(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    say(tmp_path, asked, ann1=none, ann2=none)
    run = finished(tmp_path).run
    for shard, done in zip(run.executor.shards, run.executor.commits(), strict=True):
        for row in run.executor.decided("review", shard, done["review"]):
            assert (row.status, row.reason) == (Status.REJECTED, Reason.NOT_CHOSEN)
            assert row.evidence.endswith("human review did not choose it (2 of 2 people found none usable)")


def test_a_target_counts_sources_that_wait(tmp_path: Path, world: fakes.World) -> None:
    sets = ("publish.cut.target=2", "workers=1")
    waits(tmp_path, *sets, sources=60)
    asked = questions(tmp_path, config(*sets, sources=60))
    edits = world.counts()["edit"]
    fakes.install()
    fakes.build(tmp_path / "all", fakes.config(sources=60))
    assert edits < fakes.world().counts()["edit"] / 2
    say(tmp_path, asked, ann1=none, ann2=none)
    more = questions(tmp_path, config(*sets, sources=60)) if waits(tmp_path, *sets, sources=60) else []
    assert len(more) > len(asked), "what people rejected is made up for"


def test_another_rule_needs_nobody(tmp_path: Path) -> None:
    waits(tmp_path)
    asked = questions(tmp_path, config())
    say(tmp_path, asked, ann1=best, ann2=both, ann3=none, judge=last)
    old = open_run(tmp_path, config(), extend=False)
    finished(tmp_path)
    new = open_run(tmp_path, config("review.cut.adjudicators=[judge]"), extend=False)
    moved = compare(old.executor, new.executor)
    # No majority drops them; with a judge, the judge decides.
    assert {move.after for move in moved.moves} >= {"review: rejected not_chosen"} or moved.unmeasured["instruct"]
    assert len(moved.unmeasured["instruct"]) == len(asked)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (("rank.cut.top_k=3",), "two finalists"),
        (("review.cut.annotators=[a, b]",), "fewer people"),
        (("review.cut.adjudicators=[ann1]",), "stands twice"),
    ],
)
def test_a_config_that_cannot_be(sets: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(*sets)
