"""Editions of one data set: whose answers count, what stays in it, and what may not change any more."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.records import DenseText
from tasks.dataset.diff import diff
from tasks.dataset.fates import triplet_keys
from tasks.dataset.read import data_set
from tasks.dataset.release import note_released
from tasks.dataset.verify import verify
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.results import check_released
from tasks.withdrawal.withdraw import Wish, withdraw
from tests import fakes

MODELS = ("analyze", "embed", "edit", "vote", "caption", "instruct")


@pytest.fixture(autouse=True)
def world() -> Iterator[fakes.World]:
    yield fakes.install()
    fakes.install()


def made(workspace: Path, *sets: str, sources: int = 24, threads: int = 1) -> fakes.Built:
    """A build whose data set must stand every check."""
    built = fakes.build(workspace, fakes.config(*sets, sources=sources), threads)
    assert built.published
    assert verify(built.published.folder) == []
    assert "\n\n\n" not in (built.published.folder / "README.md").read_text()
    return built


def asked(built: fakes.Built) -> dict[str, int]:
    return {role: built.counts[role] for role in MODELS if built.counts[role]}


def manifest(built: fakes.Built) -> Any:
    return json.loads(built.tree()["manifest.json"])


def versions(built: fakes.Built, stage: str, kind: str) -> dict[int, int]:
    """Version of the adapters of a kind → rows of the stage that rest on it."""
    return {
        use["version"]: answers["rows"]
        for answers in manifest(built)["stages"][stage]
        for use in answers["uses"]
        if isinstance(use, dict) and use["kind"] == kind
    }


def raise_version(patch: pytest.MonkeyPatch, *adapters: Any) -> None:
    for adapter in adapters:
        patch.setattr(adapter, "version", adapter.version + 1)


# -- replay and refresh -----------------------------------------------------------------------------------------


def test_replay_measures_nothing_again_and_refresh_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made(tmp_path)
    raise_version(monkeypatch, fakes.FakeEditor, fakes.FakeVoter)
    again = made(tmp_path)
    assert (asked(again), again.published.written) == ({}, False)  # type: ignore[union-attr]
    assert again.tree() == first.tree()
    second = made(tmp_path, "edition=v2")
    assert asked(second) == {}
    found = diff(first.published.folder, second.published.folder)  # type: ignore[union-attr]
    assert (found.changed, found.removed, found.added, found.settings) == ((), (), (), ())
    assert list(versions(second, "generate", "editor")) == [1]
    third = made(tmp_path, "edition=v3", "mode=refresh")
    assert {"edit", "vote"} <= asked(third).keys()
    assert list(versions(third, "generate", "editor")) == [2]
    editor, voter, *_ = manifest(third)["roles"]
    assert (editor["version"], voter["version"]) == (2, 2)
    assert {row.where for row in diff(first.published.folder, third.published.folder).settings} >= {  # type: ignore[union-attr]
        "models.generate.editor fake.version"
    }
    # The first edition keeps its own answers, whatever was published since.
    assert (asked(made(tmp_path)), made(tmp_path).tree()) == ({}, first.tree())


def test_a_gap_is_filled_by_the_present_model_and_both_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: fakes.World
) -> None:
    first = made(tmp_path)
    raise_version(monkeypatch, fakes.FakeVoter)
    world.extra = 6
    world.repainted = {"00003"}
    world.stamps = {"00003": "new"}
    second = made(tmp_path, "edition=v2")
    old, new = versions(first, "verify", "voter"), versions(second, "verify", "voter")
    assert new.keys() == {1, 2}
    assert new[1] <= old[1]
    assert asked(second)["vote"] > 0
    assert "more than one identity" in second.tree()["README.md"].decode()
    assert [role["version"] for role in manifest(second)["roles"] if role["adapter"] == "fake-coarse"] == [1, 2]
    # What was asked for under no published edition's identity stays an answer.
    raise_version(monkeypatch, fakes.FakeVoter)
    third = made(tmp_path, "edition=v3")
    assert asked(third) == {}
    assert third.tree()["data/train-00000-of-00001.parquet"] == second.tree()["data/train-00000-of-00001.parquet"]
    refreshed = made(tmp_path / "apart", "edition=v3", "mode=refresh")
    assert versions(refreshed, "verify", "voter").keys() == {3}


def test_the_newest_edition_comes_first_and_older_ones_fill_its_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(tmp_path)
    raise_version(monkeypatch, fakes.FakeVoter)
    # The limit cuts a shard in two: a part of its sources is asked for again, the others are not.
    second = made(tmp_path, "edition=v2", "mode=refresh", "limit=13")
    raise_version(monkeypatch, fakes.FakeVoter)
    third = made(tmp_path, "edition=v3")
    assert asked(third) == {}
    old, new = versions(first, "verify", "voter")[1], versions(second, "verify", "voter")[2]
    assert versions(third, "verify", "voter") == {1: old - new, 2: new}
    assert made(tmp_path, "edition=v3").published.written is False  # type: ignore[union-attr]


def test_each_of_two_editors_keeps_its_own_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = "generate.measure.top_up=[{target: happy, editor: {name: fake, params: {strength: 150}}, called: bold}]"
    first = made(tmp_path, second)
    assert len(manifest(first)["stages"]["generate"]) == 2
    assert "more than one identity" not in first.tree()["README.md"].decode()
    raise_version(monkeypatch, fakes.FakeEditor)
    again = made(tmp_path, second)
    assert (asked(again), again.tree()) == ({}, first.tree())
    # Only the editor whose parameters are others is asked, in its present version.
    third = made(tmp_path, "edition=v2", second.replace("150", "160"))
    assert asked(third)["edit"] > 0
    found = {
        (one["uses"][0]["params"]["strength"], one["version"], one["uses"][0]["version"])
        for one in manifest(third)["stages"]["generate"]
    }
    assert found == {(200, 2, 1), (160, 2, 2)}


def test_another_choice_of_the_user_always_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    raise_version(monkeypatch, fakes.FakeDescriber, fakes.FakeVoter)
    second = made(tmp_path, "edition=v2", "instruct.measure.describer.params.word=has")
    assert asked(second).keys() == {"instruct"}
    assert list(versions(second, "instruct", "describer")) == [2]
    assert list(versions(second, "verify", "voter")) == [1]


def test_no_half_finished_refresh_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    raise_version(monkeypatch, fakes.FakeVoter)
    fakes.build(tmp_path, fakes.config("edition=v2", "mode=refresh", "limit=6", sources=24), publishing=False)
    second = made(tmp_path, "edition=v2")
    assert asked(second) == {}
    assert list(versions(second, "verify", "voter")) == [1]


def test_threads_and_shards_change_no_byte_of_a_replay(tmp_path: Path) -> None:
    trees = []
    for place, (threads, size) in enumerate(((1, 3), (3, 3))):
        with pytest.MonkeyPatch.context() as patch:
            fakes.install()
            made(tmp_path / str(place), f"shard_size={size}", threads=threads)
            raise_version(patch, fakes.FakeEditor, fakes.FakeVoter)
            fakes.world().extra = 4
            trees.append(made(tmp_path / str(place), "edition=v2", f"shard_size={size}", threads=threads).tree())
    assert trees[0] == trees[1]


def test_another_prompt_is_replayed_and_verify_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import prompts
    from tasks.dataset.verify import verified_words

    made(tmp_path)
    known = prompts.sha256_of
    monkeypatch.setattr(prompts, "sha256_of", lambda name: "0" * 64 if name == "simple_instruction" else known(name))
    second = made(tmp_path, "edition=v2")
    assert asked(second) == {}
    assert "not instructions" in verified_words(second.published.folder)  # type: ignore[union-attr]


def test_answers_of_another_shape_are_no_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.instruct import Instruct

    class Longer(DenseText):
        length: int | None = None

    made(tmp_path)
    monkeypatch.setattr(Instruct, "measurement", Longer)
    raise_version(monkeypatch, Instruct)
    assert asked(made(tmp_path, "edition=v2")).keys() == {"instruct"}


# -- a frozen core ----------------------------------------------------------------------------------------------


def triplets(built: fakes.Built) -> set[str]:
    assert built.published
    return {str(key) for key in triplet_keys(built.published.folder, data_set(built.published.folder))}


def test_a_core_survives_another_filling_and_another_prefix(tmp_path: Path) -> None:
    first = made(tmp_path, "publish.cut.target=6", sources=44)
    wider = ("publish.cut.target=8", "publish.cut.margin=2.5")
    without = made(tmp_path, "edition=v2", *wider, sources=44)
    assert not triplets(first) <= triplets(without)
    kept = made(tmp_path, "edition=v3", *wider, "publish.cut.core=v1", sources=44)
    assert triplets(first) < triplets(kept)
    assert len(triplets(kept)) == 8
    said = manifest(kept)["core"]
    assert (said["edition"], set(said["triplets"]), said["lost"]) == ("v1", triplets(first), [])
    # The core lies beyond the smallest prefix, which then reaches to it.
    back = made(tmp_path, "edition=v4", "publish.cut.target=9", "publish.cut.core=v2", sources=44)
    assert triplets(without) < triplets(back)
    assert manifest(back)["sources"] > manifest(first)["sources"]
    assert asked(back) == {}


def test_a_lost_triplet_of_the_core_is_told_with_its_reason(tmp_path: Path) -> None:
    first = made(tmp_path, "publish.cut.target=8", sources=44)
    sets = ("publish.cut.core=v1", "publish.cut.target=8", "rank.cut.min_identity=0.96", "screen.cut.max_yaw=25")
    second = made(tmp_path, "edition=v2", *sets, sources=44)
    lost = {
        "{pool}/{source_id}:{target}@{editor}#{attempt}".format(**row["key"]): row
        for row in manifest(second)["core"]["lost"]
    }
    assert lost.keys() == triplets(first) - triplets(second)
    assert {row["reason"] for row in lost.values()} == {"low_identity", "pose"}
    removed = diff(first.published.folder, second.published.folder).removed  # type: ignore[union-attr]
    assert {row.id: (row.fate.stage, row.fate.reason, row.fate.evidence) for row in removed} == {
        id_: (row["stage"], row["reason"], row["evidence"]) for id_, row in lost.items()
    }
    assert "low_identity" in second.tree()["README.md"].decode()


def test_a_core_above_the_target_is_thinned_evenly(tmp_path: Path) -> None:
    first = made(tmp_path, sources=44)
    second = made(tmp_path, "edition=v2", "publish.cut.core=v1", "publish.cut.target=9", sources=44)
    assert triplets(second) < triplets(first)
    assert {row["reason"] for row in manifest(second)["core"]["lost"]} == {"not_selected"}


def test_a_withdrawal_takes_a_triplet_of_the_core_out_as_well(tmp_path: Path) -> None:
    first = made(tmp_path, "publish.cut.target=6", sources=44)
    second = made(tmp_path, "edition=v2", "publish.cut.target=8", "publish.cut.core=v1", sources=44)
    assert first.published
    assert second.published
    key = triplet_keys(first.published.folder, data_set(first.published.folder))[0]
    withdraw(Store(tmp_path), Wish([str(key.source())]))
    for built in (first, second):
        assert verify(built.published.folder) == []  # type: ignore[union-attr]
    assert str(key) not in triplets(first) | triplets(second)
    found = diff(first.published.folder, second.published.folder)
    assert found.removed == ()
    third = made(tmp_path, "edition=v3", "publish.cut.target=8", "publish.cut.core=v1", sources=44)
    assert triplets(first) < triplets(third)


@pytest.mark.parametrize(("core", "words"), [("v9", "its editions: v1"), ("v2", "own core")])
def test_a_core_that_is_none_is_refused(tmp_path: Path, core: str, words: str) -> None:
    made(tmp_path)
    with pytest.raises(ConfigError, match=words):
        fakes.build(tmp_path, fakes.config("edition=v2", f"publish.cut.core={core}", sources=24))


def test_verify_finds_a_core_that_was_not_taken_first(tmp_path: Path) -> None:
    made(tmp_path, "publish.cut.target=6", sources=44)
    second = made(tmp_path, "edition=v2", "publish.cut.target=8", "publish.cut.core=v1", sources=44)
    assert second.published
    path = second.published.folder / "manifest.json"
    said = json.loads(path.read_text())
    spare = min(triplets(second) - set(said["core"]["triplets"]))
    said["core"]["triplets"][0] = spare
    path.write_text(json.dumps(said))
    assert {fault.rule for fault in verify(second.published.folder)} >= {"core"}


# -- what is released -------------------------------------------------------------------------------------------


def test_a_released_edition_is_not_changed_any_more(tmp_path: Path, world: fakes.World) -> None:
    first = made(tmp_path, sources=12)
    assert first.published
    changed = fakes.config("verify.cut.min_change=0.5", sources=12)
    check_released(tmp_path, changed)
    made(tmp_path, "verify.cut.min_change=0.5", sources=12)
    first = made(tmp_path, sources=12)
    assert first.published
    note_released(Store(tmp_path), data_set(first.published.folder))
    with pytest.raises(ConfigError, match=r"min_change=0\.25, not 0\.5"):
        check_released(tmp_path, changed)
    before = first.tree()
    world.extra = 12
    with pytest.raises(ConfigError, match="is released, and this build would change its rows"):
        fakes.build(tmp_path, fakes.config(sources=12))
    assert first.tree() == before
    world.extra = 0
    assert made(tmp_path, "edition=v2", "publish.cut.core=v1", sources=12).published
