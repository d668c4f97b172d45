"""What a run does again and what it never does again, counted; and that every owed key is accounted for."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schemas.outcomes import FailureKind, Status
from tasks.engine.errors import ItemFailed, TooManyFailures
from tasks.pipeline import narrowed, open_run
from tests import fakes
from tests.fakes import Built, build, config

# By threshold: a value that lets less through, and one that lets more through.
TIGHTER_LOOSER: dict[str, tuple[Any, Any]] = {
    "screen.max_second_face": (0.1, 0.9),
    "screen.min_inter_eye_px": (16, 1),
    "screen.max_yaw": (20, 90),
    "screen.max_pitch": (10, 90),
    "screen.max_roll": (5, 180),
    "screen.min_sharpness": (400, 0),
    "screen.max_overexposed": (0.0, 1.0),
    "screen.max_underexposed": (0.0, 1.0),
    "screen.min_label_confidence": (0.8, 0.0),
    "screen.label_check": ("expression", "none"),
    "screen.near_duplicate_bits": (25, 0),
    "screen.duplicates": (True, False),
    "screen.same_identity": (0.2, 0.9),
    "screen.max_per_clip": (1, "null"),
    "screen.max_per_movie": (1, "null"),
    "screen.max_per_identity": (1, "null"),
    "screen.leak_identity": (0.1, 1.0),
    "screen.leak_duplicate_bits": (20, 0),
    "screen.leak_face_bits": (20, 0),
    "screen.leak_face_identity": (0.1, 1.0),
    "generate.min_changed_pixels": (0.04, 0.0),
    "generate.min_local_change": (60.0, 0.0),
    "generate.max_shift": (0.0, 100.0),
    "generate.max_zoom": (0.0, 1.0),
    "generate.max_turn": (0.0, 90.0),
    "generate.moved": ("reject", "flag"),
    "verify.majority": ("panel", "valid"),
    "verify.min_votes": (3, 1),
    "verify.min_change": (0.9, 0.0),
    "verify.fine_agreement": (1.0, 0.0),
    "rank.identity_weight": (1.0, 0.0),
    "rank.background_scale": (2.0, 90.0),
    "rank.min_identity": (0.95, -1.0),
    "rank.max_background_rmse": (3.0, 255.0),
    "rank.background": ("registered", "raw"),
    "rank.top_k": (1, 6),
    "review.keep_per_source": (1, 2),
    "publish.target": (3, "null"),
    "publish.margin": (1.0, 2.0),
}


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def files(root: Path, *patterns: str) -> dict[str, tuple[bytes, int, int]]:
    """Bytes, inode and time of files: equal for what nobody touched."""
    found = [path for pattern in patterns for path in root.glob(pattern) if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def totals(built: Built, stage: str) -> dict[Status, int]:
    return {status: sum(commits[stage].statuses.get(status, 0) for commits in built.done) for status in Status}


def reasons(built: Built, stage: str) -> Counter[str]:
    return sum((Counter(commits[stage].reasons) for commits in built.done), Counter())


def kept(built: Built, stage: str) -> list[Any]:
    executor = built.run.executor
    return [
        row
        for shard, commits in zip(executor.shards, built.done, strict=True)
        for row in executor.kept(stage, shard, commits)
    ]


# -- conservation -----------------------------------------------------------------------------------------------


def test_every_owed_key_leaves_every_stage_exactly_once(tmp_path: Path) -> None:
    built = build(tmp_path, config("publish.cut.target=9", sources=40))
    executor = built.run.executor
    assert len(built.done) > 3
    before: dict[str, int] = {}
    for place, name in enumerate(executor.order):
        owed, left = [], []
        for shard, commits in zip(executor.shards, built.done, strict=True):
            rows = executor.rows_to_decide(name, shard, commits)
            owed += [key for row in rows for key in executor.stages[name].owes(row)]
            left += [row.key for row in executor.decided(name, shard, commits[name])]
            assert commits[name].owed == sum(commits[name].statuses.values())
        assert left == owed
        assert len(set(owed)) == len(owed)
        assert len(owed) == sum(totals(built, name).values())
        if place > 1:
            assert len(owed) == before[executor.order[place - 1]]
        before[name] = totals(built, name)[Status.KEPT]
    # The fakes see to it that this says something.
    assert totals(built, "generate")[Status.FAILED]
    assert totals(built, "verify")[Status.REJECTED]
    assert totals(built, "publish") == {
        Status.KEPT: 9,
        Status.REJECTED: before["instruct"] - 9,
        Status.FAILED: 0,
        Status.WAITING: 0,
    }


# -- reuse ------------------------------------------------------------------------------------------------------


def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    first = build(tmp_path, config())
    before = files(tmp_path, "[!l]*/**/*")
    again = build(tmp_path, config())
    assert not again.asked
    assert again.published
    assert not again.published.written
    assert again.done == first.done
    assert files(tmp_path, "[!l]*/**/*") == before


def test_the_table_of_thresholds_is_whole() -> None:
    fields = {
        f"{stage}.{field}"
        for stage, section in config()
        if hasattr(section, "cut")
        for field in section.cut.model_dump()
    }
    # These name an edition, and people and whom they are asked about.
    asked = ("annotators", "former", "votes", "adjudicators", "sample", "sample_seed")
    named = {"publish.core", *(f"review.{field}" for field in asked)}
    assert fields - named == TIGHTER_LOOSER.keys()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    """A workspace with a finished run, and that run."""
    fakes.install()
    workspace = tmp_path_factory.mktemp("measured")
    return workspace, build(workspace, config("shard_size=5", sources=20))


def repeated(first: Built, second: Built) -> set[tuple[str, str]]:
    """Work of `second` that `first` did already. Looking at a source's own photo again does not count:

    faces and identities are measured in pairs with the source's, which the real models remember.
    """
    photos = {row.image for built in (first, second) for row in kept(built, "screen")}
    return {work for work in {*first.asked} & {*second.asked} if work[1] not in photos}


@pytest.mark.parametrize("threshold", TIGHTER_LOOSER)
def test_a_moved_threshold_measures_nothing_twice(measured: tuple[Path, Built], threshold: str) -> None:
    workspace, first = measured
    stage, field = threshold.split(".")
    moved = build(
        workspace,
        config(f"{stage}.cut.{field}={TIGHTER_LOOSER[threshold][0]}", "shard_size=5", sources=20),
        publishing=False,
    )
    assert not moved.counts["load"]
    assert not repeated(first, moved)
    # Others than before may now be among the best two, or the first of their clip; nobody else is new.
    new = {row.key for row in kept(moved, "rank")} - {row.key for row in kept(first, "rank")}
    assert moved.counts["caption"] <= len(new)
    photos = {row.key for row in kept(moved, "screen")} - {row.key for row in kept(first, "screen")}
    assert moved.counts["edit"] <= 6 * len(photos)


def test_thresholds_that_let_all_through_measure_the_new_ones_alone(measured: tuple[Path, Built]) -> None:
    workspace, first = measured
    looser = (
        f"{stage}.cut.{field}={value}"
        for name, (_, value) in TIGHTER_LOOSER.items()
        for stage, field in [name.split(".")]
    )
    moved = build(workspace, config(*looser, "shard_size=5", sources=20), publishing=False)
    assert not moved.counts["load"]
    assert moved.counts["edit"] > 0
    assert not repeated(first, moved)


def test_tightening_alone_runs_no_model(tmp_path: Path) -> None:
    first = build(tmp_path, config("rank.cut.top_k=6", sources=30))
    tight = ("verify.cut.min_change=0.6", "rank.cut.max_background_rmse=4", "publish.cut.target=5", "rank.cut.top_k=3")
    second = build(tmp_path, config(*tight, sources=30))
    assert not second.asked
    assert second.published
    assert first.published
    assert second.published.triplets == 5 < first.published.triplets


def test_thresholds_moved_to_and_fro_are_where_they_were(tmp_path: Path) -> None:
    first = build(tmp_path, config())
    before = first.tree()
    assert build(tmp_path, config("screen.cut.max_yaw=12", "rank.cut.top_k=1")).tree() != before
    back = build(tmp_path, config())
    assert not back.asked
    assert back.done == first.done
    assert back.tree() == before


def test_another_editor_redoes_edits_and_what_follows(tmp_path: Path) -> None:
    first = build(tmp_path, config())
    second = build(tmp_path, config("generate.measure.editor.params.strength=150"))
    assert first.counts["load"] == 12
    assert second.counts["load"] == 0
    assert second.counts["edit"] == first.counts["edit"] == 6 * totals(first, "screen")[Status.KEPT] > 0
    fresh = {row.image for row in kept(second, "generate")} - {row.image for row in kept(first, "generate")}
    assert second.counts["vote"] == 3 * len(fresh) > 0
    assert second.counts["caption"] > 0 < second.counts["instruct"]


def test_another_voter_redoes_votes_alone(tmp_path: Path) -> None:
    first = build(tmp_path, config())
    second = build(tmp_path, config("verify.measure.panel.0.params.note=reworded"))
    assert {role for role, _ in second.asked} == {"vote", "analyze"}  # the changed test is verify's
    assert second.counts["vote"] == 3 * totals(first, "generate")[Status.KEPT]


def test_another_describer_redoes_texts_alone(tmp_path: Path) -> None:
    first = build(tmp_path, config())
    second = build(tmp_path, config("caption.measure.describer.params.word=displays"))
    assert second.counts == {"caption": first.counts["caption"]}
    third = build(
        tmp_path, config("caption.measure.describer.params.word=displays", "instruct.measure.describer.params.word=x")
    )
    assert third.counts == {"instruct": first.counts["instruct"]}
    assert third.published
    assert first.published
    assert third.published.triplets == first.published.triplets > 0


# -- accidents --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "stage", "targets"),
    [("edit", "generate", "[happy]"), ("caption", "caption", "[]"), ("instruct", "instruct", "[]")],
)
def test_only_what_may_go_better_is_tried_again(
    tmp_path: Path, world: fakes.World, role: str, stage: str, targets: str
) -> None:
    # Rows are measured whole, so that the edits of one are asked again together: here it is one.
    settings = config(f"generate.measure.targets={targets}", sources=24)

    def injected(about: str) -> FailureKind | None:
        return {0: FailureKind.TIMEOUT, 1: FailureKind.REFUSED}.get(fakes.chance(about, 4))

    def trouble(asked: str, about: str) -> Exception | None:
        kind = injected(about) if asked == role else None
        return ItemFailed(kind, "injected", retryable=kind is FailureKind.TIMEOUT) if kind else None

    world.trouble = trouble
    first = build(tmp_path, settings)
    about = {about for asked, about in first.asked if asked == role}
    timed_out = {each for each in about if injected(each) is FailureKind.TIMEOUT}
    assert timed_out
    assert any(injected(each) is FailureKind.REFUSED for each in about)
    assert reasons(first, stage)["timeout"] == len(timed_out)
    still = build(tmp_path, settings)
    assert set(still.asked) == {(role, each) for each in timed_out}
    assert still.done == first.done
    world.trouble = None
    better = build(tmp_path, settings)
    assert {each for asked, each in better.asked if asked == role} == timed_out
    assert not repeated(first, better) - set(still.asked)
    assert reasons(better, stage) == reasons(first, stage) - Counter(timeout=len(timed_out))
    assert not build(tmp_path, settings).asked


def test_a_stage_that_fails_too_often_stops_the_run_and_is_resumed(tmp_path: Path, world: fakes.World) -> None:
    settings = config("max_failed=0.05", "verify.cut.min_votes=3")
    with pytest.raises(TooManyFailures, match=r"'verify' failed on \d+ of \d+ rows \(insuff.*max_failed=0\.05"):
        build(tmp_path, settings)
    world.asked.clear()
    assert not set(build(tmp_path, config("max_failed=1.0", "verify.cut.min_votes=3")).counts) & {
        "load",
        "edit",
        "vote",
    }
    world.trouble = lambda role, _: ItemFailed(FailureKind.REFUSED, "no") if role == "edit" else None
    refused = build(tmp_path, config("name=refused", "max_failed=0.0", "generate.measure.editor.params.strength=100"))
    assert totals(refused, "generate")[Status.FAILED] > 1  # refusals are not counted


# -- more, fewer and other sources ------------------------------------------------------------------------------

SHARDS = ("stages/*/*/*", "runs/*/plan-*/*", "images/*/*", "edits/*/*")


def test_added_sources_open_new_shards_and_touch_no_finished_one(tmp_path: Path, world: fakes.World) -> None:
    first = build(tmp_path, config(sources=13))
    before = files(tmp_path, *SHARDS)
    world.extra = 6
    second = build(tmp_path, config(sources=13))
    assert files(tmp_path, *SHARDS).items() >= before.items()
    assert [len(shard.sources) for shard in second.run.executor.shards] == [3, 3, 3, 3, 1, 3, 3]
    assert second.run.executor.shards[:5] == first.run.executor.shards
    for now, then in zip(second.done, first.done, strict=False):
        assert {name: commit for name, commit in now.items() if name != "publish"} == {
            name: commit for name, commit in then.items() if name != "publish"
        }
    assert second.counts["load"] == 6
    assert not repeated(first, second)
    world.extra = 0  # what is listed no more stays, as planned
    third = build(tmp_path, config(sources=13))
    assert not third.asked
    assert third.done == second.done


def test_a_limit_up_and_down(tmp_path: Path) -> None:
    built = {limit: build(tmp_path, config(f"limit={limit}", sources=20)) for limit in (8, 14)}
    assert [shard.sources for shard in built[14].run.executor.shards[:2]] == [
        shard.sources for shard in built[8].run.executor.shards[:2]
    ]
    assert sum(len(shard.sources) for shard in built[14].run.executor.shards) == 14
    assert built[14].counts["load"] == 6
    assert not repeated(built[8], built[14])
    before = files(tmp_path, *SHARDS)
    low = build(tmp_path, config("limit=4", sources=20))
    assert [len(shard.sources) for shard in low.run.executor.shards] == [3, 1]
    assert not low.asked
    again = build(tmp_path, config("limit=14", sources=20))
    assert not again.asked
    assert again.done == built[14].done
    assert files(tmp_path, *SHARDS).items() >= before.items()


@pytest.mark.parametrize("repainted", [False, True])
def test_a_changed_file_is_measured_again_alone(tmp_path: Path, world: fakes.World, repainted: bool) -> None:
    first = build(tmp_path, config())
    id_ = next(row.key.source_id for row in kept(first, "screen") if row.label_source == "given")
    world.stamps[id_] = "touched"
    if repainted:
        world.repainted.add(id_)
    second = build(tmp_path, config())
    assert [about for role, about in second.asked if role == "load"] == [id_]
    assert second.counts["edit"] == (6 if repainted else 0)
    edited = {about.split(":")[0] for role, about in second.asked if role == "edit"}
    assert edited == ({str(int(id_))} if repainted else set())
    labelling = {work for work in second.asked if work[0] == "vote" and work[1].endswith(":fine-l")}
    edits = {work for work in second.asked if work[0] == "edit"}
    assert not repeated(first, second) - {("load", id_)} - labelling - edits
    assert not build(tmp_path, config()).asked


def test_a_met_target_leaves_nothing_due(tmp_path: Path) -> None:
    first = build(tmp_path, config("publish.cut.target=3", sources=40))
    run = open_run(tmp_path, first.run.config, extend=False)
    planned = len(run.executor.shards)
    done = narrowed(run, run.executor.commits())
    assert len(run.executor.shards) == len(done) < planned
    assert all(set(commits) == set(run.executor.order) for commits in done)
    assert done == first.done
